"""What several tables say of one column, as one: their distinct values, and vectors of their rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices
from gpu_encode.categories.vocabulary import Vocabulary, union_of
from gpu_encode.errors.targets import incomparable_labels
from gpu_encode.errors.values import mixed_types
from gpu_encode.frames.device_vectors import NumberedLabels
from gpu_encode.frames.on_device import to_host
from gpu_encode.ops import through

NUMBERS = set("biuf")


def joined_vocabulary(found: dict[int, Vocabulary], column: object, role: str) -> tuple[Vocabulary, dict[int, Array]]:
    """Give the sorted vocabulary of all values, and the places in it of the values of each table.

    Parameters
    ----------
    found : dict of int to Vocabulary
        By the number of the table.
    column : str
        Name of the column, for messages.
    role : str
        What the tables are, for messages.
    """
    filled = {number: vocabulary.values for number, vocabulary in found.items() if len(vocabulary)}
    titles = [each.title for each in filled.values()]
    for number, each in filled.items():
        if each.title != titles[0]:
            raise mixed_types(column, titles[0], f"{each.title} (in {role}[{number}])")
    vocabulary, places = Vocabulary.sorted_from(union_of([each.values for each in found.values()]))
    ends = np.cumsum([len(each) for each in found.values()])
    return vocabulary, dict(zip(found, np.split(places, ends[:-1]), strict=True))


def joined(parts: Sequence[Any]) -> Any:
    """Values of all rows; labels stay numbered where those of all tables are."""
    filled = [part for part in parts if len(part)] or list(parts[:1])
    if not all(isinstance(part, NumberedLabels) for part in filled):
        return concatenated([part.fetched() if isinstance(part, NumberedLabels) else part for part in filled])
    every = np.concatenate([part.labels for part in filled])
    if len(kinds := sorted({type(label).__name__ for label in every})) > 1:
        raise incomparable_labels(kinds)
    labels, places = np.unique(every, return_inverse=True)
    ops = devices.cuda()
    tables = np.split(places, np.cumsum([len(part.labels) for part in filled])[:-1])
    codes = [through(table, part.codes, ops) for table, part in zip(tables, filled, strict=True)]
    return NumberedLabels(np.concatenate(codes), labels)


def concatenated(arrays: Sequence[Array]) -> Array:
    """Vectors as one, in a type that holds what all hold; on a device if all lie there and are of one type.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode.frames.joining import concatenated
    >>> concatenated([np.array([1, 2]), np.array(["a"])])
    array([1, 2, 'a'], dtype=object)
    """
    filled = [array for array in arrays if len(array)] or list(arrays[:1])
    on_host = [isinstance(array, np.ndarray) for array in filled]
    if len({array.dtype for array in filled}) == 1 and len(set(on_host)) == 1:
        return filled[0] if len(filled) == 1 else np.concatenate(filled)
    held = [array if here else to_host(array) for array, here in zip(filled, on_host, strict=True)]
    kinds = {array.dtype.kind for array in held}
    if kinds <= NUMBERS | {"O"} and kinds != {"O"}:
        # Nothing but nulls says no more of the type than NaN.
        held = [np.full(len(array), np.nan) if _is_all_null(array) else array for array in held]
        kinds = {array.dtype.kind for array in held}
    if len(kinds) > 1 and not kinds <= NUMBERS:
        # NumPy would turn numbers beside text into text without a word.
        return np.concatenate([array.astype(object) for array in held])
    found = np.concatenate(held)
    if found.dtype.kind != "f" or "f" in kinds:
        return found
    # Signed and unsigned integers, which NumPy makes floats of.
    for target in (np.dtype(np.int64), np.dtype(np.uint64)):
        if all(_fits(array, target) for array in held):
            return np.concatenate([array.astype(target) for array in held])
    return np.concatenate([array.astype(object) for array in held])


def _is_all_null(array: Array) -> bool:
    return array.dtype.kind == "O" and all(value is None for value in array)


def _fits(array: Array, target: "np.dtype[Any]") -> bool:
    limits = np.iinfo(target)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max
