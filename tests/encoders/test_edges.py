"""Edges that reviews found: each once wrong, now defined."""

import numpy as np
import pandas as pd
import pytest

from gpu_encode import Ordered, Prefixes, TargetEncoder, load
from gpu_encode.ops import use_backend
from tests.bits import assert_same_bits


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_hierarchy_without_any_ancestor(backend) -> None:
    frame = pd.DataFrame({"a": list("abcd") * 5})
    with use_backend(backend):
        with_rule = TargetEncoder(hierarchy={"a": Prefixes(3)}).fit_transform(frame, [0, 1, 1, 0, 1] * 4)
        without = TargetEncoder().fit_transform(frame, [0, 1, 1, 0, 1] * 4)
    assert with_rule.equals(without)


def test_one_class_of_a_multiclass_target(tmp_path) -> None:
    encoder = TargetEncoder(target_type="multiclass").fit([["a"], ["b"]], [1, 1])
    encoder.save(tmp_path / "model")
    assert load(tmp_path / "model").transform([["a"], ["z"]]).tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match=r"drop=.first. leaves no column"):
        TargetEncoder(target_type="multiclass", drop="first").fit([["a"], ["b"]], [1, 1])


def test_codes_beyond_float32_warn() -> None:
    y = np.array([1e300, -1e300, 2e300, 0.5])
    encoder = TargetEncoder(smooth=None, dtype="float32").fit([["a"], ["b"], ["a"], ["b"]], y)
    with pytest.warns(UserWarning, match="beyond the range of float32"):
        encoder.transform([["a"]])


def test_a_prior_that_a_number_gives_for_one_column_leaves_the_warning_for_the_other() -> None:
    frame = pd.DataFrame({"a": list("ababab"), "b": list("xxyyxy"), "t": [1, 1, 2, 2, 3, 3]})
    encoder = TargetEncoder(columns=["a", "b"], cv=Ordered(time="t"), prior={"a": 0.5}, target_type="continuous")
    with pytest.warns(UserWarning, match="2 rows see no rows at all"):
        codes = encoder.fit_transform(frame, np.arange(6.0))
    assert codes["a"].notna().all()
    assert codes["b"].isna().sum() == 2


def test_many_new_values_under_a_hierarchy_have_the_encoding_of_their_parent():
    zips = pd.DataFrame({"zip": ["10a", "10b", "20a", "20b"] * 10})
    encoder = TargetEncoder(columns=["zip"], hierarchy={"zip": Prefixes(2)}, smooth=1.0)
    encoder.fit(zips, [0, 1, 1, 1] * 10)
    parents = encoder.transform(pd.DataFrame({"zip": ["10z", "20z"]})).to_numpy()
    # As many as are looked up by Arrow, at once.
    new = pd.DataFrame({"zip": [f"{parent}x{number}" for parent in (10, 20) for number in range(200)]})
    assert_same_bits(encoder.transform(new).to_numpy(), np.repeat(parents, 200, axis=0))
