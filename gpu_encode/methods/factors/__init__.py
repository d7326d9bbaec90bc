"""Encoders that decompose a matrix or a tensor of categories into factors."""
