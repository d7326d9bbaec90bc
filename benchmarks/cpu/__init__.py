"""Target encoding on the CPU: see `benchmarks.cpu.__main__`."""
