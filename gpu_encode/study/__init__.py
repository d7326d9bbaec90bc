"""Guest: what encodings are worth, by tuning, leak reports and pictures."""
