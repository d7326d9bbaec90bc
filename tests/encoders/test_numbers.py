"""New rows of numbers, which may get codes without a category for each row: the same codes, and the same errors."""

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import Bits, TargetEncoder


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize(
    "options", [{}, {"indicators": True}, {"dtype": "float32"}, {"handle_missing": "error"}], ids=str
)
def test_new_numbers_get_the_codes_of_equal_ones(dtype, options):
    random = np.random.default_rng(0)
    known, given = random.integers(3, 60, 1000).astype(dtype), random.integers(0, 70, 3000).astype(dtype)
    y = random.integers(0, 2, 1000)
    encoder = TargetEncoder(target_type="binary", device="cpu", **options).fit(known[:, None], y)
    codes = dict(zip(encoder.categories_[0].tolist(), encoder.encodings_[0].tolist(), strict=True))
    found = encoder.transform(given[:, None])
    wanted = [[codes.get(value, encoder.target_mean_), value not in codes] for value in given.tolist()]
    assert found.tolist() == np.array(wanted)[:, : 1 + ("indicators" in options)].astype(found.dtype).tolist()
    assert len(codes) < 70


@pytest.mark.parametrize("options", [{}, {"hierarchy": {"x": Bits(3)}}, {"handle_unknown": -1.0}], ids=str)
def test_asking_for_indicators_changes_no_code(options):
    random = np.random.default_rng(1)
    known, given = (pa.table({"x": random.choice(64, 4000) * 3 // step}) for step in (2, 1))
    y = random.integers(0, 2, 4000)
    plain, flagged = (
        TargetEncoder(columns=["x"], target_type="binary", device="cpu", indicators=flags, **options).fit(known, y)
        for flags in (False, True)
    )
    found = flagged.transform(given)
    assert plain.transform(given)["x"].equals(found["x"])
    assert 0 < sum(found["x_unseen"].to_pylist()) < 4000


def test_unknown_numbers_are_refused_where_they_are_errors():
    known, new = np.arange(2000) % 90, np.arange(2000) % 91
    encoder = TargetEncoder(target_type="binary", device="cpu", handle_unknown="error").fit(known[:, None], known % 2)
    with pytest.raises(ValueError, match=r"90"):
        encoder.transform(new[:, None])
    assert encoder.transform(known[:, None]).shape == (2000, 1)


@pytest.mark.parametrize("missing", ["category", "nan"])
def test_a_null_among_numbers_keeps_its_policy(missing):
    encoder, table, with_null = of_numbers_and_a_null(missing)
    found = encoder.transform(with_null)["x"].to_numpy()
    np.testing.assert_array_equal(found[1:], encoder.transform(table)["x"].to_numpy()[1:])
    assert np.isnan(found[0]) if missing == "nan" else found[0] == encoder.target_mean_


def test_a_null_among_numbers_is_refused_where_it_is_an_error():
    encoder, _, with_null = of_numbers_and_a_null("error")
    with pytest.raises(ValueError, match="row 0"):
        encoder.transform(with_null)


def of_numbers_and_a_null(missing):
    known = np.arange(2000) % 90
    encoder = TargetEncoder(columns=["x"], target_type="binary", device="cpu", handle_missing=missing)
    table = pa.table({"x": known})
    return encoder.fit(table, known % 2), table, pa.table({"x": pa.array([None, *known[1:].tolist()])})
