"""What a page of a recording shows, read from the recording: no HTML here."""
