"""Numbers that users set in the environment."""

import os


def number_from_environment(name: str, described: str, least: int) -> int | None:
    """Give the number that an environment variable holds; None if the variable is not set.

    Raises
    ------
    ValueError
        If the variable holds anything else.

    Examples
    --------
    >>> number_from_environment("GPU_ENCODE_NOT_SET", "a number of rows, 1 or more", 1)
    """
    given = os.environ.get(name, "")
    if not given:
        return None
    if not given.isdecimal() or int(given) < least:
        message = f"the environment variable {name} must be {described}. Got {given!r}."
        raise ValueError(message)
    return int(given)
