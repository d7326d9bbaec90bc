"""What must not matter: the order of rows, names, pieces, and whether a row is weighted or repeated."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from gpu_encode import ops
from tests import strategies
from tests.laws import encoding

ASKED = [*strategies.KEYS, None, "never seen"]


def drawn_of(data, kind=None, **choices):
    return data.draw(strategies.drawn_rows(kind or data.draw(st.sampled_from(strategies.KINDS)), **choices))


def taken(drawn, rows):
    weight = None if drawn.weight is None else drawn.weight[rows]
    return strategies.Drawn(drawn.keys[rows], drawn.target[rows], weight, drawn.kind)


def table(drawn, smoothing, backend="numpy", asked=ASKED, **choices):
    make, _ = encoding.SMOOTHINGS[smoothing]
    return encoding.transformed_codes(drawn, asked, 3, make(), backend, **choices)


def choices_of(data):
    return {
        "prior": data.draw(st.sampled_from(["mean", "category_mean", 0.5])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
    }


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(8)
@given(data=st.data())
def test_whole_weights_are_repeated_rows(smoothing, backend, data):
    drawn = drawn_of(data, nulls=True, each=2, weighted=False)
    # Each class keeps a row: a class of no rows at all would be another target.
    kept = st.integers(1, 4) if drawn.kind != "continuous" else st.integers(0, 4)
    counts = np.array(data.draw(st.lists(kept, min_size=drawn.size, max_size=drawn.size).filter(any)))
    drawn.weight = counts.astype(data.draw(st.sampled_from([float, int, np.float32])))
    repeated = taken(drawn, np.repeat(np.arange(drawn.size), counts))
    repeated.weight = None
    choices = choices_of(data)
    found = table(drawn, smoothing, backend, **choices)
    encoding.assert_same_bits(found, table(repeated, smoothing, backend, **choices))


@pytest.mark.parametrize("scheme", ["given-folds", "leave-one-out", "ordered-time"])
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(5)
@given(data=st.data())
def test_rows_of_no_weight_change_no_other_code(smoothing, scheme, data):
    drawn = drawn_of(data, "continuous", nulls=True)
    drawn.weight = np.array(data.draw(st.lists(st.integers(0, 1), min_size=drawn.size, max_size=drawn.size)), float)
    drawn.weight[-3:] = 1.0
    folds, kept = np.arange(drawn.size) % 3, np.flatnonzero(drawn.weight)
    make, _ = encoding.SMOOTHINGS[smoothing]
    frame = encoding.framed(drawn.keys)

    def codes(rows):
        part = taken(drawn, rows)
        cv = folds[rows] if scheme == "given-folds" else encoding.SCHEMES[scheme]()
        names = ["key", "time"] if scheme == "ordered-time" else ["key"]
        return encoding.fit_transform(frame[names].iloc[rows], part.target, part.weight, cv, make(), "continuous")

    # The last three rows are in three folds, so no fold loses all that it looks at.
    encoding.assert_same_bits(codes(kept), codes(np.arange(drawn.size))[kept])


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(8)
@given(data=st.data())
def test_the_order_of_rows_does_not_matter_to_the_table(smoothing, backend, data):
    drawn = drawn_of(data, nulls=True)
    shuffled = taken(drawn, np.array(data.draw(st.permutations(range(drawn.size)))))
    choices = choices_of(data)
    found = table(shuffled, smoothing, backend, **choices)
    encoding.assert_same_bits(found, table(drawn, smoothing, backend, **choices))


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(8)
@given(data=st.data())
def test_names_of_categories_do_not_matter(smoothing, backend, data):
    drawn = drawn_of(data)
    names = data.draw(
        st.sampled_from([["z", "yy", "", "ä", "None"], [5, 4, -3, 0, 10**12], [0.5, -1.5, 2.0, 1e300, 7.0]])
    )
    renaming = dict(zip(strategies.KEYS, names, strict=True))
    keys = np.array([renaming[key] for key in drawn.keys], dtype=object)
    renamed = strategies.Drawn(keys, drawn.target, drawn.weight, drawn.kind)
    make, _ = encoding.SMOOTHINGS[smoothing]
    found, expected = (encoding.training_codes(rows, 3, make(), backend) for rows in (renamed, drawn))
    encoding.assert_same_bits(found, expected)
    present = list(dict.fromkeys(drawn.keys))
    found = table(renamed, smoothing, backend, [renaming[key] for key in present])
    encoding.assert_same_bits(found, table(drawn, smoothing, backend, present))


def pieces_of(data, drawn):
    cuts = sorted(data.draw(st.lists(st.integers(1, drawn.size - 1), max_size=3, unique=True)))
    rows = np.split(np.arange(drawn.size), cuts)
    if drawn.kind != "continuous":
        # A piece is of the target type only if it has all classes.
        complete = [len(np.unique(drawn.target[part])) == len(np.unique(drawn.target)) for part in rows]
        rows = rows if all(complete) else [np.arange(drawn.size)]
    if drawn.weight is not None and not all(drawn.weight[part].any() for part in rows):
        rows = [np.arange(drawn.size)]
    return [taken(drawn, part) for part in rows]


def encoder_for(data, drawn):
    smoothing = data.draw(st.sampled_from(sorted(encoding.SMOOTHINGS)))
    make, _ = encoding.SMOOTHINGS[smoothing]
    choices = choices_of(data)
    return lambda: encoding.encoder(3, make(), drawn.kind, **choices)


def assert_same_state(found, expected):
    asked = np.array(ASKED, dtype=object).reshape(-1, 1)
    encoding.assert_same_bits(found.transform(asked), expected.transform(asked))
    for mine, other in zip(found.encodings_, expected.encodings_, strict=True):
        encoding.assert_same_bits(mine, other)
    for mine, other in zip(found.categories_, expected.categories_, strict=True):
        assert mine.tolist() == other.tolist()
    encoding.assert_same_bits(np.atleast_1d(found.target_mean_), np.atleast_1d(expected.target_mean_))


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@encoding.examples(30)
@given(data=st.data())
def test_partial_fits_equal_one_fit(backend, data):
    drawn = drawn_of(data, nulls=True)
    make = encoder_for(data, drawn)
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = make().fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
        parts = make()
        for part in pieces_of(data, drawn):
            parts.partial_fit(part.frame, part.target, sample_weight=part.weight)
        assert_same_state(parts, whole)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@encoding.examples(30)
@given(data=st.data())
def test_merged_parts_equal_the_whole(backend, data):
    drawn = drawn_of(data, nulls=True)
    make = encoder_for(data, drawn)
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = make().fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
        pieces = data.draw(st.permutations(pieces_of(data, drawn)))
        parts = [make().fit(part.frame, part.target, sample_weight=part.weight) for part in pieces]
        merged = parts[0].merge(*parts[1:])
        assert merged is parts[0]
        assert_same_state(merged, whole)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("scheme", encoding.SCHEMES)
@encoding.examples(3)
@given(data=st.data())
def test_a_constant_target_is_its_own_code(scheme, smoothing, backend, data):
    drawn = drawn_of(data, "continuous", nulls=True)
    constant = data.draw(strategies.finite_numbers())
    drawn.target = np.full(drawn.size, constant)
    make, _ = encoding.SMOOTHINGS[smoothing]
    prior = data.draw(st.sampled_from(["mean", "category_mean"]))
    codes = encoding.training_codes(drawn, encoding.SCHEMES[scheme](), make(), backend, prior=prior)
    # A row that sees none has no code, whatever the target.
    assert (codes[~np.isnan(codes)] == constant).all()
    assert (table(drawn, smoothing, backend, prior=prior) == constant).all()


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(6)
@given(data=st.data())
def test_a_category_has_a_code_per_fold_and_one_for_new_rows(smoothing, data):
    drawn = drawn_of(data, "continuous", largest_size=40, nulls=True)
    folds = data.draw(st.integers(2, 4))
    make, _ = encoding.SMOOTHINGS[smoothing]
    codes = encoding.training_codes(drawn, folds, make())[:, 0]
    new = table(drawn, smoothing, asked=drawn.keys)[:, 0]
    for key in set(drawn.keys):
        mine = np.array([other == key for other in drawn.keys])
        assert len(np.unique(codes[mine].view(np.int64))) <= folds
        assert len(np.unique(new[mine].view(np.int64))) == 1


@pytest.mark.parametrize("scheme", ["k-fold", "leave-one-out", "ordered", "greedy"])
@encoding.examples(6)
@given(data=st.data())
def test_several_targets_are_each_encoded_alone(scheme, data):
    drawn = drawn_of(data, "continuous", weighted=False)
    targets = np.array([data.draw(strategies.numbers(drawn.size)) for _ in range(3)]).T
    keys = drawn.frame
    together = encoding.fit_transform(keys, targets, None, encoding.SCHEMES[scheme](), "auto", "continuous")
    alone = [
        encoding.fit_transform(keys, target, None, encoding.SCHEMES[scheme](), "auto", "continuous")
        for target in targets.T
    ]
    encoding.assert_same_bits(together, np.hstack(alone))


def test_a_target_of_one_class_is_encoded_as_zero():
    encoder = gpu_encode.TargetEncoder(cv=2, target_type="binary")
    codes = encoder.fit_transform(np.array([["a"], ["b"], ["a"], ["b"]], dtype=object), ["yes"] * 4)
    assert (np.asarray(codes) == 0).all()
