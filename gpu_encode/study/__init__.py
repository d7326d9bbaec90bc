"""Guest: how much encodings are worth, by tuning, leak reports and pictures."""
