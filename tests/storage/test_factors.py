"""Encoders of factors load with the same bits; parts of a file that do not fit together are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_encode import CooccurrenceEncoder, SpectralEncoder, load
from tests.storage.altered import assert_refused, changed
from tests.storage.fitted import NEW, TABLE, WEIGHT
from tests.storage.test_round_trip import bits

NAMES = ["city", "device"]
ENCODERS: dict[str, Any] = {
    "spectral": SpectralEncoder(3, columns=NAMES),
    "spectral, joint": SpectralEncoder(columns=["zip", ("city", "device")], weighting="eta", ridge=1, indicators=True),
    "spectral, float32": SpectralEncoder(1, columns=["host"], dtype=np.float32, tol=np.float64(0.0)),
    "pairs": CooccurrenceEncoder(1, columns=[*NAMES, "zip"]),
    "pairs, groups": CooccurrenceEncoder(np.int64(2), pairs=(["zip"], [("city", "device"), "host"]), indicators=True),
    "pairs, rest": CooccurrenceEncoder(2, columns=[*NAMES, "host"], against="rest", weighting="ppmi", scale="root"),
    "pairs, counts": CooccurrenceEncoder(None, pairs=[("zip", "city"), ("city", "zip")], weighting="log"),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_loaded_encoder_is_the_one_saved(name: str, weight: Any, path: Path) -> None:
    encoder = ENCODERS[name].fit(TABLE, sample_weight=weight)
    encoder.save(path)
    content, again = path.read_bytes(), load(path)
    assert bits(again.transform(NEW)) == bits(encoder.transform(NEW))
    assert repr(again.get_params()) == repr(encoder.get_params())
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert np.array_equal(np.hstack(again.singular_values_), np.hstack(encoder.singular_values_))
    again.save(path)
    assert path.read_bytes() == content


FORGED = [
    ("spectral", "components", "singular_values", "the singular vectors are of"),
    ("spectral", "table", "singular_values", "the singular vectors are of"),
    ("spectral", "indicators", None, "what was learned has the fields"),
    ("pairs", "encoded", [0, 1], "tables are of the keys"),
    ("pairs", "encoded", [0, 0, 1, 1, 2, 9], "tables are of the keys"),
    ("pairs", "encoded", [0, 0, 1, 1, 0, 0], "the last of 3 keys has no table"),
    ("pairs", "others", [1, 2, 0, 2, 0, 7], "tables are against the keys"),
    ("pairs", "others", [1, 2, 0, 2, 0, None], "tables are against the keys"),
    ("pairs", "encoded", [0, 0, 1, 2, 2, 1], "tables are of"),
]


@pytest.mark.parametrize(("name", "field", "value", "message"), FORGED)
def test_fields_that_do_not_fit_together_are_refused(
    name: str, field: str, value: Any, message: str, path: Path
) -> None:
    ENCODERS[name].fit(TABLE).save(path)

    def change(document: Any) -> None:
        learned = document["learned"]
        if value is None:
            del learned[field]
        else:
            learned[field] = learned[value] if isinstance(value, str) else value

    assert_refused(path, changed(path.read_bytes(), change), message)
