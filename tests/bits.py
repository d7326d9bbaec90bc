"""Comparisons to the last bit: of encodings, and of everything that an encoder has learned."""

from typing import Any

import numpy as np

LEARNED = (
    "encodings_",
    "categories_",
    "target_mean_",
    "target_type_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
)


def assert_same_bits(found: Any, expected: Any) -> None:
    """Demand equal shapes and bits of arrays, frames or lists of floats; any two NaN count as equal."""
    found, expected = (np.array(values, dtype=np.float64) for values in (found, expected))
    assert found.shape == expected.shape
    different = (found.view(np.int64) != expected.view(np.int64)) & ~(np.isnan(found) & np.isnan(expected))
    where = np.argwhere(different).tolist()
    assert not where, f"{where}: {found[different].tolist()} is not {expected[different].tolist()}"


def plain(value: Any) -> Any:
    """Return type, shape and exact values of an array, or of each array in a list."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    array = np.asarray(value)
    # The text of a double has all its digits, and the sign of a zero.
    return array.dtype, array.shape, repr(array.tolist())


def learned(encoder: Any) -> dict[str, Any]:
    """Return the fitted attributes of an encoder, for a comparison, and the names of its columns."""
    found = {name: plain(getattr(encoder, name)) for name in LEARNED if hasattr(encoder, name)}
    return found | {"names": encoder.get_feature_names_out().tolist()}


def assert_same_encoder(found: Any, expected: Any) -> None:
    """Demand that two encoders have learned the same, to the bit."""
    mine, theirs = learned(found), learned(expected)
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name] == theirs[name], name
