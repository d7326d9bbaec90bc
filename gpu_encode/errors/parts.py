"""Rows in parts: what cannot be decided without all rows at once, and passes that do not see the same rows."""


def rows_have_changed(what: str) -> ValueError:
    """Error for rows that are not those of an earlier pass over them."""
    return ValueError(
        f"{what} that were not there when the rows were looked through first. All passes must read the same rows: "
        "do not write to the source meanwhile, and make lazy sources give the same rows every time."
    )
