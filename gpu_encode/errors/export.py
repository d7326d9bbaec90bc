"""What cannot leave a fitted encoder, and what to do instead."""


def no_tables(owner: str) -> TypeError:
    """Error for an encoder whose encodings do not follow from single keys."""
    return TypeError(
        f"{owner} cannot be exported: its encodings do not follow from the categories of single keys alone. Save it "
        "with save(), and encode with gpu_encode where rows are."
    )


def tables_cannot_learn() -> TypeError:
    """Error for rows to learn from, given to what holds encodings alone."""
    return TypeError(
        "An encoder made of tables holds encodings, and not the sums that more rows are added to. Add them to the "
        "encoder that the tables were made of, which save() keeps, and export it anew."
    )


def no_rules(table: object) -> ValueError:
    """Error for a table that does not say how rows are encoded by it."""
    return ValueError(
        "from_arrow takes tables that to_arrow made, whose schema's metadata hold 'gpu_encode'. Got "
        f"{type(table).__name__} without it. Read files with pyarrow, which keeps it; polars and pandas drop it."
    )


def newer_tables(version: object, latest: int) -> ValueError:
    """Error for tables of a format that this release does not know."""
    return ValueError(
        f"These tables were made by a newer gpu-encode (version {version}); this one reads up to {latest}: upgrade."
    )


def other_tables() -> ValueError:
    """Error for tables that are not all of one encoder."""
    return ValueError("from_arrow takes all tables of one encoder, each once, as one call of to_arrow gave them.")


def repeated_rows(key: str) -> ValueError:
    """Error for a category that stands in a table twice."""
    return ValueError(f"The table of {key!r} holds a category twice. Take one of the rows out.")


def damaged_tables(reason: str) -> ValueError:
    """Error for tables that lack what their rules tell of."""
    return ValueError(f"The tables do not fit their own rules ({reason}). Export the encoder anew.")
