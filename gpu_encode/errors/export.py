"""What cannot leave a fitted encoder, and what to do instead."""


def no_tables(owner: str) -> TypeError:
    """Error for an encoder whose encodings do not follow from single keys."""
    return TypeError(
        f"{owner} cannot be exported: its encodings do not follow from the categories of single keys alone. Save it "
        "with save(), and encode with gpu_encode where rows are: transform takes frames in memory and of Dask, Spark "
        "and Ray, transform_dataset and gpu-encode transform take files, and row_encoder takes single rows, all with "
        "the same bits."
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
