"""Known causes as declarative signatures: ``*.yaml`` here, ``schema`` reads, ``rules`` decide."""
