"""Names and pieces change no bit; definitions do not depend on the order of rows, and weights repeat rows."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpu_encode.seam import ops
from tests import strategies
from tests.bits import assert_same_bits, assert_same_encoder
from tests.cases import some_of
from tests.laws import encoding
from tests.strategies import examples

ASKED = [*strategies.KEYS, None, "never seen"]


def drawn_of(data, kind=None, **choices):
    return data.draw(strategies.drawn_rows(kind or data.draw(st.sampled_from(strategies.KINDS)), **choices))


def take(drawn, rows):
    weight = None if drawn.weight is None else drawn.weight[rows]
    return strategies.Drawn(drawn.keys[rows], drawn.target[rows], weight, drawn.kind)


def table(drawn, smoothing, backend="numpy", asked=ASKED, **choices):
    smooth = encoding.SMOOTHINGS[smoothing]
    return encoding.new_row_encodings(drawn, asked, 3, smooth, backend, **choices)


def choices_of(data):
    return {
        "prior": data.draw(st.sampled_from(["mean", "category_mean", 0.5])),
        "min_count": data.draw(st.sampled_from([0, 2])),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
    }


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(8)
@given(data=st.data())
def test_names_of_categories_do_not_matter(smoothing, backend, data):
    drawn = drawn_of(data)
    names = data.draw(
        st.sampled_from([["z", "yy", "", "ä", "None"], [5, 4, -3, 0, 10**12], [0.5, -1.5, 2.0, 1e300, 7.0]])
    )
    renaming = dict(zip(strategies.KEYS, names, strict=True))
    keys = np.array([renaming[key] for key in drawn.keys], dtype=object)
    renamed = strategies.Drawn(keys, drawn.target, drawn.weight, drawn.kind)
    smooth = encoding.SMOOTHINGS[smoothing]
    encodings, expected = (encoding.training_encodings(rows, 3, smooth, backend) for rows in (renamed, drawn))
    assert_same_bits(encodings, expected)
    present = list(dict.fromkeys(drawn.keys))
    encodings = table(renamed, smoothing, backend, [renaming[key] for key in present])
    assert_same_bits(encodings, table(drawn, smoothing, backend, present))


def pieces_of(data, drawn):
    cuts = sorted(data.draw(st.lists(st.integers(1, drawn.size - 1), max_size=3, unique=True)))
    rows = np.split(np.arange(drawn.size), cuts)
    if drawn.kind != "continuous":
        # A piece is of the target type only if it has all classes.
        assume(all(set(drawn.target[part]) == set(drawn.target) for part in rows))
    assume(drawn.weight is None or all(drawn.weight[part].any() for part in rows))
    return [take(drawn, part) for part in rows]


def encoder_for(data, drawn):
    smoothing = data.draw(st.sampled_from(sorted(encoding.SMOOTHINGS)))
    smooth = encoding.SMOOTHINGS[smoothing]
    choices = choices_of(data)
    return lambda: encoding.encoder(3, smooth, drawn.kind, **choices)


def fit_drawn(encoder, drawn):
    return encoder.fit(drawn.frame, drawn.target, sample_weight=drawn.weight)


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@examples(30)
@given(data=st.data())
def test_partial_fits_and_merged_parts_equal_one_fit(backend, data):
    drawn = drawn_of(data, nulls=True, each=2)
    make, pieces = encoder_for(data, drawn), pieces_of(data, drawn)
    asked = np.array(ASKED, dtype=object).reshape(-1, 1)
    with ops.use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole, parts = fit_drawn(make(), drawn), make()
        for part in pieces:
            parts.partial_fit(part.frame, part.target, sample_weight=part.weight)
        merged, *others = [fit_drawn(make(), part) for part in data.draw(st.permutations(pieces))]
        assert merged.merge(*others) is merged
        for encodings in (parts, merged):
            assert_same_encoder(encodings, whole)
            assert_same_bits(encodings.transform(asked), whole.transform(asked))


@pytest.mark.parametrize("backend", encoding.BACKENDS)
@pytest.mark.parametrize(("scheme", "smoothing"), some_of(encoding.SCHEMES, encoding.SMOOTHINGS, 4))
@examples(3)
@given(data=st.data())
def test_a_constant_target_is_its_own_encoding(scheme, smoothing, backend, data):
    drawn = drawn_of(data, "continuous", nulls=True)
    constant = data.draw(strategies.finite_numbers())
    drawn.target = np.full(drawn.size, constant)
    smooth = encoding.SMOOTHINGS[smoothing]
    prior = data.draw(st.sampled_from(["mean", "category_mean"]))
    encodings = encoding.training_encodings(drawn, encoding.SCHEMES[scheme], smooth, backend, prior=prior)
    # A row that sees none has no encoding, whatever the target.
    assert (encodings[~np.isnan(encodings)] == constant).all()
    assert (table(drawn, smoothing, backend, prior=prior) == constant).all()
