"""Which pairs of keys are counted, and which keys this needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpu_encode.fitting.columns import Selection, read_columns, select
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import bad_option

Group = tuple[int, ...]


def select_pairs(frame: Frame | Pieces, columns: Any, pairs: Any, against: Any, owner: str) -> Selection:
    """Read the parameters `columns`, `pairs` and `against` of an encoder for a table.

    Keys that get encodings come first; columns that are only used in other keys do not pass through.
    """
    named = is_list_of_pairs(pairs) or is_pair_of_groups(pairs)
    if not named and not (isinstance(pairs, str) and pairs == "all"):
        allowed = ("'all'", "a list of pairs of keys", "a tuple of two lists of keys")
        raise bad_option(owner, "pairs", pairs, allowed)
    if named and (columns is not None or against is not None):
        raise ValueError(
            f"pairs={pairs!r} of {owner} names the keys itself. Leave out columns and against, or take pairs='all'."
        )
    if named:
        return number_pairs(frame, read_pairs(frame, pairs))
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
            f"Found {len(groups)} keys in {frame.n_columns} feature(s), and no other key with which {label} could be "
            f"counted: {owner} counts pairs of keys that share no column. Name at least one key of other columns."
        )
    return replace(number_pairs(frame, found, encoded=groups), everything=everything)


def is_list_of_pairs(pairs: Any) -> bool:
    """Tell whether a parameter lists pairs of keys."""
    return isinstance(pairs, list) and bool(pairs) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)


def is_pair_of_groups(pairs: Any) -> bool:
    """Tell whether a parameter is two lists of keys."""
    return isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(group, list) and group for group in pairs)


def read_pairs(frame: Frame | Pieces, pairs: Any) -> list[tuple[Group, Group]]:
    """Read pairs that are named, or all pairs of two groups."""
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
        raise ValueError("pairs names a pair twice. Name each once; a pair in the other direction is another one.")
    return read


def number_pairs(
    frame: Frame | Pieces, found: Sequence[tuple[Group, Group]], encoded: Sequence[Group] = ()
) -> Selection:
    """Number the keys of pairs; keys that get encodings come first."""
    firsts = list(encoded) or list(dict.fromkeys(one for one, _ in found))
    keys = list(dict.fromkeys([*firsts, *(other for _, other in found)]))
    numbers = {key: number for number, key in enumerate(keys)}
    selection = select(frame, [key[0] if len(key) == 1 else key for key in keys], None, ())
    pairs = [(numbers[one], numbers[other]) for one, other in found]
    return replace(selection, everything=False, pairs=pairs, others=len(keys) - len(firsts))
