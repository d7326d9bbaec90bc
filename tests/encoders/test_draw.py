"""`draw` gives the training encodings of one random order, by its number, without a fit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from cpu_fallback.row_numbers import Permutation, ranks_of
from gpu_encode import (
    CatBoostEncoder,
    GradientEncoder,
    ImpactEncoder,
    KFold,
    LeaveOneOut,
    Ordered,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)
from gpu_encode.schemes.plans import seed_of
from tests.bits import assert_same_bits, learned

KEYS = ["city", "zip", ("city", "shop")]
PAIRS = pd.DataFrame({"gradient": np.linspace(-1, 2, 12), "hessian": np.linspace(0.5, 1, 12)})
ENCODERS = {
    "target": TargetEncoder(columns=KEYS, target_type="continuous"),
    "plain": TargetEncoder(columns=KEYS, smooth=None, dtype="float32", indicators=["missing"]),
    "hierarchy": TargetEncoder(columns=["zip"], hierarchy={"zip": ["city"]}, smooth=2.0, target_type="continuous"),
    "catboost": CatBoostEncoder(columns=KEYS, target_type="continuous"),
    "borders": CatBoostEncoder("borders", columns=KEYS, borders=3),
    "counts": CatBoostEncoder("frequency", columns=KEYS),
    "statistic": StatisticEncoder(["mean", "var"], columns=KEYS),
    "impact": ImpactEncoder(columns=KEYS, target_type="continuous"),
    "evidence": WeightOfEvidenceEncoder(columns=KEYS),
    "gradient": GradientEncoder(columns=KEYS),
}
SCHEMES = {
    "usual": {},
    "burn-in": {"burn_in": 3, "random_state": 5},
    "block": {"block": 4, "random_state": 2},
}


def apart(encoder, number, **scheme):
    """Give an encoder that has a column for each of several orders."""
    return type(encoder)(**{**encoder.get_params(deep=False), "cv": Ordered(number, average=False, **scheme)})


def target_of(name, y, labels):
    return {"evidence": labels, "gradient": PAIRS, "plain": labels}.get(name, y)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ENCODERS)
def test_a_draw_is_the_column_of_its_order(name, scheme, frame, y, labels):
    y, weight = target_of(name, y, labels), np.arange(1.0, 13) if scheme == "burn-in" else None
    frame = frame.astype({"city": object})
    frame.loc[3, "city"] = None
    several = apart(ENCODERS[name], 3, **SCHEMES[scheme])
    columns = several.fit_transform(frame, y, sample_weight=weight)
    one = type(several)(**{**several.get_params(deep=False), "cv": Ordered(**SCHEMES[scheme])}).fit(
        frame, y, sample_weight=weight
    )
    for fitted, t in ((several, 2), (one, 0), (one, 2)):
        drawn = fitted.draw(frame, y, t, sample_weight=weight)
        of_order = [column for column in columns if f"_perm{t}" in column]
        plain = [column for column in columns if "_perm" not in column]
        expected = columns[[*of_order, *plain]].rename(columns=lambda label, t=t: label.replace(f"_perm{t}", ""))
        pd.testing.assert_frame_equal(drawn[expected.columns], expected, check_exact=True)
        assert len(drawn.columns) == len(expected.columns) == len(one.get_feature_names_out())


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda frame: [frame[:5], frame[5:]]])
def test_rows_come_in_any_kind_of_table(make, frame, y):
    encoder = TargetEncoder(columns=["city", "zip"], target_type="continuous", cv=Ordered()).fit(frame, y)
    expected = encoder.draw(frame, y, 7)
    drawn = encoder.draw(make(frame[["shop", "zip", "day", "city"]]), y, 7)
    drawn = pd.concat(drawn) if isinstance(drawn, list) else drawn.to_pandas()
    assert_same_bits(drawn[["city", "zip"]], expected[["city", "zip"]])


def test_the_output_is_what_was_asked_for(frame, y):
    encoder = TargetEncoder(columns=[0], cv=Ordered(), target_type="continuous").fit(frame.to_numpy(), y)
    assert isinstance(encoder.draw(frame.to_numpy(), y, 1), np.ndarray)
    drawn = encoder.set_output(transform="polars").draw(frame.to_numpy(), y, 1)
    assert drawn.columns == ["x0", "x1", "x2", "x3"]


def test_rows_are_unseen_in_the_order_that_is_drawn(frame, labels):
    encoder = TargetEncoder(columns=["city"], prior=-1.0, smooth=None, indicators=True, cv=Ordered()).fit(frame, labels)
    for t in range(3):
        drawn = encoder.draw(frame, labels, t)
        assert (drawn["city_unseen"] == (drawn["city"] == -1)).all()
        assert drawn["city_unseen"].sum() == 4


def test_orders_are_told_apart_and_stay_the_same(frame, y):
    frame = frame[["city"]].assign(city="one")
    encoder = TargetEncoder(smooth=None, target_type="continuous", cv=Ordered()).fit(frame, y)
    drawn = [encoder.draw(frame, y, t).to_numpy().tobytes() for t in (0, 1, 2, 2**32 - 1)]
    assert len(set(drawn)) == 4
    assert drawn == [encoder.draw(frame, y, t).to_numpy().tobytes() for t in (0, 1, 2, 2**32 - 1)]


def test_an_order_is_the_permutation_of_its_seed(frame, y):
    ones = frame[["city"]].assign(city="one")
    encoder = TargetEncoder(smooth=0.0, prior=-9.0, target_type="continuous", cv=Ordered(random_state=3)).fit(ones, y)
    ranks = ranks_of(Permutation(12, seed_of(3, "Ordered", 6)), 0, 12)
    before = ranks[None, :] < ranks[:, None]
    expected = [y[earlier].sum() / earlier.sum() if earlier.any() else -9.0 for earlier in before]
    np.testing.assert_allclose(encoder.draw(ones, y, 6).to_numpy().ravel(), expected, rtol=1e-14)


def test_the_encoder_stays_as_it_is(frame, y):
    encoder = apart(ENCODERS["target"], 2).fit(frame, y)
    before = dict(vars(encoder)), learned(encoder)
    encoder.draw(frame, y, 5)
    with pytest.raises(ValueError, match="sums of these rows are others"):
        encoder.draw(frame, y + 1, 5)
    assert (vars(encoder), learned(encoder)) == before


@pytest.mark.host
def test_no_draw_sees_the_own_target(frame, y):
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered())
    encodings = {t: encoder.fit(frame, y).draw(frame, y, t)["city"].to_numpy() for t in range(5)}
    for row in range(12):
        other = y.copy()
        other[row] += 100
        for t, before in encodings.items():
            assert encoder.fit(frame, other).draw(frame, other, t)["city"].to_numpy()[row] == before[row]


def test_classes_are_those_of_the_fit(frame):
    y = np.array(list("abcabcabcabc"))
    encoder = TargetEncoder(columns=["zip"], cv=Ordered(3, average=False))
    columns = encoder.fit_transform(frame, y)
    drawn = encoder.draw(frame, y, 2)
    for label in "abc":
        assert_same_bits(drawn[f"zip_{label}"], columns[f"zip_{label}_perm2"])


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (KFold(3), "draw needs one random order for all columns, which cv=KFold.* does not have"),
        (LeaveOneOut(), "draw needs one random order for all columns, which cv=LeaveOneOut.* does not have"),
        (Ordered(time="day"), r"Ordered\(time=...\).*not random"),
        (Ordered(shuffle=False), r"Ordered\(shuffle=False\).*not random"),
        (Ordered(random_state=None), "takes an integer as random_state"),
        (Ordered(random_state=np.random.default_rng(0)), "takes an integer as random_state"),
    ],
)
def test_schemes_that_have_no_orders_to_draw(scheme, message, frame, y):
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=scheme).fit(frame, y)
    with pytest.raises(ValueError, match=message):
        encoder.draw(frame, y, 0)


@pytest.mark.parametrize("t", [-1, 1.5, True, "0", None, 2**32])
def test_numbers_that_no_order_has(t, frame, y):
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered()).fit(frame, y)
    with pytest.raises(ValueError, match="'t' parameter of draw must be an integer of at least 0"):
        encoder.draw(frame, y, t)


def test_rows_that_are_not_those_of_the_fit(frame, y):
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered()).fit(frame, y)
    for rows, target, weight in ((frame[:-1], y[:-1], None), (frame, y, np.full(12, 2)), (frame[::-1], y, None)):
        with pytest.raises(ValueError, match="the sums of these rows are others"):
            encoder.draw(rows.reset_index(drop=True), target, 0, sample_weight=weight)
    with pytest.raises(ValueError, match="'city' has values that were not there"):
        encoder.draw(frame.replace({"city": {"d": "e"}}), y, 0)
    with pytest.raises(ValueError, match="y"):
        encoder.draw(frame)
    with pytest.raises(NotFittedError):
        TargetEncoder(cv=Ordered()).draw(frame, y, 0)


def test_a_table_of_dask_is_refused(frame, y):
    dask = pytest.importorskip("dask.dataframe")
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered()).fit(frame, y)
    with pytest.raises(TypeError, match="not tables of Dask"):
        encoder.draw(dask.from_pandas(frame, 2), y, 0)


@pytest.mark.host
def test_error_of_a_code_by_the_number_of_earlier_rows():
    """Var(code) = p v / (p + a)^2, mean squared error (p v + a^2 (P - t0)^2) / (p + a)^2."""
    categories, rows, a, prior, truth, spread = 3000, 24, 4.0, 0.25, 1.0, 1.5
    generator = np.random.default_rng(20)
    codes = generator.permutation(np.repeat(np.arange(categories), rows))
    y = truth + spread * generator.standard_normal(len(codes))
    encoder = TargetEncoder(smooth=a, prior=prior, target_type="continuous", cv=Ordered(random_state=8))
    encodings = encoder.fit(codes[:, None], y).draw(codes[:, None], y, 3).ravel()
    ranks = ranks_of(Permutation(len(codes), seed_of(8, "Ordered", 3)), 0, len(codes))
    order = np.lexsort((ranks, codes))
    by_earlier = encodings[order].reshape(categories, rows)
    variance = spread**2
    variances = []
    for p in range(rows):
        code, of_code = by_earlier[:, p], p * variance / (p + a) ** 2
        found = code.var(ddof=1)
        # Codes are normal: the variance of their sample variance is 2 Var^2 / (n - 1).
        assert abs(found - of_code) <= 4 * of_code * np.sqrt(2 / (categories - 1)) + 1e-25
        squared = (code - truth) ** 2
        of_error = (p * variance + a**2 * (prior - truth) ** 2) / (p + a) ** 2
        assert abs(squared.mean() - of_error) <= 4 * squared.std(ddof=1) / np.sqrt(categories) + 1e-15
        variances.append(of_code)
    assert int(np.argmax(variances)) == a


def test_sums_are_compared_in_one_form(frame, y):
    encoder = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered()).fit(frame, y)
    expected = encoder.draw(frame, y, 1)
    known = encoder._model.statistics
    encoder._model = replace(encoder._model, statistics=[[sums.to_canonical() for sums in each] for each in known])
    pd.testing.assert_frame_equal(encoder.draw(frame, y, 1), expected, check_exact=True)
    parts = TargetEncoder(columns=["city"], target_type="continuous", cv=Ordered())
    parts.partial_fit(frame[:5], y[:5]).partial_fit(frame[5:], y[5:])
    pd.testing.assert_frame_equal(parts.draw(frame, y, 1), expected, check_exact=True)
