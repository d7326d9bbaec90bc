"""Guest: what encodings are worth: tuning, leaks, pictures."""
