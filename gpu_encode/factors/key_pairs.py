"""Which pairs of keys are counted, and which keys that asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_encode.errors.parameters import bad_option
from gpu_encode.fitting.columns import Selection, read_columns
from gpu_encode.fitting.fit import FitContext
from gpu_encode.frames import Frame, Pieces

Group = tuple[int, ...]


@dataclass(frozen=True)
class KeyPairs:
    """Pairs of keys, by their places in a list that begins with the keys that get encodings.

    Parameters
    ----------
    keys : list of tuple of int
        Columns of each key, by position.
    n_encoded : int
        So many of the keys get encodings; the others are what these are counted against.
    pairs : list of tuple of int
        The key that gets encodings, and the one that it is counted against.
    everything : bool
        Whether all columns are encoded, each by itself, because none were named.
    against_rest : bool
        Whether each key is counted against all other columns together.
    """

    keys: list[Group]
    n_encoded: int
    pairs: list[tuple[int, int]]
    everything: bool
    against_rest: bool

    @property
    def columns(self) -> list[Any]:
        """The keys, as the parameter `columns` lists them."""
        return [group[0] if len(group) == 1 else group for group in self.keys]

    def without_others(self, context: FitContext) -> FitContext:
        """Give what was read of the keys that get encodings alone; new rows need no column of the others."""
        number, selection = self.n_encoded, context.selection
        entries = selection.entries[:number]
        encoded = {column for entry in entries for column in entry.columns}
        read = {column for entry in selection.entries for column in entry.columns}
        kept = Selection(entries, selection.passed, sorted(read - encoded), self.everything)
        return replace(
            context,
            selection=kept,
            categories=context.categories[:number],
            rules=context.rules[:number],
            tasks=context.tasks[:number],
        )


def plan_pairs(frame: Frame | Pieces, columns: Any, pairs: Any, against: Any, owner: str) -> KeyPairs:
    """Read the parameters `columns`, `pairs` and `against` of an encoder against a table."""
    named = is_list_of_pairs(pairs) or is_pair_of_groups(pairs)
    if not named and not (isinstance(pairs, str) and pairs == "all"):
        allowed = ("'all'", "a list of pairs of keys", "a tuple of two lists of keys")
        raise bad_option(owner, "pairs", pairs, allowed)
    if named and (columns is not None or against is not None):
        raise ValueError(
            f"pairs={pairs!r} of {owner} names the keys itself. Leave out columns and against, or take pairs='all'."
        )
    if named:
        return number_pairs(read_pairs(frame, pairs), everything=False, against_rest=False)
    everything = columns is None
    groups = [(position,) for position in range(frame.n_columns)] if everything else read_columns(frame, columns)
    if against == "rest":
        read = {position for group in groups for position in group}
        found = [(group, tuple(sorted(read - {*group}))) for group in groups if read - {*group}]
    else:
        found = [(one, other) for one in groups for other in groups if not {*one} & {*other}]
    if lonely := [group for group in groups if group not in {one for one, _ in found}]:
        label = ", ".join(repr(frame.label(position)) for position in lonely[0])
        raise ValueError(
            f"Found {len(groups)} keys in {frame.n_columns} feature(s), and nothing that {label} could be counted "
            f"against: {owner} counts pairs of keys that share no column. Name at least one key of other columns."
        )
    return number_pairs(found, everything=everything, against_rest=against == "rest", encoded=groups)


def is_list_of_pairs(pairs: Any) -> bool:
    """Tell whether a parameter lists pairs of keys."""
    return isinstance(pairs, list) and bool(pairs) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)


def is_pair_of_groups(pairs: Any) -> bool:
    """Tell whether a parameter is two lists of keys."""
    return isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(group, list) and group for group in pairs)


def read_pairs(frame: Frame | Pieces, pairs: Any) -> list[tuple[Group, Group]]:
    """Read pairs that are named, or all of one group with another."""
    if isinstance(pairs, tuple):
        first, second = (read_columns(frame, group) for group in pairs)
        read = [(one, other) for one in first for other in second]
    else:
        read = [(read_columns(frame, [one])[0], read_columns(frame, [other])[0]) for one, other in pairs]
    for one, other in read:
        if {*one} & {*other}:
            shared = frame.label(min({*one} & {*other}))
            raise ValueError(f"pairs: two keys of a pair share the column {shared!r}. Name keys of different columns.")
    if len(set(read)) < len(read):
        raise ValueError("pairs names a pair twice. Name each once; a pair the other way round is another one.")
    return read


def number_pairs(
    found: Sequence[tuple[Group, Group]], everything: bool, against_rest: bool, encoded: Sequence[Group] = ()
) -> KeyPairs:
    """Number the keys of pairs, those that get encodings first."""
    firsts = list(encoded) or list(dict.fromkeys(one for one, _ in found))
    keys = list(dict.fromkeys([*firsts, *(other for _, other in found)]))
    place = {key: number for number, key in enumerate(keys)}
    return KeyPairs(keys, len(firsts), [(place[one], place[other]) for one, other in found], everything, against_rest)
