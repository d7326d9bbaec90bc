"""A comparison of schemes and smoothings on real data: see `studies.comparison.__main__`."""
