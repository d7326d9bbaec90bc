"""The contenders, one file for each family."""

from studies.family.contenders import libraries, ours, pandas_forms, polars_forms

CONTENDERS = tuple(each for module in (ours, libraries, polars_forms, pandas_forms) for each in module.CONTENDERS)
