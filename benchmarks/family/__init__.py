"""The other encoders on the CPU: see `benchmarks.family.__main__`."""
