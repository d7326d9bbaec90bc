"""Lists of tables that are no table in pieces, and vectors that do not match the tables."""

from collections.abc import Sequence

MOST_NAMES = 5


def _cut(names: Sequence[object]) -> str:
    """Name the first few."""
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(map(repr, names[:MOST_NAMES])) + more


def rows_have_changed(what: str) -> ValueError:
    """Error for rows that are not those of an earlier pass over them."""
    return ValueError(
        f"{what} that were not there when the rows were looked through first. All passes must read the same rows: "
        "do not write to the source meanwhile, and make lazy sources give the same rows every time."
    )
