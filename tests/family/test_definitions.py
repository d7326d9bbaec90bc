"""Statistics, order statistics and weights of evidence of drawn rows, compared with definitions in plain Python."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import Greedy, StatisticEncoder, WeightOfEvidenceEncoder
from tests import naive, strategies
from tests.bits import assert_same_bits
from tests.cases import some_of
from tests.family.drawn import ORDERS, STATISTICS, describe, training_encodings, weights_of
from tests.laws import encoding


def nearest_root(value):
    """Return the square root of an exact number, rounded to 53 digits whatever the exponent, as variances are."""
    places = max(120 - (value.numerator.bit_length() - value.denominator.bit_length()), 0) // 2 + 1
    scaled, rest = divmod(value.numerator << (2 * places), value.denominator)
    root = math.isqrt(scaled)
    # A further binary digit marks a root that is not whole.
    return naive.nearest(naive.rounded(Fraction(2 * root + (rest > 0 or root * root < scaled), 2 << places)))


def statistics_of(rows, ddof):
    """Return the statistics of (target, weight) pairs: exact, and then rounded."""
    sums = naive.Sums()
    for target, weight in rows:
        sums.add(naive.exact(target), naive.exact(weight))
    variance = sums.sample_variance if ddof else sums.population_variance if sums.weight else 0
    count, deviation = naive.nearest(sums.weight), nearest_root(Fraction(variance))
    spread = [naive.nearest(variance), deviation, deviation / math.sqrt(count) if count else math.nan]
    spread = spread if sums.weight > ddof else [math.nan] * 3
    return [count, naive.nearest(sums.total), sums.mean, *spread]


def state_statistics(keys, rows, key, visible, ddof):
    """Return all statistics for a row with this key, from the rows that it sees; without rows: no count and no sum."""
    members = [rows[row] for row in visible if keys[row] == key and rows[row][1] > 0]
    numbers = statistics_of(members or [rows[row] for row in visible], ddof)
    return numbers if members else [0.0, 0.0, *numbers[2:]]


def state_orders(keys, rows, key, visible):
    """Return all order statistics; a row of weight w is w rows."""
    seen = [(keys[row], rows[row][0]) for row in visible for _ in range(int(rows[row][1]))]
    members = [target for other, target in seen if other == key]
    numbers = describe(members or [target for _, target in seen], ORDERS)
    return numbers if members else [*numbers[:5], 0.0, *numbers[6:]]


def state_evidence(keys, rows, key, visible, regularization, label=1):
    """Return the weight of evidence of one label, the real number rounded once."""
    members = [row for row in visible if keys[row] == key and rows[row][1] > 0]
    if not members:
        return [0.0]
    r = Fraction(regularization)

    def total(chosen, positive):
        return sum((Fraction(rows[row][1]) for row in chosen if (rows[row][0] == label) == positive), Fraction(0))

    shares = [(total(members, positive) + r, total(visible, positive) + 2 * r) for positive in (True, False)]
    if any(above == below == 0 for above, below in shares):
        return [0.0]
    with_label, with_others = (above / below for above, below in shares)
    if 0 in (with_label, with_others):
        return [math.inf if with_others == 0 else -math.inf]
    with localcontext(prec=150):
        quotient = with_label / with_others
        return [float((Decimal(quotient.numerator) / Decimal(quotient.denominator)).ln())]


def state_evidence_of_classes(*given, regularization):
    return [state_evidence(*given, regularization, label)[0] for label in range(3)]


# An encoder with its parameters, the kind of target, and the definition of a row's encodings.
DEFINITIONS = {
    "statistics": (partial(StatisticEncoder, statistics=STATISTICS), "continuous", partial(state_statistics, ddof=1)),
    "statistics of all": (
        partial(StatisticEncoder, statistics=STATISTICS, ddof=0),
        "continuous",
        partial(state_statistics, ddof=0),
    ),
    "order statistics": (partial(StatisticEncoder, statistics=ORDERS), "continuous", state_orders),
    **{
        f"evidence, {regularization}": (
            partial(WeightOfEvidenceEncoder, regularization=regularization),
            "binary",
            partial(state_evidence, regularization=regularization),
        )
        for regularization in (0.0, 0.5)
    },
    "evidence of classes": (
        WeightOfEvidenceEncoder,
        "multiclass",
        partial(state_evidence_of_classes, regularization=1.0),
    ),
}
# Order statistics are sorted on the host, and need no sums of the rows before a row.
CASES = [
    pytest.param(name, scheme, marks=pytest.mark.host if name == "order statistics" else ())
    for name, scheme in some_of(DEFINITIONS, sorted(encoding.SCHEMES))
    if name != "order statistics" or "ordered" not in scheme
]


def assert_as_defined(name, found, expected):
    """Demand the bits of the definition; for weights of evidence, values within 4 ulp."""
    if "evidence" not in name:
        assert_same_bits(found, expected)
        return
    found, expected = np.asarray(found), np.asarray(expected)
    ends = np.isinf(expected)
    assert (found[ends] == expected[ends]).all()
    found, expected = found[~ends], expected[~ends]
    assert (np.abs(found - expected) <= 4 * np.spacing(np.abs(expected)) + 2.0**-100).all()


def draw_rows(data, name, **choices):
    """Draw rows as an encoder takes them, and list their targets and weights; order statistics take whole weights."""
    whole = name == "order statistics"
    drawn = data.draw(strategies.drawn_rows(DEFINITIONS[name][1], weighted=not whole, **choices))
    if whole and data.draw(st.booleans()):
        times = st.lists(st.integers(0, 3), min_size=drawn.size, max_size=drawn.size)
        drawn.weight = np.array(data.draw(times.filter(any)))
    return drawn, list(zip(drawn.target.tolist(), weights_of(drawn), strict=True))


@pytest.mark.long
@pytest.mark.parametrize(("name", "scheme"), CASES)
@strategies.examples(5)
@given(data=st.data())
def test_training_encodings(name, scheme, data):
    drawn, rows = draw_rows(data, name, size=data.draw(st.sampled_from(encoding.SIZES)))
    make, _, state = DEFINITIONS[name]
    keys, visible = list(drawn.keys), list(encoding.visibility(scheme, drawn.size))
    if scheme == "ordered":
        # The first row of a random order sees all others instead; without rows there is no evidence.
        keys[encoding.random_order(scheme, drawn.size)[0]] = "never seen"
    expected = [state(drawn.keys, rows, key, seen) for key, seen in zip(keys, visible, strict=True)]
    assert_as_defined(name, training_encodings(make, drawn, scheme), expected)


@pytest.mark.parametrize("name", DEFINITIONS)
@strategies.examples(10)
@given(data=st.data())
def test_new_rows_see_all_rows(name, data):
    drawn, rows = draw_rows(data, name, nulls=True)
    make, _, state = DEFINITIONS[name]
    encoder = make().fit(drawn.frame, drawn.target, sample_weight=drawn.weight)
    new = np.append(drawn.keys, "never seen")
    expected = [state(drawn.keys, rows, key, range(drawn.size)) for key in new]
    assert_as_defined(name, encoder.transform(new.reshape(-1, 1)), expected)


def test_tiny_targets_have_a_deviation():
    encoder = StatisticEncoder(["var", "std"]).fit([["a"], ["a"]], [1e-300, 3e-300])
    expected = statistics_of([(1e-300, 1), (3e-300, 1)], 1)
    assert [table.tolist() for table in encoder.encodings_] == [[0.0], [expected[4]]]


@pytest.mark.parametrize("heavy", [1e9, 1e17])
def test_light_rows_beside_heavy_ones_keep_their_digits(heavy):
    weight = np.array([heavy, 1e-3, 1.0, 1.0])
    for labels, number in (([0, 1, 0, 1], 0), ([1, 0, 1, 2], 1)):
        encoder = WeightOfEvidenceEncoder(Greedy(), 0.0).fit([["a"], ["a"], ["b"], ["b"]], labels, sample_weight=weight)
        rows = list(zip(labels, weight.tolist(), strict=True))
        expected = [state_evidence("aabb", rows, key, range(4), 0.0, 1)[0] for key in "ab"]
        assert_as_defined("evidence", encoder.encodings_[number], expected)
        assert np.isfinite(expected).all()
