"""Hypotheses: known causes, declared in ``*.yaml`` files and matched against episodes."""
