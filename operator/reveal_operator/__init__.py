"""Turns RevealProfiles into collectors and analyzers and keeps them so."""
