"""Half-lives and windows of time folds and orders, compared with loops over fractions, on every backend."""

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode as ge
from cpu_fallback.decay import DECLINE, GROWTH
from cpu_fallback.types import Layout, Window
from gpu_encode.seam.ops import resolve, use_backend
from gpu_encode.sums.decay import seen_from
from tests.backends import ON_CUDA
from tests.bits import assert_same_bits
from tests.cases import some_of
from tests.encoders.pieces import saved
from tests.naive import Sums
from tests.scale.parts.in_parts import encoded_in_parts, parts_of
from tests.scale.parts.test_orders import encoded as encoded_in_order

N = 120
RNG = np.random.default_rng(5)
DAYS = RNG.integers(-40, 360, N)
ROWS = pd.DataFrame({"shop": RNG.choice([*"abc"], N, p=[0.5, 0.4, 0.1]), "day": DAYS})
Y = {"quantity": RNG.normal(size=N).round(3) * 10.0 ** RNG.integers(-3, 4, N), "sold": RNG.integers(0, 2, N)}
M = 2.5


def step_of(time, half_life):
    return int(8 * Fraction(int(time)) / Fraction(half_life) // 1)


def weight(row, now, half_life):
    """Return the weight of a row of one time step as seen from another."""
    if half_life is None:
        return 1
    if now // 512 - row // 512 > 1:
        return 0
    (q, r), (later, rest) = divmod(row, 8), divmod(now, 8)
    return Fraction(GROWTH[r], 2**31) * Fraction(DECLINE[rest], 2**31) * Fraction(2) ** (q - later)


def expected(times, y, weights=None, n_splits=4, gap=0, half_life=None, window=None):
    """Return encodings of training rows, and of the shops as new rows: exact sums of weights, rounded at the end."""
    order = np.sort(times)
    fold = np.searchsorted(order, times) * n_splits // len(times)

    def encode(shop, seen, now):
        own, everything = Sums(), Sums()
        for row in np.flatnonzero(seen):
            if window is not None and times[row] < now - window:
                continue
            steps = (0, 0) if half_life is None else (step_of(times[row], half_life), step_of(now, half_life))
            share = weight(*steps, half_life)
            if weights is not None:
                # The product of a weight and an age's weight, on the scale of its block, is rounded as a float.
                scale = Fraction(2) ** (63 - steps[0] // 8 % 64) / Fraction(GROWTH[steps[0] % 8], 2**31)
                share *= Fraction(float(weights[row]) * float(1 / scale)) * scale if share else 0
            everything.add(Fraction(float(y[row])), share)
            if ROWS["shop"][row] == shop:
                own.add(Fraction(float(y[row])), share)
        if everything.weight == 0:
            return np.nan
        mu = Fraction(everything.total) / everything.weight
        return float(Fraction(own.total + Fraction(M) * mu) / (own.weight + Fraction(M))) if own.weight else float(mu)

    training = []
    for row in range(len(times)):
        now = times[fold == fold[row]].min()
        training.append(encode(ROWS["shop"][row], fold < fold[row] - gap, now))
    new = [encode(shop, np.ones(len(times), bool), times.max()) for shop in "abc"]
    return np.array(training), np.array(new)


def encoder(kind, **ages):
    scheme = ge.TimeFolds(4, time="day", **ages) if kind == "folds" else ge.Ordered(time="day", **ages)
    return ge.TargetEncoder(cv=scheme, smooth=M, columns=["shop"])


def fitted(kind, rows, y, **given):
    """Return the encodings of training rows and of new rows."""
    ages = {name: given.pop(name) for name in ("half_life", "window", "gap") if name in given}
    made = encoder(kind, **ages)
    training = made.fit_transform(rows, y, **given)
    alone = encoder(kind, **ages).fit(rows, y, **given)
    assert alone.encodings_[0].tobytes() == made.encodings_[0].tobytes()
    return np.asarray(training["shop"]), made.encodings_[0]


AGES = {
    "a month": {"half_life": 30},
    "three days and a half": {"half_life": 3.5},
    "an hour": {"half_life": 1 / 24},
    "centuries": {"half_life": 10**5},
    "gap": {"half_life": 60, "gap": 1},
    "window": {"window": 50},
    "window, gap": {"window": 90, "gap": 1},
    "longer than all": {"window": 10**6},
}
CASES = {
    f"{kind}, {name}": (kind, ages)
    for kind in ("folds", "ordered")
    for name, ages in AGES.items()
    if kind == "folds" or "gap" not in ages
}
KINDS = pytest.mark.parametrize("kind", ["folds", "ordered"])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("case", "target"), some_of(CASES, Y))
def test_sums_are_those_of_the_definition(case, target):
    (kind, ages), y = CASES[case], Y[target]
    # In an order, the rows of each time form a fold.
    n_splits = 4 if kind == "folds" else N
    for weights in (None, RNG.integers(1, 9, N) / 8):
        wanted = expected(DAYS, y, weights, n_splits, **ages)
        for backend in ("numpy", *(ON_CUDA or ["compiled"])):
            with use_backend(backend):
                for found, exact in zip(fitted(kind, ROWS, y, sample_weight=weights, **ages), wanted, strict=True):
                    assert_same_bits(found, exact)


def number_of(digits, window):
    """Return the number that the digits of a window stand for."""
    return sum(int(digit) * Fraction(2) ** (32 * (window.low + place)) for place, digit in enumerate(digits))


@pytest.mark.parametrize("largest", [1, 2**20, 2**61], ids=["small", "carried", "not carried"])
def test_sums_as_seen_are_products_to_the_last_bit(largest):
    layout, steps = Layout(Window(-3, 4, False), Window(-5, 6, False)), RNG.integers(-2000, 2000, 40)
    sums = RNG.integers(-largest, largest, (3, 40, 2, layout.width), endpoint=True)
    # The highest column has room for the carry.
    sums[..., [0, 4, 5, 3, 9]] = RNG.integers(-1, 2, 5) * [0, 0, 0, 1, 1]
    for backend in ("numpy", *(ON_CUDA or ["compiled"])):
        with use_backend(backend):
            ops = resolve(40)
            seen, wide = seen_from(ops, ops.to_device(sums), layout, steps)
            seen = ops.to_host(seen)
        pairs = [*zip(layout.measures(), wide.measures(), strict=True)]
        for place in np.ndindex(3, 40, 2):
            (q, r) = divmod(int(steps[place[1]]), 8)
            factor = Fraction(DECLINE[r], 2**31) * Fraction(2) ** (63 - q % 64)
            for (old, _, columns), (new, _, there) in pairs:
                assert number_of(seen[place][there], new) == number_of(sums[place][columns], old) * factor


def test_constants_are_powers_of_two_rounded():
    for r in range(8):
        assert abs(Fraction(GROWTH[r]) - Fraction(2 ** (r / 8)) * 2**31) <= Fraction(1, 2) + Fraction(1, 2**20)
        assert abs(Fraction(DECLINE[r]) - Fraction(2 ** (-r / 8)) * 2**31) <= Fraction(1, 2) + Fraction(1, 2**20)


@pytest.mark.filterwarnings("ignore::UserWarning")
@KINDS
@pytest.mark.parametrize("ages", [{"half_life": 20}, {"half_life": 0.5}, {"window": 60}], ids=str)
def test_one_answer_in_parts_files_and_tables_of_every_kind(kind, ages, tmp_path):
    y = Y["quantity"]
    whole = encoder(kind, **ages)
    wanted = whole.fit_transform(ROWS, y)
    for cuts in ([50], [1, 30, 30, 100]):
        other = encoder(kind, **ages)
        pieces = parts_of(ROWS, y, None, None, cuts)
        way = "one after another" if len(cuts) == 1 else "side by side"
        parts = encoded_in_parts(other, pieces) if kind == "folds" else encoded_in_order(other, pieces, 3, way)
        pd.testing.assert_frame_equal(pd.concat(parts), wanted, check_exact=True)
        assert saved(other, tmp_path) == saved(whole, tmp_path)
    loaded = ge.load(tmp_path / "model")
    assert_same_bits(loaded.encodings_[0], whole.encodings_[0])
    for table in (pl.from_pandas(ROWS), pa.Table.from_pandas(ROWS)):
        found = encoder(kind, **ages).fit_transform(table, y).to_pandas()
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    pa.parquet.write_table(pa.Table.from_pandas(ROWS.assign(y=y)), tmp_path / "rows.parquet", row_group_size=17)
    ge.encode_dataset(
        tmp_path / "rows.parquet", tmp_path / "codes.parquet", encoder(kind, **ages), target="y", keep_target=False
    )
    pd.testing.assert_frame_equal(pa.parquet.read_table(tmp_path / "codes.parquet").to_pandas(), wanted)


@pytest.mark.host
@pytest.mark.filterwarnings("ignore::UserWarning")
@KINDS
@pytest.mark.parametrize("ages", [{"half_life": 20}, {"half_life": 0.5}, {"window": 60}], ids=str)
def test_one_answer_in_dask(kind, ages):
    dd = pytest.importorskip("dask.dataframe")
    frame = ROWS.assign(shop=ROWS["shop"].astype("category"))
    X, y = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(Y["quantity"], name="y"), npartitions=3)
    found = encoder(kind, **ages).fit_transform(X, y).compute(scheduler="synchronous")
    training, new = fitted(kind, frame, Y["quantity"], **ages)
    assert_same_bits(found["shop"].to_numpy(), training)
    assert_same_bits(encoder(kind, **ages).fit(X, y).encodings_[0], new)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ages", [{"half_life": 7}, {"window": 80}], ids=str)
@KINDS
def test_no_row_sees_its_own_target_nor_later_ones(kind, ages):
    y = Y["quantity"]
    before, _ = fitted(kind, ROWS, y, **ages)
    for row in (0, 40, 90):
        changed = y.copy()
        changed[row] += 1e6
        after, _ = fitted(kind, ROWS, changed, **ages)
        unmoved = DAYS[row] >= DAYS
        assert_same_bits(after[unmoved], before[unmoved])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("targets", [["quantity"], ["quantity", "sold"]], ids=len)
@pytest.mark.parametrize("ages", [{"half_life": 20}, {"window": 60}, {"window": 0.5}], ids=str)
def test_joint_keys_targets_to_come_and_burn_in_are_the_same_on_every_backend(ages, targets):
    y = np.column_stack([Y[name] for name in targets]).astype(float)
    y[::7, 0] = np.nan
    rows, weights = ROWS.assign(size=np.arange(N) % 3), RNG.integers(0, 9, N) / 8
    scheme = ge.Ordered(time="day", burn_in=9, **ages)
    found = []
    for backend in ("numpy", *(ON_CUDA or ["compiled"])):
        given = {"columns": [("shop", "size")], "smooth": "auto", "min_count": 1.5, "missing_target": "keep"}
        with use_backend(backend):
            made = ge.TargetEncoder(cv=scheme, target_type="continuous", **given)
            found.append(made.fit_transform(rows, y, sample_weight=weights).to_numpy())
    assert_same_bits(*found)


SPANS = [
    "30d",
    "720h",
    datetime.timedelta(days=30),
    np.timedelta64(30, "D"),
    pd.Timedelta(days=30),
]


@pytest.mark.host
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("begin", [-60, 0, 7, 2**40, -(2**62)])
@pytest.mark.parametrize("window", [0.5, 1, 7.9, 50, 10**6, 2**62])
@KINDS
def test_windows_of_times_without_gaps(kind, window, begin):
    rows = ROWS.assign(day=RNG.permutation(N) + begin)
    for found, wanted in zip(
        fitted(kind, rows, Y["quantity"], window=window),
        # Doubled times have gaps, and rows see the same others.
        fitted(kind, rows.assign(day=2 * (rows["day"] - begin)), Y["quantity"], window=min(2 * window, 2**62)),
        strict=True,
    ):
        assert_same_bits(found, wanted)


@pytest.mark.host
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("span", SPANS, ids=repr)
@pytest.mark.parametrize("unit", ["s", "ns"])
@KINDS
def test_dates_age_as_their_numbers_do(kind, span, unit, tmp_path):
    dates = ROWS.assign(day=pd.Timestamp("1970-01-01").as_unit(unit) + pd.to_timedelta(DAYS, "D").as_unit(unit))
    for name in ("half_life", "window"):
        found = fitted(kind, dates, Y["quantity"], **{name: span})
        for one, other in zip(found, fitted(kind, ROWS, Y["quantity"], **{name: 30}), strict=True):
            assert_same_bits(one, other)
    made = encoder(kind, half_life=span).fit(dates, Y["quantity"])
    saved(made, tmp_path)
    assert ge.load(tmp_path / "model").cv.half_life == span


@pytest.mark.host
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ages", [{"half_life": "45d"}, {"window": "45d"}], ids=str)
@KINDS
def test_periods_age_from_the_time_at_which_they_begin(kind, ages):
    days = pd.Series(pd.to_datetime(DAYS, unit="D"))
    months = days.dt.to_period("M")
    found = fitted(kind, ROWS.assign(day=months), Y["quantity"], **ages)
    begins = fitted(kind, ROWS.assign(day=days.to_numpy().astype("M8[M]").astype("M8[s]")), Y["quantity"], **ages)
    for one, other in zip(found, begins, strict=True):
        assert_same_bits(one, other)


@pytest.mark.filterwarnings("ignore::UserWarning")
@KINDS
def test_decades_at_a_short_half_life_overflow_nothing(kind):
    hours = np.append(np.linspace(-600_000, -1000, N - 40), np.arange(40))
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(hours.round(), "h")
    found, new = fitted(kind, ROWS.assign(day=days), np.full(N, 7.5), half_life="1h")
    assert set(found[-20:]) == {7.5}
    assert new.tolist() == [7.5] * 3


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("half_life", [0.001, 0.25])
def test_all_times_may_be_zero(half_life):
    # The float 0.001 is a fraction whose denominator nearly fills an int64.
    found, new = fitted("ordered", ROWS.assign(day=0), np.full(N, 7.5), half_life=half_life)
    assert np.isnan(found).all()
    assert new.tolist() == [7.5] * 3


REFUSED = {
    "a date's number": ({"half_life": 30}, "holds dates or times"),
    "both": ({"half_life": "1d", "window": "2d"}, "not both"),
    "zero": ({"half_life": 0}, "above 0"),
    "a word": ({"window": "a week"}, "7d"),
    "months": ({"half_life": np.timedelta64(1, "M")}, "above 0"),
}


@pytest.mark.parametrize(("ages", "message"), REFUSED.values(), ids=REFUSED)
@KINDS
def test_spans_that_are_none(kind, ages, message):
    dates = ROWS.assign(day=pd.to_datetime(DAYS, unit="D"))
    with pytest.raises(ValueError, match=message):
        encoder(kind, **ages).fit(dates, Y["quantity"])


NO_AGES = {
    "text": (pd.to_datetime(DAYS, unit="D").astype(str), r"text\. Parse it first: pandas\.to_datetime"),
    "intervals": (pd.arrays.IntervalArray.from_arrays(DAYS, DAYS + 1), r"interval of numbers\. Give a column of dates"),
}


@pytest.mark.host
@pytest.mark.parametrize("ages", [{"half_life": "2d"}, {"window": "2d"}], ids=str)
@pytest.mark.parametrize(("days", "message"), NO_AGES.values(), ids=NO_AGES)
@KINDS
def test_times_that_cannot_be_subtracted(kind, days, message, ages):
    with pytest.raises(ValueError, match=f"needs times that can be subtracted, and the time column holds.*{message}"):
        encoder(kind, **ages).fit(ROWS.assign(day=days), Y["quantity"])


@KINDS
def test_who_takes_no_ages(kind):
    made = encoder(kind, half_life=30).fit(ROWS, Y["quantity"])
    for call in (made.partial_fit, made.forget):
        with pytest.raises(ValueError, match=r"half_life of .* call fit on all of them again; or leave half_life out"):
            call(ROWS, Y["quantity"])
    with pytest.raises(ValueError, match=r"merge takes rows of all ages alike.* by forget"):
        made.merge(made)
    with pytest.raises(ValueError, match=r"tune takes .* Leave half_life out here, and set cv"):
        ge.tune(encoder(kind, half_life=30), ROWS, Y["quantity"])
    clusters = ge.ClusterEncoder(2, columns=["shop"], cv=ge.TimeFolds(3, time="day", window=9))
    with pytest.raises(ValueError, match=r"ClusterEncoder takes .* but window of .* as TargetEncoder"):
        clusters.fit(ROWS, Y["quantity"])
    medians = ge.StatisticEncoder(["median"], columns=["shop"], cv=ge.TimeFolds(3, time="day", half_life=3))
    with pytest.raises(ValueError, match="needs whole rows"):
        medians.fit(ROWS, Y["quantity"])
    with pytest.raises(ValueError, match="does not fit the time column, which holds numbers"):
        encoder(kind, half_life="3d").fit(ROWS, Y["quantity"])


@pytest.mark.host
@pytest.mark.parametrize("ages", [{"half_life": 3}, {"window": 9}], ids=str)
def test_an_order_by_age_refuses_what_it_cannot_see(ages):
    scheme = ge.Ordered(time="day", **ages)
    for parameters in ({"smooth": ge.JamesStein()}, {"prior": "category_mean"}, {"prior": {"shop": "category_mean"}}):
        with pytest.raises(ValueError, match=r"needs the means of all categories.*Take cv=TimeFolds"):
            ge.TargetEncoder(cv=scheme, columns=["shop"], **parameters).fit(ROWS, Y["quantity"])
    (name,) = ages
    with pytest.raises(ValueError, match=rf"Ordered\({name}=...\) asks for the ages of rows.*time="):
        ge.TargetEncoder(cv=ge.Ordered(**ages)).fit(ROWS, Y["quantity"])
    since = ge.StatisticEncoder(["seconds_since_last"], columns=["shop"], values=["day"], cv=scheme)
    with pytest.raises(ValueError, match=r"without burn_in, half_life or window|needs whole rows"):
        since.fit_transform(ROWS.assign(day=pd.to_datetime(DAYS, unit="D")))
    with pytest.raises(ValueError, match="draw gives one random order"):
        ge.TargetEncoder(cv=scheme, columns=["shop"]).fit(ROWS, Y["quantity"]).draw(ROWS, Y["quantity"])


@pytest.mark.filterwarnings("ignore::UserWarning")
@KINDS
def test_levels_above_and_several_targets_count_by_age(kind):
    """Each of several targets has its own encodings; a row that sees nothing of its category gets the level above."""
    rows = ROWS.assign(region=ROWS["shop"].map({"a": "n", "b": "n", "c": "s"}))
    given = {"cv": encoder(kind, half_life=25).cv, "smooth": M, "target_type": "continuous"}
    both = ge.TargetEncoder(columns=["shop"], hierarchy={"shop": ["region"]}, **given)
    found = both.fit_transform(rows, np.column_stack([*Y.values()]))
    first = rows.index[rows.groupby("shop")["day"].transform("min") == rows["day"]]
    for number, y in enumerate(Y.values()):
        above = ge.TargetEncoder(columns=["region"], **given).fit_transform(rows, y)["region"]
        alone = ge.TargetEncoder(columns=["shop"], hierarchy={"shop": ["region"]}, **given).fit_transform(rows, y)
        assert_same_bits(found.filter(like="shop").iloc[:, number].to_numpy(), alone["shop"].to_numpy())
        assert_same_bits(alone["shop"][first].to_numpy(), above[first].to_numpy())


@pytest.mark.filterwarnings("ignore:.*see no rows at all")
@pytest.mark.parametrize("scheme", [{"time": "day", "half_life": 7.0}, {"by": "day"}], ids=["half-life", "folds"])
@pytest.mark.parametrize("values", [[0.0, 5e-324, 1.5e-323, 1e-310], [0.0, 1e-323, 1.7e308]], ids=["least", "ends"])
def test_a_sum_that_underflows_is_no_zero(scheme, values):
    """Where weights make the smallest numbers smaller, compiled code and NumPy's expressions agree to the bit."""
    cv = ge.TimeFolds(4, **scheme) if "time" in scheme else ge.KFold(3, **scheme)
    for seed in range(40):
        draw = np.random.default_rng(seed)
        rows = pd.DataFrame({"shop": draw.integers(0, 6, 60), "day": draw.integers(0, 50, 60)})
        y, weights = draw.choice(values, 60), 2.0 ** -draw.integers(0, 60, 60)
        encoder = ge.TargetEncoder(
            columns=["shop"], cv=cv, smooth=[2.5, 1e-3, 1e20][seed % 3], target_type="continuous"
        )
        found = []
        for name in ("compiled", "numpy"):
            with use_backend(name):
                found.append(encoder.fit_transform(rows, y, sample_weight=weights)["shop"].to_numpy())
        assert_same_bits(*found)
