"""Tables that others recorded, read as what the detectors of ``samples`` take."""
