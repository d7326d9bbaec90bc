"""A row's own target never reaches its own training code: not one bit of it, priors and lone rows included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold as ScikitKFold

import gpu_encode
from tests import strategies
from tests.laws import encoding

SAFE_SCHEMES = {name: make for name, make in encoding.SCHEMES.items() if name != "greedy"} | {
    "given-folds": lambda: np.arange(30) % 3,
    "splitter": lambda: ScikitKFold(3, shuffle=True, random_state=1),
    "permutations": lambda: gpu_encode.Ordered(3, random_state=5),
    "permutation-columns": lambda: gpu_encode.Ordered(2, average=False, burn_in=2),
}


def scheme_for(name, size):
    scheme = SAFE_SCHEMES[name]()
    return scheme[:size] if isinstance(scheme, np.ndarray) else scheme


def flipped(data, drawn, row):
    """Return the rows with another target in one of them, of the same classes."""
    target = drawn.target.copy()
    if drawn.kind == "continuous":
        target[row] = data.draw(strategies.finite_numbers().filter(lambda value: value != drawn.target[row]))
    else:
        others = [label for label in np.unique(target).tolist() if label != target[row]]
        target[row] = data.draw(st.sampled_from(others))
    return strategies.Drawn(drawn.keys, target, drawn.weight, drawn.kind)


def own_code_changes(drawn, other, row, scheme, smooth, **choices):
    codes = [encoding.training_codes(rows, scheme(), smooth(), **choices)[row] for rows in (drawn, other)]
    return codes[0].tobytes() != codes[1].tobytes()


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", SAFE_SCHEMES)
@encoding.examples(4)
@given(data=st.data())
def test_a_flipped_target_leaves_the_own_code_alone(scheme, smoothing, kind, data):
    # Each class twice, so that a flip cannot take one away.
    drawn = data.draw(strategies.drawn_rows(kind, smallest=6, largest_size=14, nulls=True, each=2))
    row = data.draw(st.integers(0, drawn.size - 1))
    choices = {
        "prior": data.draw(st.sampled_from(["mean", "category_mean", 0.5])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
        "indicators": data.draw(st.booleans()),
    }
    make, _ = encoding.SMOOTHINGS[smoothing]
    other = flipped(data, drawn, row)
    assert not own_code_changes(drawn, other, row, lambda: scheme_for(scheme, drawn.size), make, **choices)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", ["k-fold", "leave-one-out", "ordered", "ordered-time", "holdout"])
@encoding.examples(4)
@given(data=st.data())
def test_nor_through_the_levels_of_a_hierarchy(scheme, smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(strategies.drawn_rows(kind, smallest=6, largest_size=14, each=2))
    row = data.draw(st.integers(0, drawn.size - 1))
    drawn.keys = np.array([key + str(place % 2) for place, key in enumerate(drawn.keys)], dtype=object)
    make, _ = encoding.SMOOTHINGS[smoothing]
    choices = {"hierarchy": {"key": gpu_encode.Prefixes(1)}}
    other = flipped(data, drawn, row)
    assert not own_code_changes(drawn, other, row, encoding.SCHEMES[scheme], make, **choices)


LEAKING_ROWS = strategies.Drawn(np.array(list("aabbabab"), dtype=object), np.arange(8) % 2, None, "binary")


def some_own_code_changes(scheme, columns=slice(None)):
    for row in range(LEAKING_ROWS.size):
        target = LEAKING_ROWS.target.copy()
        target[row] = 1 - target[row]
        before = encoding.training_codes(LEAKING_ROWS, scheme(), 1.0)[row, columns]
        other = strategies.Drawn(LEAKING_ROWS.keys, target, None, "binary")
        after = encoding.training_codes(other, scheme(), 1.0)[row, columns]
        if not np.array_equal(before, after):
            return True
    return False


def test_greedy_leaks():
    assert some_own_code_changes(gpu_encode.Greedy)


def test_greedy_warns():
    encoder = gpu_encode.TargetEncoder(cv=gpu_encode.Greedy(), target_type="binary")
    with pytest.warns(UserWarning, match="(?i)greedy"):
        encoder.fit_transform(LEAKING_ROWS.frame, LEAKING_ROWS.target)


def test_stratified_folds_leak_by_design():
    assert some_own_code_changes(lambda: gpu_encode.KFold(2, stratify=True))


def test_blown_up_columns_leak_by_design_in_all_columns_but_the_own_fold():
    assert some_own_code_changes(lambda: gpu_encode.KFold(3, blow_up=True))
    for row in range(LEAKING_ROWS.size):
        target = LEAKING_ROWS.target.copy()
        target[row] = 1 - target[row]
        other = strategies.Drawn(LEAKING_ROWS.keys, target, None, "binary")
        scheme = [
            encoding.training_codes(rows, gpu_encode.KFold(3, blow_up=True), 1.0) for rows in (LEAKING_ROWS, other)
        ]
        assert (scheme[0][row] == scheme[1][row]).sum() == 1


@pytest.mark.parametrize("scheme", ["time-folds", "time-folds-gap", "ordered-time"])
def test_schemes_by_time_look_at_earlier_rows_only(scheme):
    times = encoding.framed(["a"] * 23)["time"].to_numpy()
    for row, visible in enumerate(encoding.visibility(scheme, 23)):
        assert all(times[other] < times[row] for other in visible)


def test_grouped_folds_never_look_at_the_own_group():
    groups = encoding.framed(["a"] * 23)["group"].to_numpy()
    seen = encoding.visibility("groups", 23)
    for row, visible in enumerate(seen):
        assert all(groups[other] != groups[row] for other in visible)
    assert any(seen)
