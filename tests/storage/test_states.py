"""A fitted encoder holds NumPy arrays and plain Python: copies, pickles, skops and MLflow keep all bits."""

import copy
import datetime
import decimal
import io
import pickle
import pydoc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import gpu_encode as ge
from gpu_encode import Ordered, StatisticEncoder, TargetEncoder
from gpu_encode.seam import ops
from gpu_encode.storage.parameters import CLASSES, decode, describe_scheme
from gpu_encode.tables.categories.vocabulary import Vocabulary
from tests.bits import assert_same_encoder
from tests.family.members import AMOUNT, MEMBERS, ROWS
from tests.storage.fitted import CASES, NEW, OPTIONS, TABLE, TARGETS, VALUES
from tests.storage.test_round_trip import bits

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
PLAIN = bool | int | float | str | bytes | type | np.generic | np.dtype | decimal.Decimal | datetime.timedelta | None
COLUMNS = [name for name in CASES if name.split(" ", 1)[1] in VALUES | OPTIONS]


@cache
def fit(name: str) -> tuple[Any, Any]:
    """Give a fitted encoder, and rows to encode."""
    if name in MEMBERS:
        make, y = MEMBERS[name]
        return make().fit(ROWS, y), ROWS
    case = CASES[name]()
    return case.encoder(), case.new


@cache
def transformed(name: str) -> Any:
    """Give the bits of these rows, encoded."""
    encoder, rows = fit(name)
    return bits(encoder.transform(rows))


def by_skops(encoder: Any, *functions: str) -> Any:
    skops = pytest.importorskip("skops.io")
    return skops.loads(skops.dumps(encoder), trusted=[*ge.skops_types(), *functions])


def by_joblib(encoder: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(encoder, file)
    file.seek(0)
    return joblib.load(file)


def by_cloudpickle(encoder: Any) -> Any:
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(encoder))


# All of them ask an encoder for its state, and skops also for the types in it; so these two test every member,
# and all of them test the first member of each class.
OF_ALL_MEMBERS = ("pickle", "skops")
WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda encoder: pickle.loads(pickle.dumps(encoder)),
    "first pickle": lambda encoder: pickle.loads(pickle.dumps(encoder, 0)),
    "cloudpickle": by_cloudpickle,
    "joblib": by_joblib,
    "skops": by_skops,
}


def foreign_values(value: Any, place: str = "") -> Iterator[str]:
    """Return the paths in a state to objects that are not NumPy's, plain Python, or our own objects of such parts."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, dict):
        if any(isinstance(key, tuple) for key in value):
            yield f"{place}: keys {list(value)}"
        inner = list(value.items())
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    elif isinstance(value, PLAIN | np.ndarray):
        return
    elif type(value).__module__.startswith(("gpu_encode.", "cpu_fallback.")):
        inner = list((value.__getstate__() or {}).items())
    else:
        yield f"{place}: {type(value)}"
        return
    for name, held in inner:
        yield from foreign_values(held, f"{place}.{name}")


@pytest.mark.parametrize("name", [*MEMBERS, *CASES])
def test_a_state_is_numpy_and_plain_python(name: str) -> None:
    assert list(foreign_values(fit(name)[0])) == []


def firsts_of_classes() -> list[str]:
    """Give the first member of each class of encoders."""
    firsts: dict[type, str] = {}
    for name, (make, _) in MEMBERS.items():
        firsts.setdefault(type(make()), name)
    return list(firsts.values())


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, way) for name in firsts_of_classes() for way in WAYS if way not in OF_ALL_MEMBERS),
        *((name, way) for name in MEMBERS for way in OF_ALL_MEMBERS),
        *((name, "skops") for name in COLUMNS),
    ],
)
def test_a_copy_is_the_encoder(name: str, way: str) -> None:
    encoder, rows = fit(name)
    again = WAYS[way](encoder)
    assert_same_encoder(again, encoder)
    assert bits(again.transform(rows)) == transformed(name)
    assert repr(again.get_params()) == repr(encoder.get_params())
    assert sorted(vars(again)) == sorted(vars(encoder))


@pytest.mark.parametrize("arrow", [pa.array, lambda values: pa.chunked_array([values])], ids=["array", "chunked"])
def test_categories_given_as_arrow_arrays(arrow: Any) -> None:
    encoder = TargetEncoder(categories=[arrow(["b", "a"])]).fit([["a"], ["b"]] * 4, [0, 1] * 4)
    assert list(foreign_values(encoder)) == []
    assert by_joblib(encoder).get_params()["categories"] == [["b", "a"]]
    assert isinstance(encoder.get_params()["categories"][0], pa.Array | pa.ChunkedArray)


def test_a_copy_learns_more_rows_as_the_encoder() -> None:
    encoder = TargetEncoder(columns=["city", ("city", "zip")])
    other = copy.deepcopy(encoder.fit(TABLE, TARGETS["binary"]))
    for each in (encoder, other):
        each.partial_fit(NEW, TARGETS["binary"])
    assert_same_encoder(other, encoder)


def test_an_order_that_was_saved_before_blocks_is_one_of_single_rows() -> None:
    state = Ordered(2, block="auto").__getstate__()
    del state["block"]
    loaded = Ordered.__new__(Ordered)
    loaded.__setstate__(state)
    assert loaded.get_params() == Ordered(2, block=1).get_params()
    document, _ = describe_scheme(Ordered(2, block="auto"), None)
    del document["parameters"]["block"]
    assert decode(document, None).get_params() == loaded.get_params()


def test_a_pickle_holds_the_values_and_not_the_array_that_they_were_cut_from() -> None:
    words = pa.array([f"{number:06d}" for number in range(100_000)], pa.large_string())
    vocabulary, _ = Vocabulary.from_values(words.slice(99_990, 3), "x")
    assert len(pickle.dumps(vocabulary)) < 1_000
    assert pickle.loads(pickle.dumps(vocabulary)).to_numpy().tolist() == ["099990", "099991", "099992"]


@pytest.mark.parametrize("offsets", [[0, 1, 99], [0, 2, 1], [5, 1, 2], [-1, 0, 2]])
def test_a_forged_state_of_text_is_refused(offsets: list[int]) -> None:
    values = Vocabulary.from_values(["a", "b"], "x")[0].values
    with pytest.raises(ValueError, match=r"[Oo]ffset"):
        values.__setstate__(values.__getstate__() | {"offsets": np.array(offsets)})


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_a_state_with_sums_of_fewer_categories_is_refused(backend: str) -> None:
    encoder = TargetEncoder(columns=["city", ("city", "zip")]).fit(TABLE, TARGETS["binary"])
    for per_target in encoder._model.statistics:
        per_target[0] = per_target[0].part(0, 3)
    with ops.use_backend(backend), pytest.raises(ValueError, match="The sums of 'city' do not fit its categories"):
        pickle.loads(pickle.dumps(encoder)).transform(NEW)


def shift(count: Any, mean: Any, variance: Any) -> Any:
    return mean + count


def test_a_function_goes_by_its_name_and_skops_refuses_one_without() -> None:
    skops = pytest.importorskip("skops.io")
    named = StatisticEncoder([shift], columns=["zip"]).fit(ROWS, AMOUNT)
    with pytest.raises(TypeError, match=f"{__name__}.shift"):
        by_skops(named)
    again = by_skops(named, f"{__name__}.shift")
    pd.testing.assert_frame_equal(again.transform(ROWS), named.transform(ROWS), check_exact=True)

    def local(count: Any, mean: Any, variance: Any) -> Any:
        return mean + count

    content = skops.dumps(StatisticEncoder([local], columns=["zip"]).fit(ROWS, AMOUNT))
    with pytest.raises(AttributeError, match="local"):
        skops.loads(content, trusted=[*ge.skops_types(), *skops.get_untrusted_types(data=content)])


# Public classes that learn, and are no members of the family.
OTHERS = {
    "factors": (ge.FactorizationEncoder, "numbers"),
    "proximity": (ge.ProximityEncoder, "labels"),
    "proximity of labels": (ge.ProximityClassifier, "labels"),
    "proximity of numbers": (ge.ProximityRegressor, "numbers"),
    "votes of labels": (ge.VoteClassifier, "labels"),
    "votes of numbers": (ge.VoteRegressor, "numbers"),
    "blend": (ge.ConvexBlend, "labels"),
    "blend of numbers": (ge.SquaredErrorBlend, "numbers"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_skops_keeps_estimators(name: str) -> None:
    kind, target = OTHERS[name]
    random = np.random.default_rng(0)
    X = random.random((100, 2)) if "Blend" in kind.__name__ else random.integers(0, 4, (100, 2))
    fitted = kind().fit(X, random.integers(0, 2, 100) if target == "labels" else random.random(100))
    method = "transform" if hasattr(fitted, "transform") else "predict"
    found, expected = (getattr(each, method)(X) for each in (by_skops(fitted), fitted))
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_every_public_class_and_no_other_name_is_for_skops() -> None:
    public = [getattr(ge, name) for name in ge.__all__]
    asked = {kind for kind in public if isinstance(kind, type) and not issubclass(kind, Warning)} | {*CLASSES.values()}
    named = {full: pydoc.locate(full) for full in ge.skops_types()}
    assert asked <= {*named.values()}
    assert {full: f"{kind.__module__}.{kind.__qualname__}" for full, kind in named.items()} == {
        full: full for full in named
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["skops", "cloudpickle"])
def test_mlflow_gives_back_the_pipeline_that_it_was_given(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow.sklearn")
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "true")
    random = np.random.default_rng(3)
    towns = random.integers(0, 50, 2_000)
    y = (random.random(2_000) < random.random(50)[towns]).astype(int)
    X = pd.DataFrame({"town": [f"town {town}" for town in towns]})
    pipeline = make_pipeline(TargetEncoder(), LogisticRegression()).fit(X, y)
    trusted = {"skops_trusted_types": ge.skops_types()} if form == "skops" else {}
    mlflow.save_model(pipeline, tmp_path / "model", serialization_format=form, pip_requirements=[], **trusted)
    again = mlflow.load_model(str(tmp_path / "model"))
    assert again.predict_proba(X).tobytes() == pipeline.predict_proba(X).tobytes()
    assert roc_auc_score(y, again.predict_proba(X)[:, 1]) == roc_auc_score(y, pipeline.predict_proba(X)[:, 1]) > 0.7
