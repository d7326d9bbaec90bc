"""Encodings by factors of tables of categories."""
