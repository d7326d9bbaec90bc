"""A row's own target changes no bit of its own training encoding, including priors and categories of one row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold as ScikitKFold

import gpu_encode
from tests import strategies
from tests.cases import pairs
from tests.laws import encoding
from tests.strategies import examples

SAFE_SCHEMES = {name: scheme for name, scheme in encoding.SCHEMES.items() if name != "greedy"} | {
    "given-folds": np.arange(30) % 3,
    "splitter": ScikitKFold(3, shuffle=True, random_state=1),
    "permutations": gpu_encode.Ordered(2, random_state=5, block=3),
    "permutation-columns": gpu_encode.Ordered(2, average=False, burn_in=2),
}


def flip(data, drawn, row):
    """Return the rows, one of them with another target among the same classes."""
    target = drawn.target.copy()
    if drawn.kind == "continuous":
        target[row] = data.draw(strategies.finite_numbers().filter(lambda value: value != drawn.target[row]))
    else:
        others = [label for label in np.unique(target).tolist() if label != target[row]]
        target[row] = data.draw(st.sampled_from(others))
    return strategies.Drawn(drawn.keys, target, drawn.weight, drawn.kind)


def own_encodings(drawn, other, row, scheme, smooth, **choices):
    """Return the encodings of one row before and after the change."""
    scheme = scheme[: drawn.size] if isinstance(scheme, np.ndarray) else scheme
    return [encoding.training_encodings(rows, scheme, smooth, **choices)[row] for rows in (drawn, other)]


@pytest.mark.parametrize(("scheme", "smoothing", "kind"), pairs(SAFE_SCHEMES, encoding.SMOOTHINGS, strategies.KINDS))
@examples(3)
@given(data=st.data())
def test_a_flipped_target_leaves_the_own_encoding_alone(scheme, smoothing, kind, data):
    # Each class twice, so that a flip cannot take one away.
    drawn = data.draw(strategies.drawn_rows(kind, smallest=6, largest_size=14, nulls=True, each=2))
    row = data.draw(st.integers(0, drawn.size - 1))
    choices = {
        "prior": data.draw(st.sampled_from(["mean", "category_mean", 0.5])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
        "indicators": data.draw(st.booleans()),
    }
    smooth = encoding.SMOOTHINGS[smoothing]
    other = flip(data, drawn, row)
    before, after = own_encodings(drawn, other, row, SAFE_SCHEMES[scheme], smooth, **choices)
    assert before.tobytes() == after.tobytes()


LEAKING_ROWS = strategies.Drawn(np.array(list("aabbabab"), dtype=object), np.arange(8) % 2, None, "binary")


def leaking_columns(scheme):
    """Count, for each row, the columns of its encodings that change with its own target."""
    counts = []
    for row in range(LEAKING_ROWS.size):
        target = LEAKING_ROWS.target.copy()
        target[row] = 1 - target[row]
        other = strategies.Drawn(LEAKING_ROWS.keys, target, None, "binary")
        before, after = own_encodings(LEAKING_ROWS, other, row, scheme, 1.0)
        counts.append(int((before != after).sum()))
    return counts


def test_greedy_leaks_and_warns():
    assert any(leaking_columns(gpu_encode.Greedy()))
    encoder = gpu_encode.TargetEncoder(cv=gpu_encode.Greedy(), target_type="binary")
    with pytest.warns(UserWarning, match="(?i)greedy"):
        encoder.fit_transform(LEAKING_ROWS.frame, LEAKING_ROWS.target)


def test_stratified_folds_leak_by_design():
    assert any(leaking_columns(gpu_encode.KFold(2, stratify=True)))


def test_blown_up_columns_leak_by_design_in_all_columns_but_the_own_fold():
    assert leaking_columns(gpu_encode.KFold(3, blow_up=True)) == [2] * LEAKING_ROWS.size
