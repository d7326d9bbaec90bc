"""Rows in parts: what cannot be decided without all rows at once, and passes that do not see the same rows."""


def rows_have_changed(what: str) -> ValueError:
    """Error for rows that are not those of an earlier pass over them."""
    return ValueError(
        f"{what} that were not there when the rows were looked through first. All passes must read the same rows: "
        "do not write to the source meanwhile, and make lazy sources give the same rows every time."
    )


def array_for_parts(role: str) -> ValueError:
    """Error for one array of all rows beside rows in parts."""
    return ValueError(
        f"An array of {role} is one for all rows, and these come in parts. Give the name of a column that holds the "
        f"{role}, which is then read part by part."
    )


def splitter_for_parts(cv: object) -> ValueError:
    """Error for a splitter, which wants to see all rows at once."""
    return ValueError(
        f"cv={cv!r} splits all rows at once, and these come in parts. Give KFold, GroupKFold, TimeFolds, Holdout, "
        "LeaveOneOut or Ordered, or the name of a column of fold numbers."
    )


def no_rows_in_parts(owner: str) -> ValueError:
    """Error for parts that are all empty."""
    return ValueError(f"None of the parts has rows, while a minimum of 1 is required by {owner}.")


def sums_of_no_rows() -> ValueError:
    """Error for encoding before measuring."""
    return ValueError("There are no sums to learn from: measure the parts first, and add up what they give.")


def other_rows_measured(profiled: int, measured: int) -> ValueError:
    """Error for sums over more or fewer rows than were looked through first."""
    return ValueError(
        f"{measured} rows were summed, but {profiled} were looked through first. Every part must be measured once, and "
        "all passes must read the same rows."
    )


def codes_of_orders_needed() -> ValueError:
    """Error for encoding rows of an ordered scheme without what comes before them."""
    return ValueError(
        "Rows of an ordered scheme are encoded from those before them: pass what OrderedScan gave for their buckets, "
        "encode(tables, part, placed)."
    )


def other_rows_placed(first_row: int, n_rows: int) -> ValueError:
    """Error for codes of other rows than a part's."""
    return ValueError(
        f"The placed codes are not those of rows {first_row} to {first_row + n_rows - 1}, each once per order. "
        "Pass what OrderedScan gave for the buckets of this part, RowEncodings.between(first, last + 1) of each."
    )


def order_of_values(owner: str) -> ValueError:
    """Error for an ordered scheme of columns of X, whose missing values buckets of rows cannot hold."""
    return ValueError(
        f"{owner} with values and cv=Ordered(...) takes its rows all at once. Pass one table, or choose folds or "
        "LeaveOneOut()."
    )
