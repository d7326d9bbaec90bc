"""What cannot leave a fitted encoder, and what to do instead."""


def no_tables(owner: str) -> TypeError:
    """Error for an encoder whose encodings do not follow from single keys."""
    return TypeError(
        f"{owner} cannot be exported: its encodings do not follow from the categories of single keys alone, as those "
        "of TargetEncoder, CatBoostEncoder, ImpactEncoder, WeightOfEvidenceEncoder, StatisticEncoder (but for "
        "seconds_since_last), GradientEncoder, CountEncoder and OrdinalEncoder do. Save it with save(), and encode "
        "with gpu_encode where rows are."
    )


def no_type_of_sql(column: str, what: str, dialect: str) -> TypeError:
    """Error for values that a dialect of SQL cannot be given exactly."""
    return TypeError(
        f"Column {column!r} holds {what}, which no statement of {dialect} is given: text, booleans, whole numbers of "
        "64 bits, floats, and where the dialect has them decimals of 38 digits, dates and moments of microseconds are. "
        "Convert the column before fit, for example to text."
    )


def refused_values(column: str, which: str, parameter: str) -> ValueError:
    """Error for policies that raise errors."""
    return ValueError(
        f"{which} values of {column!r} are refused by transform, and a statement of SQL cannot raise that error. Fit "
        f'with another {parameter}, for example "nan" or a number.'
    )
