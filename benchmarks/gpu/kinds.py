"""Kinds of rows: what is summed of them, and the layout that the library chooses for it."""

from typing import NamedTuple

from benchmarks.gpu.drawn import Columns
from cpu_fallback.types import Array, Layout, Rows
from gpu_encode.ops import Ops
from gpu_encode.sums import layouts


class Kind(NamedTuple):
    """What a row has beside its category, as names of `Columns`, and up to which power its target is summed."""

    name: str
    classes: str = ""
    n_classes: int = 1
    target: str = ""
    weight: str = ""
    powers: int = 0

    def rows(self, codes: Array, columns: Columns) -> Rows:
        """Rows of this kind."""
        parts = (getattr(columns, name) if name else None for name in (self.classes, self.target, self.weight))
        return Rows(codes, *parts)

    def layout(self, ops: Ops, columns: Columns) -> Layout:
        """Layout that holds their sums, as an encoder chooses it."""
        target = getattr(columns, self.target) if self.target else None
        weight = getattr(columns, self.weight) if self.weight else None
        return Layout(*layouts.windows(ops, target, weight, self.powers, columns.n_rows))

    def row_bytes(self) -> dict[str, int]:
        """Bytes of a row."""
        found = {"codes": 4} | ({"classes": 4} if self.classes else {})
        return found | ({"target": 8} if self.target else {}) | ({"weight": 8} if self.weight else {})


KINDS = {
    kind.name: kind
    for kind in (
        Kind("rows"),
        Kind("0/1", "binary", 2),
        Kind("10 classes", "ten", 10),
        Kind("0/1, weights", "binary", 2, weight="weight"),
        Kind("real", target="real", powers=1),
        Kind("real, squares", target="real", powers=2),
        Kind("real, squares, weights", target="real", weight="weight", powers=2),
        Kind("integers, squares", target="whole", powers=2),
        Kind("large integers", target="large", powers=1),
    )
}
