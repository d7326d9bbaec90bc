"""Exact sums per category: what is added up, in which digits, and the numbers read off them."""
