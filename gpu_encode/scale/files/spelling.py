"""How the cells of a text file are spelled: which columns keep every cell in their type, which cells become equal."""

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Distinct values of a column whose cells are remembered.
MOST_VALUES = 1 << 16


@dataclasses.dataclass
class Spelling:
    """How the cells of one column are spelled, as far as they were read.

    Parameters
    ----------
    ways : set of int, optional
        The ways of spelling that all values so far follow, as numbers of `spelled`; None before the first block.
    missing : set of str
        How missing values are spelled.
    seen : dict
        A cell of each value.
    pair : tuple of str, optional
        Two different cells of one value.
    of_whole : bool
        Whether fractions show that it does not matter which values are the same.
    has_fractions : bool
        Whether there were fractions, if that matters.

    Examples
    --------
    >>> spelling = Spelling()
    >>> spelling.add(pa.array([7, 7, None]), pa.array(["007", "7", ""]))
    >>> spelling.pair, spelling.is_kept
    (('007', '7'), False)
    >>> spelling = Spelling()
    >>> spelling.add(pa.array([7.0, 1.5, None]), pa.array(["7.0", "1.5", "NA"]))
    >>> spelling.is_kept
    True
    """

    ways: set[int] | None = None
    missing: set[str] = dataclasses.field(default_factory=set)
    seen: dict[Any, str] = dataclasses.field(default_factory=dict)
    pair: tuple[str, str] | None = None
    of_whole: bool = False
    has_fractions: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether every cell can be written again, from its value and the column's one way of spelling."""
        return self.ways != set() and len(self.missing) <= 1

    def add(self, values: Any, cells: Any, *, pairs: bool = True) -> None:
        """Add a block of values and the cells that they were read from; `pairs` asks for cells of one value."""
        is_value = pc.is_valid(values)
        if len(self.missing) <= 1:
            self.missing |= {cell or "" for cell in cells.filter(pc.invert(is_value)).unique().to_pylist()}
        values, cells = values.filter(is_value), cells.filter(is_value)
        if not len(values):
            return
        ways = spelled(values)
        if self.ways is None:
            self.ways = {*range(len(ways))}
        self.ways = {way for way in self.ways if pc.all(pc.equal(ways[way], cells)).as_py()}
        if self.of_whole and pa.types.is_floating(values.type):
            self.has_fractions |= not pc.all(pc.equal(values, pc.floor(values))).as_py()
        if self.has_fractions:
            self.pair = None
        elif pairs and self.pair is None:
            self._look_for_pair(values, ways[0], cells)

    def _look_for_pair(self, values: Any, usual: Any, cells: Any) -> None:
        if len(self.seen) >= MOST_VALUES:
            # Of two cells of one value, at least one is not spelled as usual.
            odd = pc.not_equal(usual, cells)
            values, usual, cells = values.filter(odd), usual.filter(odd), cells.filter(odd)
        distinct = pa.table({"value": usual, "cell": cells}).group_by(["value", "cell"]).aggregate([])
        for value, cell in zip(distinct["value"].to_pylist(), distinct["cell"].to_pylist(), strict=True):
            known = self.seen.get(value)
            if known is None and len(self.seen) < MOST_VALUES:
                self.seen[value] = cell
            elif known is not None and known != cell:
                self.pair = known, cell
                self.seen.clear()
                return


def spelled(values: Any) -> list[Any]:
    """Give the texts of values in the ways that a column may follow; the first is the one in which text is written.

    Examples
    --------
    >>> [way.to_pylist() for way in spelled(pa.array([7.0, 1e-7]))]
    [['7', '1e-7'], ['7.0', '1e-07']]
    """
    usual, kind = values.cast(pa.string()), values.type
    if pa.types.is_floating(kind):
        as_python = pc.if_else(
            pc.match_substring_regex(usual, "^-?[0-9]+$"), pc.binary_join_element_wise(usual, ".0", ""), usual
        )
        # Where one of the two writes an exponent, they differ.
        large = pc.abs(values)
        odd = pc.or_(pc.match_substring(usual, "e"), pc.or_(pc.greater_equal(large, 1e9), pc.less(large, 1e-3)))
        rare = pa.array([repr(value) for value in values.filter(odd).to_pylist()], pa.string())
        return [usual, pc.replace_with_mask(as_python, odd, rare)]
    if pa.types.is_boolean(kind):
        return [usual, pc.utf8_capitalize(usual)]
    if pa.types.is_timestamp(kind):
        return [usual, pc.replace_substring(usual, " ", "T")]
    return [usual]


def told(pairs: dict[str, tuple[str, str]]) -> str:
    """Say that cells of different spellings are one value."""
    shown = ", ".join(f"{one!r} and {other!r} in column {name!r}" for name, (one, other) in pairs.items())
    return (
        "Cells of different spellings are one value, since their columns were read as numbers, dates or booleans: "
        f"{shown}. If they are different categories, classes or groups, give text={[*pairs]} "
        f"(--text {','.join(pairs)})."
    )
