"""What schemes and smoothings are worth on real data: see `studies.comparison.__main__`."""
