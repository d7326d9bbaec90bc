"""Encodings on another scale are plain encodings, transformed: in training, for new rows, for unseen values."""

import math
from functools import partial

import numpy as np
import pytest

from gpu_encode import CatBoostEncoder, KFold, LeaveOneOut, Ordered, Prefixes, StatisticEncoder, TargetEncoder, load
from gpu_encode.formulas.scales import on_scale
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, same

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
SCALES = ["log", ("log", 0.3), "log1p", "sqrt", "logit", 2.0, 0.5]
SCHEMES = {"folds": KFold(3), "leave-one-out": LeaveOneOut(), "ordered": Ordered(), "blow-up": KFold(2, blow_up=True)}


def on(table, scale):
    return table.apply(lambda column: on_scale(column.to_numpy(), scale))


FAMILY = {
    "means": (partial(TargetEncoder, smooth=2.0, handle_missing="prior"), SOLD, SCALES),
    "means of classes": (partial(TargetEncoder, smooth=2.0), KIND, SCALES),
    "means of a quantity": (partial(TargetEncoder, smooth=2.0), np.abs(AMOUNT), ["log1p", 2.0, 0.5]),
    "statistics": (
        partial(StatisticEncoder, ["count", "mean", "std", "sum"], target_type="auto"),
        SOLD,
        ["log1p", 0.5],
    ),
    "labels and priors": (partial(CatBoostEncoder, "buckets", target_type="multiclass"), SOLD, ["log1p", 0.5]),
    "a mean and priors": (partial(CatBoostEncoder, "mean", [0.0, 0.25], 2.0), SOLD, ["log1p", 0.5]),
    "frequencies": (partial(CatBoostEncoder, "frequency"), SOLD, SCALES),
}


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize(
    ("name", "scale"),
    [
        pytest.param(name, scale, marks=() if scale == "logit" else pytest.mark.host)
        for name, (_, _, scales) in FAMILY.items()
        for scale in scales
    ],
)
def test_every_encoder_scale_and_scheme(name, scale, scheme):
    make, y, _ = FAMILY[name]
    plain, scaled = make(cv=scheme), make(cv=scheme, scale=scale)
    same(scaled.fit_transform(ROWS[["city"]], y), on(plain.fit_transform(ROWS[["city"]], y), scale))
    same(scaled.transform(ROWS[["city"]]), on(plain.transform(ROWS[["city"]]), scale))


def test_levels_are_blended_before_and_the_users_number_stays():
    plain, scaled = (
        TargetEncoder(hierarchy={"path": Prefixes(1)}, smooth=1.0, scale=scale, handle_unknown=-7.0)
        for scale in ("identity", "sqrt")
    )
    X = ROWS[["zip"]].astype(str).rename(columns={"zip": "path"})
    same(scaled.fit_transform(X, SOLD), on(plain.fit_transform(X, SOLD), "sqrt"))
    assert scaled.transform(X.assign(path="never seen")).to_numpy().max() == -7.0


@pytest.mark.parametrize("scale", SCALES)
def test_against_the_true_function(scale):
    truth = {
        "log": lambda x: math.log(max(x, 2.0**-20)),
        ("log", 0.3): lambda x: math.log(max(x, 0.3)),
        "log1p": math.log1p,
        "sqrt": math.sqrt,
        "logit": lambda x: math.log(x / (1 - x)),
    }
    function = truth.get(scale, lambda x: x**scale)
    values = np.array([1e-5, 0.1, 0.5, 0.9, 0.99999])
    # The functions are the library's own, within a few units in the last place of the true ones.
    assert on_scale(values, scale).tolist() == pytest.approx([function(x) for x in values], rel=1e-14, abs=1e-15)
    of_zero = {
        "logit": math.log(2.0**-20 / (1 - 2.0**-20)),
        "log": math.log(2.0**-20),
        ("log", 0.3): pytest.approx(math.log(0.3), rel=1e-15),
    }
    assert on_scale(np.array([0.0]), scale)[0] == of_zero.get(scale, 0.0)
    assert np.isnan(on_scale(np.array([np.nan]), scale)[0])


def test_values_in_order():
    given = {"values": ["price"], "columns": ["city"]}
    statistics = ["median", "max", "nunique", ("quantile", 0.3), "mode"]
    X = ROWS.assign(price=ROWS["price"].abs())
    plain, scaled = (StatisticEncoder(statistics, scale=each, **given).fit(X) for each in ("identity", "sqrt"))
    columns = [name for name in plain.get_feature_names_out() if name.startswith("city")]
    same(scaled.transform(X)[columns], on(plain.transform(X)[columns], "sqrt"))
    shares = StatisticEncoder([("share", 0.5), "mean"], values=["price"], columns=["city"], scale="logit")
    assert not np.isnan(shares.fit_transform(X.assign(price=X["price"] % 1.0))["city_price_mean"]).any()


@pytest.mark.host
def test_statistics_that_have_one_whatever_the_values():
    kept = ["count", "var", "std", "sem", "nunique", ("share", 0.1)]
    codes = StatisticEncoder(kept, values=["price"], columns=["city"], scale="sqrt", ddof=0).fit_transform(ROWS)
    assert not codes.filter(like="city_").isna().to_numpy().any()


@pytest.mark.host
def test_a_floor_is_kept_in_files(tmp_path):
    encoder = TargetEncoder(columns=["city"], scale=["log", 1e-300], smooth=None).fit(ROWS, np.abs(AMOUNT) * 0.0)
    encoder.save(tmp_path / "model")
    encodings = load(tmp_path / "model").transform(ROWS)
    same(encodings, encoder.transform(ROWS))
    assert set(encodings["city"]) == {on_scale(np.array([1e-300]), ("log", 1e-300))[0]}
    assert encodings["city"][0] == pytest.approx(math.log(1e-300), rel=1e-15)
