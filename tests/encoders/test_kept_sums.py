"""What is kept of a fit gives the codes of the fit: sums are carried when they are saved, pickled or merged."""

import pickle

import numpy as np
import pytest

from gpu_encode import LeaveOneOut, TargetEncoder, load

DRAW = np.random.default_rng(0)
# Every cell fits an int64 with room to spare; squares, or even the sums, of all of them together do not.
TARGETS = {
    "near 1e9": (np.repeat(np.arange(20), 2), DRAW.integers(600_000_000, 1_000_000_000, 40)),
    "near 2**61": (np.arange(10), np.full(10, 2**61 - 3 * 2**29)),
    "of either sign": (np.arange(12), np.tile([2**61 - 3 * 2**29, -(2**61) + 2**30], 6)),
    "real": (np.repeat(np.arange(20), 2), DRAW.standard_normal(40) * 1e100),
}


def copied(encoder):
    return pickle.loads(pickle.dumps(encoder))


def codes(encoder):
    new = encoder.transform([[int(value)] for value in (*encoder.categories_[0], 10**6)])
    return [new.tobytes(), encoder.encodings_[0].tobytes(), np.float64(encoder.target_mean_).tobytes()]


@pytest.mark.parametrize("smooth", ["auto", 2.0])
@pytest.mark.parametrize("name", TARGETS)
def test_kept_sums_give_the_codes_of_the_fit(name, smooth, tmp_path):
    keys, y = TARGETS[name]
    X = keys[:, None]

    def new():
        return TargetEncoder(target_type="continuous", smooth=smooth)

    encoder = new().fit(X, y)
    wanted = codes(encoder)
    assert codes(copied(encoder)) == wanted
    encoder.save(tmp_path / "encoder.model")
    assert codes(load(tmp_path / "encoder.model")) == wanted
    parts = new()
    for rows in (slice(0, 3), slice(3, 7), slice(7, None)):
        parts.partial_fit(X[rows], y[rows])
    assert codes(parts) == wanted
    assert codes(new().fit(X[5:], y[5:]).merge(new().fit(X[:5], y[:5]))) == wanted
    kept = [pickle.dumps(copied(each)._model.statistics) for each in (encoder, parts)]
    assert kept[0] == kept[1]


def test_nobody_is_warned_of_codes_that_no_row_gets(recwarn):
    encoder = TargetEncoder(cv=LeaveOneOut(), handle_unknown=1e300, dtype="float32", target_type="binary")
    assert np.isfinite(encoder.fit_transform([["a"]] * 3 + [["b"]] * 3, [0, 1, 1, 0, 0, 1])).all()
    assert not recwarn.list
