"""Encoders other than TargetEncoder on the CPU: see `studies.family.__main__`."""
