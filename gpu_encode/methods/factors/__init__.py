"""Encoders whose columns are factors of a matrix or tensor of categories."""
