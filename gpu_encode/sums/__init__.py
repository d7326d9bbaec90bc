"""Exact sums per category: the targets that are added up, the digits of the sums, and numbers computed from them."""
