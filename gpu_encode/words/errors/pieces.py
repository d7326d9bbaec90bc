"""Lists of tables that are no table in pieces, and vectors that do not match the tables."""

from collections.abc import Sequence

MOST_NAMES = 5


def series_among_tables(number: int, type_name: str, has_to_frame: bool) -> TypeError:
    """Error for a list of series, which is neither a list of tables nor of rows."""
    advice = "[part.to_frame() for part in X]" if has_to_frame else "[pyarrow.table({'name': part}) for part in X]"
    return TypeError(
        f"X[{number}] is a series ({type_name}), and a table in pieces is a list of tables. Where each series is a "
        f"piece of one column, make tables of them: {advice}. Where each is a row, or a whole column, make one table."
    )


def columns_of_piece(number: int, first: Sequence[object] | None, found: Sequence[object] | None) -> ValueError:
    """Error for a table whose columns are not those of the first; None is a table without column names."""
    if first is None:
        says = f"X[{number}] has the column names {_cut(found or [])}, but X[0] has none"
    elif found is None:
        says = f"X[{number}] has no column names, but X[0] has {_cut(first)}"
    elif set(first) == set(found):
        position = next(i for i, pair in enumerate(zip(first, found, strict=True)) if pair[0] != pair[1])
        says = (
            f"X[{number}] has the columns of X[0] in another order: at position {position} it has {found[position]!r}, "
            f"but X[0] has {first[position]!r}"
        )
    else:
        missing, extra = _without(first, found), _without(found, first)
        differences = [f"lacks {_cut(missing)}, which X[0] has"] if missing else []
        differences += [f"has {_cut(extra)}, which X[0] lacks"] if extra else []
        says = f"X[{number}] {', and '.join(differences)}"
    return ValueError(f"{says}. All tables must have the same columns in the same order.")


def _without(names: Sequence[object], others: Sequence[object]) -> list[object]:
    known = set(others)
    return [name for name in names if name not in known]


def _cut(names: Sequence[object]) -> str:
    """Name the first few."""
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(map(repr, names[:MOST_NAMES])) + more


def targets_of_piece(number: int, first: Sequence[object], found: Sequence[object]) -> ValueError:
    """Error for a table of targets whose columns are not those of the first."""
    return ValueError(
        f"y[{number}] has {_targets(found)}, but y[0] has {_targets(first)}. "
        "All must have the same targets in the same order."
    )


def _targets(names: Sequence[object]) -> str:
    return f"{len(names)} targets" if None in names else f"the targets {_cut(names)}"


def rows_have_changed(what: str) -> ValueError:
    """Error for rows that are not those of an earlier pass over them."""
    return ValueError(
        f"{what} that were not there when the rows were looked through first. All passes must read the same rows: "
        "do not write to the source meanwhile, and make lazy sources give the same rows every time."
    )
