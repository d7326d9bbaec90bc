"""The contenders, one file for each family."""

from benchmarks.cpu.contenders import hand_written, libraries, limit, ours, polars_forms

MODULES = (ours, libraries, polars_forms, hand_written, limit)
CONTENDERS = tuple(each for module in MODULES for each in module.CONTENDERS)
