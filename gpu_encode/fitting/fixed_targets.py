"""Targets and categories that all rows have decided, where those at hand are some of them."""

from collections.abc import Sequence

from cpu_fallback.types import UNKNOWN, Array
from gpu_encode.categories.keys import CategoryIndex
from gpu_encode.errors.learned import other_number_of_targets
from gpu_encode.errors.parts import rows_have_changed
from gpu_encode.fitting.columns import ColumnMap
from gpu_encode.fitting.model import TargetInfo
from gpu_encode.ops import Ops
from gpu_encode.sums import targets
from gpu_encode.sums.targets import Target


def decided_targets(
    backend: Ops, named: Sequence[tuple[str | None, Array]], decided: Sequence[TargetInfo]
) -> list[Target]:
    """Read targets whose kinds and classes all rows have decided."""
    if len(named) != len(decided):
        raise other_number_of_targets(len(decided), len(named))
    found = []
    for (_, values), info in zip(named, decided, strict=True):
        target = targets.make(info.name, targets.Labels(backend, values), info.kind, info.classes)
        if target.classes is not None and len(target.classes) != len(info.classes):  # type: ignore[arg-type]
            raise rows_have_changed("y has labels")
        found.append(target)
    return found


def known_codes(key: CategoryIndex, place: ColumnMap, backend: Ops, missing: str) -> Array:
    """Look up the category of rows whose categories are all known."""
    codes = key.lookup(place, backend, missing == "category")
    if not key.given and len(codes) and int(codes.min()) == UNKNOWN:
        raise rows_have_changed(f"{key.entry.name!r} has values")
    return codes
