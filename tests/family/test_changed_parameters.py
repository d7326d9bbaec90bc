"""If a parameter changes between calls of `partial_fit`, the error names its old and its new value."""

import re
from typing import Any

import numpy as np
import pytest

import gpu_encode as ge
from tests.family.members import AMOUNT, GRADIENTS, KIND, ROWS, SOLD

KIND_NUMBERS = np.arange(len(KIND)) % 3

pytestmark = pytest.mark.host

PREFIXED = ge.TargetEncoder(hierarchy={"city": ge.Prefixes(1)})
PREFIXES = "Prefixes(lengths=(1,))", "Prefixes(lengths=(2,))"
SMALL = ge.OrdinalEncoder(dtype="int32", encoded_missing_value=-1)
CODED = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
# An encoder, its target, the changed parameters, the one that the error names, and its old and new values.
CHANGES: list[tuple[Any, Any, dict[str, Any], str, str, str]] = [
    (ge.TargetEncoder(), SOLD, {"scale": "logit"}, "scale", "'identity'", "'logit'"),
    (
        ge.TargetEncoder(min_frequency=2),
        SOLD,
        {"handle_infrequent": "category"},
        "handle_infrequent",
        "'prior'",
        "'category'",
    ),
    (ge.TargetEncoder(), KIND, {"drop": "first"}, "drop", "None", "'first'"),
    (ge.TargetEncoder(drop="x"), KIND, {"drop": "y"}, "drop", "'x'", "'y'"),
    (PREFIXED, SOLD, {"hierarchy": {"city": ge.Prefixes(2)}}, "hierarchy", *PREFIXES),
    (ge.CountEncoder(), None, {"kind": "log"}, "kind", "'count'", "'log'"),
    (ge.CountEncoder(), None, {"indicators": True}, "indicators", "()", "('unseen',)"),
    (ge.OrdinalEncoder(), None, {"order": "frequency"}, "order", "'value'", "'frequency'"),
    (ge.OrdinalEncoder(order="random"), None, {"random_state": 3}, "random_state", "0", "3"),
    (ge.OrdinalEncoder(), None, {"encoded_missing_value": -1}, "encoded_missing_value", "nan", "-1.0"),
    (SMALL, None, {"dtype": "int16"}, "dtype", "'int32'", "'int16'"),
    (ge.OrdinalEncoder(), None, CODED, "unknown_value", "None", "-1.0"),
    (ge.OneHotEncoder(), None, {"handle_unknown": "ignore"}, "handle_unknown", "'error'", "'ignore'"),
    (ge.OneHotEncoder(), None, {"drop": "first"}, "drop", "None", "'first'"),
    (ge.HashingEncoder(), None, {"seed": 1}, "seed", "0", "1"),
    (ge.WeightOfEvidenceEncoder(), SOLD, {"regularization": 0.5}, "regularization", "1.0", "0.5"),
    (ge.StatisticEncoder(), AMOUNT, {"statistics": ["sum"]}, "statistics", "('mean',)", "['sum']"),
    (ge.StatisticEncoder(["var"]), AMOUNT, {"ddof": 0}, "ddof", "1", "0"),
    (ge.StatisticEncoder(values=["price"]), None, {"values": ["zip"]}, "values", "['price']", "['zip']"),
    (ge.StatisticEncoder(values=["price"]), AMOUNT, {"values": None}, "values", "['price']", "None"),
    (ge.StatisticEncoder(), AMOUNT, {"values": ["price"]}, "values", "None", "['price']"),
    (ge.ImpactEncoder(), SOLD, {"parts": ["impact"]}, "parts", "('impact', 'deviation', 'prevalence')", "['impact']"),
    (ge.CatBoostEncoder(), SOLD, {"priors": [1.0]}, "priors", "(0.0, 0.5, 1.0)", "[1.0]"),
    (ge.CatBoostEncoder(), SOLD, {"weight": 2.0}, "weight", "1.0", "2.0"),
    (ge.CatBoostEncoder(borders=[1.0]), AMOUNT, {"borders": [2, 3]}, "borders", "[1.0]", "[2.0, 3.0]"),
    (ge.CatBoostEncoder("borders", borders=[1.0]), KIND_NUMBERS, {"borders": None}, "borders", "[1.0]", "None"),
    (ge.CatBoostEncoder("buckets"), KIND, {"statistic": "borders"}, "statistic", "'buckets'", "'borders'"),
    (ge.GradientEncoder(), GRADIENTS, {"output": "order"}, "output", "'ratio'", "'order'"),
]


@pytest.mark.parametrize(
    ("encoder", "y", "changes", "name", "before", "now"),
    CHANGES,
    ids=[f"{type(encoder).__name__}, {name}" for encoder, _, _, name, *_ in CHANGES],
)
def test_the_parameter_is_named(encoder, y, changes, name, before, now):
    keys = ["city"] if name == "values" else ["city", "zip"]
    encoder = encoder.set_params(columns=keys).partial_fit(ROWS, y)
    learned = repr(encoder.get_feature_names_out())
    says = f"with other parameters than before: {name} is now {now} and was {before}. Set it back, or call fit"
    with pytest.raises(ValueError, match=re.escape(says)):
        encoder.set_params(**changes).partial_fit(ROWS, y)
    assert repr(encoder.get_feature_names_out()) == learned


def test_pairs_are_shown_as_they_were_given():
    pairs = {"city": {"price": ["mean", "std"]}, ("zip", "city"): {"price": ["sum"]}}
    encoder = ge.StatisticEncoder(pairs).partial_fit(ROWS).partial_fit(ROWS)
    now = {**pairs, "city": {"price": ["mean"]}}
    with pytest.raises(ValueError, match=re.escape(f"before: statistics is now {now} and was {pairs}. Set it back")):
        encoder.set_params(statistics=now).partial_fit(ROWS)
    unnamed = ge.StatisticEncoder({0: {1: ["mean"]}}).partial_fit([[1, 2.5], [2, 3.5]])
    with pytest.raises(ValueError, match=re.escape("statistics is now {0: {1: ['sum']}} and was {0: {1: ['mean']}}.")):
        unnamed.set_params(statistics={0: {1: ["sum"]}}).partial_fit([[1, 2.5]])


def test_what_is_long_is_cut():
    encoder = ge.CountEncoder(columns=["zip"], categories=[[*range(100)]]).partial_fit(ROWS)
    with pytest.raises(ValueError, match=r"categories is now 'auto' and was \[0, 1, .{0,80}\.\.\.\. Set it back"):
        encoder.set_params(categories="auto").partial_fit(ROWS)


def test_the_same_parameters_in_other_words_are_the_same():
    encoder = ge.TargetEncoder(columns=["zip"], smooth=2, dtype="float32").partial_fit(ROWS, SOLD)
    encoder.set_params(smooth=2.0, dtype=np.float32, min_count=0.0).partial_fit(ROWS, SOLD)
    borders = ge.CatBoostEncoder("buckets", borders=[1.5]).partial_fit([["a"], ["b"]], [1.0, 2.5])
    borders.set_params(borders=np.array([1.5])).partial_fit([["a"]], [2.0])
    encoder = ge.GradientEncoder(regularization=3).partial_fit([["a"], ["b"]], [[1.0, 1.0], [2.0, 1.0]])
    encoder.set_params(regularization=np.float64(3.0)).partial_fit([["a"]], [[1.0, 1.0]])
