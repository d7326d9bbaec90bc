"""The other encoders on the CPU: see `studies.family.__main__`."""
