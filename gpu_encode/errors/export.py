"""What cannot leave a fitted encoder, and what to do instead."""

from collections.abc import Mapping, Sequence


def no_encoder(given: object) -> TypeError:
    """Error for something else to be exported."""
    return TypeError(
        f"Exports take a fitted encoder of gpu_encode. Got {type(given).__name__} instead. Read a saved model first: "
        "gpu_encode.load(path)."
    )


def same_names(first: str, second: str, dialect: str) -> ValueError:
    """Error for two names that a dialect of SQL takes for one."""
    law = "reads 63 bytes of a name" if dialect == "postgres" else "does not tell capitals from small letters in names"
    return ValueError(
        f"{dialect} {law}, so that {first!r} and {second!r} are one. Rename one of these columns before fit, or leave "
        "it out of keep."
    )


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


def refused_rows(columns: Sequence[str]) -> ValueError:
    """Error for policies that refuse rows, in a place that cannot refuse any."""
    return ValueError(
        f"transform refuses rows of {named(columns)} that have unknown or missing values, and a graph of ONNX has to "
        "give a number. Fit with another handle_unknown and handle_missing than 'error'."
    )


def no_numbers(columns: Sequence[str]) -> TypeError:
    """Error for encodings that are text or dates."""
    return TypeError(
        f"Encodings of {named(columns)} are text or dates, and the output of a graph of ONNX is one matrix of numbers. "
        "Leave these statistics out."
    )


def no_graph_type(column: str, kind: str) -> TypeError:
    """Error for a column of values that ONNX does not have."""
    return TypeError(
        f"Column {column!r} holds values of type {kind}, and ONNX compares text, whole numbers, floats and bool alone. "
        "Fit on such a column instead, for example on dates as text."
    )


def other_kind(column: str, fitted: str, given: str) -> TypeError:
    """Error for a type of an input that holds other values than the categories."""
    given = "str" if given == "object" else given
    return TypeError(f"Column {column!r} was fitted on {fitted}, and its input is to be of type {given!r}.")


def several_types(types: Mapping[str, str]) -> ValueError:
    """Error for columns of several types that are to be one matrix."""
    listed = ", ".join(f"{label!r}: {word!r}" for label, word in types.items())
    return ValueError(
        f"matrix=True makes all columns one input of one type, and theirs are {{{listed}}}. Leave it out, or give one "
        "type that holds all of them, such as types='float64'."
    )


def tables_cannot_learn() -> TypeError:
    """Error for rows to learn from, or an export, of what holds encodings alone."""
    return TypeError(
        "An encoder made of tables holds encodings, and not the sums that more rows are added to and exports count "
        "rows by. Take the encoder that the tables were made of, which save() keeps."
    )


def other_tables() -> ValueError:
    """Error for tables that are not all of one encoder."""
    return ValueError("from_arrow takes all tables of one encoder, each once, as one call of to_arrow gave them.")


def cannot_refuse(target: str, columns: list[str]) -> ValueError:
    """Error for a policy "error" of an encoder that leaves for where nothing can be refused."""
    named = repr(columns[0]) if len(columns) == 1 else repr(tuple(columns))
    return ValueError(
        f"{target} cannot refuse rows, and the encoder refuses unknown or missing values of {named}. Fit it with other "
        "policies (handle_unknown, handle_missing), and look for such rows before."
    )


def no_such_values(target: str, column: str, kind: object) -> TypeError:
    """Error for categories, or rules of hierarchies, that another engine does not have."""
    return TypeError(
        f"Categories of the column {column!r} cannot be exported to {target}: they are of {kind!r}. Encode with "
        "gpu_encode where rows are, or make them text or numbers before fit."
    )


def not_installed(module: str, extra: str) -> ImportError:
    """Error for a library that an export needs."""
    return ImportError(f"{module} is not installed: pip install '.[{extra}]' in a checkout.")


def named(columns: Sequence[str]) -> str:
    """Give a column, or the columns of a joint key, as they are written."""
    return repr(columns[0]) if len(columns) == 1 else repr(tuple(columns))
