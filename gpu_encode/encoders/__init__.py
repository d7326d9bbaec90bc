"""What users touch: one encoder, one file."""
