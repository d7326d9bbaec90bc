"""Amounts of memory, as people write them."""

import re
from numbers import Integral

UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{letter}i": 1 << (10 * power) for power, letter in enumerate("kmgt", start=1)}


def read_size(given: object, name: str) -> int:
    """Read an amount of memory, in bytes or as "2GiB"; `name` is the parameter's, for messages.

    Examples
    --------
    >>> read_size("1.5 GiB", "memory_limit"), read_size("500MB", "memory_limit"), read_size(1 << 20, "memory_limit")
    (1610612736, 500000000, 1048576)
    """
    size = given
    if isinstance(given, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]i?)?b?\s*", given.lower())
        if match is not None:
            size = int(float(match[1]) * UNITS[match[2] or ""])
    if isinstance(size, bool) or not isinstance(size, Integral) or size <= 0:
        raise ValueError(f"{name} must be a whole number of bytes or a text such as '2GiB' or '500MiB'. Got {given!r}.")
    return int(size)


def amount(n_bytes: float) -> str:
    """Write a number of bytes in the units in which limits are given.

    Examples
    --------
    >>> amount(1_500_000), amount(512)
    ('1.4 MiB', '512 bytes')
    """
    for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        # From here on, one digit after the point would say 1.0 of this unit.
        if n_bytes >= 0.99995 * 1024**power:
            return f"{n_bytes / 1024**power:.1f} {letter}iB"
    return f"{n_bytes:.0f} bytes"
