"""Borders that y cannot be cut at."""


def no_borders(owner: str, found: object) -> ValueError:
    """Error for borders that are no rising numbers."""
    return ValueError(
        f"The 'borders' parameter of {owner} must be None, a number of borders from 1 to 255, or a list of finite "
        f"numbers in rising order. Got {found!r} instead."
    )


def borders_of_counts(owner: str, statistic: str) -> ValueError:
    """Error for borders of a target that is not read."""
    return ValueError(f"statistic={statistic!r} of {owner} reads no target that borders could cut: leave them out.")


def borders_of_labels(owner: str, target_type: object) -> ValueError:
    """Error for borders beside a target that is said to be labels."""
    return ValueError(
        f'borders of {owner} cut a quantity, but target_type={target_type!r}. Pass target_type="auto" or "continuous", '
        "or leave out borders: labels are counted as they are."
    )


def borders_of_several_targets(owner: str, number: int) -> ValueError:
    """Error for borders beside several targets."""
    return ValueError(f"borders of {owner} cut one target, but y holds {number}. Encode each by an encoder of its own.")


def text_at_borders(owner: str, found: object) -> ValueError:
    """Error for a target that is cut and holds no numbers."""
    return ValueError(f"borders of {owner} cut numbers, but y holds {found!r}. Convert y, or leave out borders.")


def one_value_at_borders(owner: str, value: float) -> ValueError:
    """Error for a target that no border divides."""
    return ValueError(
        f"{owner} finds no border in y, whose rows all hold {value:g}. Give borders as a list of numbers."
    )


def borders_of_some_rows(owner: str, number: int) -> ValueError:
    """Error for a number of borders where all rows are never at hand at once."""
    return ValueError(
        f"borders={number} of {owner} are quantiles of all rows, which here come in parts or in several calls. Give "
        "the borders themselves, as a list of numbers."
    )
