"""What schemes and smoothings are worth on real data: see `benchmarks.comparison.__main__`."""
