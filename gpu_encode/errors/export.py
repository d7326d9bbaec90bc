"""What cannot leave a fitted encoder, and what to do instead."""


def no_tables(owner: str) -> TypeError:
    """Error for an encoder whose encodings do not follow from single keys."""
    return TypeError(
        f"{owner} cannot be exported: its encodings do not follow from the categories of single keys alone. Save it "
        "with save(), and encode with gpu_encode where rows are."
    )
