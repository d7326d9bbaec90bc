"""What cannot leave a fitted encoder, and what to do instead."""

from collections.abc import Mapping, Sequence


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
        "seconds_since_last), GradientEncoder, CountEncoder, OrdinalEncoder and OneHotEncoder do. Save it with save(), "
        "and encode with gpu_encode where rows are."
    )


def not_exact(what: str, column: str, target: str) -> TypeError:
    """Error for categories, encodings or levels that another engine does not have, or not exactly."""
    return TypeError(
        f"{what} of column {column!r} cannot be exported to {target}. Make them text or numbers before fit, or encode "
        "with gpu_encode where rows are."
    )


def cannot_refuse(target: str, columns: Sequence[str]) -> ValueError:
    """Error for a policy "error" of an encoder that leaves for where nothing can be refused."""
    key = repr(columns[0]) if len(columns) == 1 else repr(tuple(columns))
    return ValueError(
        f"{target} cannot refuse rows, and the encoder refuses unknown or missing values of {key}. Fit it with other "
        "policies (handle_unknown, handle_missing), and look for such rows before."
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


def not_installed(module: str, extra: str) -> ImportError:
    """Error for a library that an export needs."""
    return ImportError(f"{module} is not installed: pip install '.[{extra}]' in a checkout.")
