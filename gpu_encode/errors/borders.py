"""Borders that y cannot be cut at."""


def no_borders(owner: str, found: object) -> ValueError:
    """Error for borders that are no rising numbers."""
    return ValueError(
        f"The 'borders' parameter of {owner} must be None, a number of borders from 1 to 255, or a list of finite "
        f"numbers in rising order. Got {found!r} instead."
    )


def text_at_borders(owner: str, found: object) -> ValueError:
    """Error for a target that is cut and holds no numbers."""
    return ValueError(f"borders of {owner} cut numbers, but y holds {found!r}. Convert y, or leave out borders.")
