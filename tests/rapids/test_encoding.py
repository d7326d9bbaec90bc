"""Encoders on frames of cuDF: the encodings of the host, in a cuDF frame with the index and other columns of X."""

import os
import pickle
import subprocess
import sys
from importlib import import_module

import cudf
import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
from sklearn.model_selection import StratifiedKFold

from gpu_encode import GroupKFold, KFold, Ordered, TargetEncoder, TimeFolds
from gpu_encode.tables.frames import read_grouping, read_vector
from tests.rapids import frames

N = 60
RNG = np.random.default_rng(7)
LETTERS = pa.array([None if i % 11 == 5 else "abcdefg"[i] if i < 7 else "" for i in RNG.integers(0, 9, N)])
COLUMNS = {
    "text": LETTERS,
    "category": LETTERS.dictionary_encode(),
    "number": pa.array([None if i == 3 else int(i) for i in RNG.integers(0, 6, N)]),
    "day": pa.array(RNG.integers(0, 20, N), pa.int64()).cast(pa.timestamp("s")),
    "price": pa.array(RNG.normal(size=N)),
}
KEYS = ["text", "number", ("category", "number")]
TARGETS = {
    "0/1": pa.array(RNG.integers(0, 2, N)),
    "bool": pa.array(RNG.integers(0, 2, N) == 1),
    "classes": pa.array(RNG.integers(0, 3, N)),
    "text": pa.array(["no", "yes", "maybe"]).take(pa.array(RNG.integers(0, 3, N))),
    "category": pa.array(["no", "yes"]).take(pa.array(RNG.integers(0, 2, N))).dictionary_encode(),
    "category of numbers": pa.array([7, 3]).take(pa.array(RNG.integers(0, 2, N))).dictionary_encode(),
    "real": pa.array(RNG.normal(size=N)),
    "float32": pa.array(RNG.normal(size=N).astype(np.float32)),
    "decimal": pa.array([f"{value:.2f}" for value in RNG.normal(size=N)]).cast(pa.decimal128(10, 2)),
}
WEIGHTS = pa.array(RNG.integers(0, 4, N) / 4)
GROUPS = pa.array(["x", "y", "z", "u", "v", "w"]).take(pa.array(RNG.integers(0, 6, N)))
FOLDS = pa.array(np.arange(N) % 3)
# Schemes that read a column of the frame, or the classes of the target.
SCHEMES = {
    "stratified": KFold(3, stratify=True),
    "time": TimeFolds(3, time="day"),
    "ordered by time": Ordered(time="day"),
    "splitter": StratifiedKFold(3, shuffle=True, random_state=0),
}


def on_device(columns=COLUMNS, index=None):
    return frames.frame(columns, index)


def on_host(columns=COLUMNS):
    return pa.table(columns)


def encodings(table, names):
    """Return the encoded columns, bit for bit."""
    if isinstance(table, cudf.DataFrame):
        return [frames.read(table[name]).to_numpy().tobytes() for name in names]
    return [table.column(name).to_numpy().tobytes() for name in names]


def encoded_names(table):
    """Return the names of the columns that do not pass through."""
    return [name for name in table.column_names if name not in ("day", "price")]


def fit_both(target, scheme=None, **parameters):
    """Return the training encodings of both sides, and both encoders."""
    encoders = [
        TargetEncoder(columns=KEYS, cv=KFold(3) if scheme is None else scheme, device=device, **parameters)
        for device in ("cuda", "cpu")
    ]
    on_gpu = encoders[0].fit_transform(on_device(), frames.series(target, "y"))
    expected = encoders[1].fit_transform(on_host(), target)
    return on_gpu, expected, *encoders


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_target_gives_the_encodings_of_the_host(target):
    on_gpu, expected, there, here = fit_both(target)
    names = encoded_names(expected)
    assert on_gpu.columns.tolist() == expected.column_names
    assert encodings(on_gpu, names) == encodings(expected, names)
    assert there.target_type_ == here.target_type_
    assert there.device_ == "cuda"
    assert (there.classes_ is None) == (here.classes_ is None)
    assert here.classes_ is None or there.classes_.tolist() == here.classes_.tolist()


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("target", ["0/1", "text"])
def test_every_scheme_gives_the_encodings_of_the_host(scheme, target):
    on_gpu, expected, _, _ = fit_both(TARGETS[target], SCHEMES[scheme])
    assert encodings(on_gpu, encoded_names(expected)) == encodings(expected, encoded_names(expected))


# For each device: the containers of X and of vectors.
SIDES = {"cuda": (on_device, frames.series), "cpu": (on_host, lambda array: array)}
VECTORS = {
    "groups of text": {"groups": GROUPS},
    "groups as a category": {"groups": GROUPS.dictionary_encode()},
    "groups by number": {"groups": FOLDS},
    "weights": {"sample_weight": WEIGHTS},
    "fold numbers": {"cv": FOLDS},
}


@pytest.mark.parametrize("given", VECTORS.values(), ids=VECTORS)
def test_vectors_of_cudf(given):
    results = []
    for device, (make_table, convert) in SIDES.items():
        vectors = {name: convert(array) for name, array in given.items()}
        cv = vectors.pop("cv", GroupKFold(3) if "groups" in given else KFold(3))
        encoder = TargetEncoder(columns=["text"], cv=cv, device=device)
        results.append(encodings(encoder.fit_transform(make_table(), convert(TARGETS["real"]), **vectors), ["text"]))
    assert results[0] == results[1]


def test_several_targets_in_a_frame():
    both = {"first": TARGETS["real"], "second": TARGETS["0/1"]}
    on_gpu, expected = (
        TargetEncoder(columns=["text"], target_type="continuous", device=device).fit_transform(X, y)
        for device, X, y in (("cuda", on_device(), frames.frame(both)), ("cpu", on_host(), pa.table(both)))
    )
    assert encodings(on_gpu, ["text_first", "text_second"]) == encodings(expected, ["text_first", "text_second"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_new_rows_of_either_kind(dtype):
    """Fitting and transforming on either device give one result, unknown values included."""
    _, _, *encoders = fit_both(TARGETS["real"], dtype=dtype)
    new = {**COLUMNS, "text": pa.array(["never", *COLUMNS["text"].to_pylist()[1:]])}
    names = ["text", "number", "category_x_number"]
    tables = on_device(new), on_host(new)
    results = [encodings(encoder.transform(table), names) for encoder in encoders for table in tables]
    assert results == [results[-1]] * 4


def test_the_computation_may_be_asked_for_on_the_host():
    """device="cpu" copies the columns to the host, and returns a cuDF frame."""
    on_gpu = TargetEncoder(columns=["text"], cv=KFold(3), device="cpu").fit_transform(
        on_device(), frames.series(TARGETS["text"])
    )
    expected = TargetEncoder(columns=["text"], cv=KFold(3), device="cpu").fit_transform(on_host(), TARGETS["text"])
    names = ["text_maybe", "text_no", "text_yes"]
    assert isinstance(on_gpu, cudf.DataFrame)
    assert encodings(on_gpu, names) == encodings(expected, names)


def test_index_names_and_other_columns_are_those_of_x():
    index = pa.array(np.arange(100, 100 + N))
    X = on_device(index=index)
    # A series has its own index, which is not compared with the index of X without a GPU.
    y = TARGETS["0/1"].to_numpy()
    on_gpu = TargetEncoder(columns=["text"], indicators=True, device="cuda").fit_transform(X, y)
    assert on_gpu.columns.tolist() == ["text", "text_unseen", "category", "number", "day", "price"]
    assert on_gpu.index.name == "row"
    held = [part.to_pylibcudf()[0].data().ptr for part in (on_gpu.index, X.index)]
    assert held[0] == held[1]
    assert frames.read(on_gpu.index).equals(index)
    for name in ("category", "number", "day", "price"):
        assert on_gpu[name].dtype == X[name].dtype
        assert on_gpu[name].to_pylibcudf()[0].data().ptr == X[name].to_pylibcudf()[0].data().ptr


def test_names_are_compared_as_scikit_learn_does():
    encoder = TargetEncoder(device="cuda").fit(on_device({"a": LETTERS}), frames.series(TARGETS["0/1"]))
    assert encoder.feature_names_in_.tolist() == encoder.get_feature_names_out().tolist() == ["a"]
    with pytest.raises(ValueError, match=r"(?s)Feature names unseen at fit time:\n- b"):
        encoder.transform(on_device({"b": LETTERS}))


def test_an_index_may_be_the_target_and_narwhals_may_hold_the_frame():
    encoder = TargetEncoder(columns=["text"], cv=KFold(3), device="cuda")
    expected = encodings(encoder.fit_transform(on_device(), frames.series(TARGETS["0/1"])), ["text"])
    on_gpu = encoder.fit_transform(nw.from_native(on_device()), frames.index_of(TARGETS["0/1"]))
    assert isinstance(on_gpu, nw.DataFrame)
    assert encodings(nw.to_native(on_gpu), ["text"]) == expected


@pytest.mark.parametrize("target", ["0/1", "text", "real"])
@pytest.mark.parametrize("kinds", [(on_device, on_device), (on_device, on_host)], ids=["cuDF", "cuDF and Arrow"])
def test_frames_in_pieces_are_one_frame(kinds, target):
    cuts = [slice(0, 17), slice(17, None)]
    pieces = [
        kind({name: array[rows] for name, array in COLUMNS.items()}) for kind, rows in zip(kinds, cuts, strict=True)
    ]
    y = [frames.series(TARGETS[target][rows]) for rows in cuts]
    encoder = TargetEncoder(columns=KEYS, cv=KFold(3), device="cuda")
    on_gpu = encoder.fit_transform(pieces, y)
    _, expected, _, here = fit_both(TARGETS[target])
    names = encoded_names(expected)
    columns = zip(*(encodings(table, names) for table in on_gpu), strict=True)
    assert [b"".join(column) for column in columns] == encodings(expected, names)
    assert [isinstance(table, cudf.DataFrame) for table in on_gpu] == [kind is on_device for kind in kinds]
    assert [array.tobytes() for array in encoder.encodings_] == [array.tobytes() for array in here.encodings_]


@pytest.mark.parametrize(
    ("y", "role", "wrong", "match"),
    [
        (["a", "b", "a", "b"], "y", ["a", "b", None, "a"], r"y has 1 missing value, in row 6"),
        ([0.0, 1.0, 0.5, 0.0], "y", [0.5, 1.0, None, 0.0], r"y has 1 missing value, in row 6"),
        (["a", "b", "a", "b"], "sample_weight", ["a", "b", None, "a"], r"sample_weight must hold numbers"),
    ],
)
def test_what_is_missing_in_a_piece_is_refused(y, role, wrong, match):
    X = frames.frame({"k": pa.array(["a", "b", "a", "b"])})
    fine = {"y": y, "sample_weight": [1.0] * 4}
    pieces = {name: [values, wrong if name == role else values] for name, values in fine.items()}
    vectors = {name: [frames.series(pa.array(values)) for values in pair] for name, pair in pieces.items()}
    with pytest.raises(ValueError, match=match):
        TargetEncoder(cv=KFold(2), device="cuda").fit_transform([X, X], **vectors)


def test_x_is_left_as_it_was_and_nothing_of_it_is_kept():
    X, y = on_device(), frames.series(TARGETS["0/1"])
    encoder = TargetEncoder(columns=KEYS, device="cuda").fit(X, y)
    assert X.columns.tolist() == list(COLUMNS)
    encoder.transform(X)
    assert b"cudf" not in pickle.dumps(encoder)
    again = pickle.loads(pickle.dumps(encoder))
    assert encodings(again.transform(X), ["text"]) == encodings(encoder.transform(X), ["text"])


def test_no_rows_give_no_rows():
    encoder = TargetEncoder(columns=["text"], device="cuda").fit(on_device(), frames.series(TARGETS["0/1"]))
    on_gpu = encoder.transform(on_device({name: array[:0] for name, array in COLUMNS.items()}))
    assert on_gpu.shape == (0, 5)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"y": pa.array([1, None] * (N // 2))}, r"y has 30 missing values, the first in row 1"),
        ({"y": pa.array([1.0, float("nan")] * (N // 2))}, r"y has 30 missing values, the first in row 1"),
        ({"y": pa.array(["a", None] * (N // 2))}, r"y has 30 missing values, the first in row 1"),
        ({"y": COLUMNS["day"]}, r"dates|times"),
        ({"y": TARGETS["0/1"][1:]}, r"inconsistent numbers of samples"),
        ({"sample_weight": pa.array([1.0, None] * (N // 2))}, r"NaN"),
        ({"sample_weight": LETTERS}, r"must hold numbers"),
        ({"groups": pa.array(["a", None] * (N // 2))}, r"groups"),
    ],
    ids=lambda value: None,
)
def test_errors_are_those_of_the_host(given, match):
    arguments = {"y": TARGETS["0/1"], **given}
    scheme = GroupKFold(2) if "groups" in given else KFold(2)
    messages = []
    for device, (make_table, convert) in SIDES.items():
        encoder = TargetEncoder(columns=["text"], cv=scheme, device=device)
        vectors = {name: convert(array) for name, array in arguments.items()}
        with pytest.raises((ValueError, TypeError), match=match) as caught:
            encoder.fit_transform(make_table(), **vectors)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("role", ["y", "sample_weight", "groups"])
def test_several_levels_are_not_one_vector(role):
    levels = {"a": frames.column(TARGETS["0/1"]), "b": frames.column(FOLDS)}
    with pytest.raises(ValueError, match=rf"{role} .*{N}, 2"):
        (read_grouping if role == "groups" else read_vector)(cudf.MultiIndex._from_data(levels), role)


def test_vectors_stay_on_the_device():
    for series in (frames.series(TARGETS["real"]), nw.from_native(frames.series(TARGETS["real"]), series_only=True)):
        assert not isinstance(read_vector(series, "y"), np.ndarray)
    labels = read_vector(frames.series(TARGETS["text"]), "y")
    assert labels.labels.tolist() == ["maybe", "no", "yes"]
    assert not isinstance(labels.codes, np.ndarray)


def test_frames_that_cudf_pandas_accelerates(tmp_path):
    """A separate process, since cudf.pandas replaces pandas everywhere it is imported."""
    script = tmp_path / "accelerated.py"
    script.write_text(ACCELERATED)
    start = ["import tests.rapids.simulator"] if import_module("gpu_encode.seam.devices").simulated() else []
    code = "\n".join([*start, f"exec(open({str(script)!r}).read())"])
    own = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["fast", "slow", "read"]


ACCELERATED = """
import os
os.environ["CUDF_NO_INITIALIZE"] = "1"
import cudf.pandas
cudf.pandas.install()
import cudf
import pandas as pd
import pyarrow as pa
from gpu_encode import TargetEncoder
from gpu_encode.seam import devices
from gpu_encode.tables.frames import read
from tests.rapids import frames

columns = {"k": pa.array(["a", "b", "a", "b", None, "a"]), "n": pa.array([1, 2, 3, 4, 5, 6])}
y = pa.array([0, 1, 1, 0, 1, 0])
expected = TargetEncoder(columns=["k"], cv=2, device="cpu").fit_transform(pa.table(columns), y).column("k").to_pylist()

fast = cudf.pandas.as_proxy_object(frames.frame(columns))
assert type(fast).__module__.startswith("pandas") and devices.on_gpu(fast)
labels = cudf.pandas.as_proxy_object(frames.series(y))
on_gpu = TargetEncoder(columns=["k"], cv=2, device="cuda").fit_transform(fast, labels)
assert cudf.pandas.is_proxy_object(on_gpu) and isinstance(on_gpu, pd.DataFrame)
held = devices.unwrap(on_gpu)
assert type(held) is cudf.DataFrame and frames.read(held["k"]).to_pylist() == expected
encoder = TargetEncoder(columns=["k"], cv=2, device="cuda").set_output(transform="pandas")
assert type(devices.unwrap(encoder.fit_transform(fast, labels))) is cudf.DataFrame
print("fast")

from cudf.pandas.module_accelerator import disable_module_accelerator
with disable_module_accelerator():
    import pandas as plain
    given = plain.DataFrame({"k": ["a", "b", "a", "b", None, "a"], "n": [1, 2, 3, 4, 5, 6]})
slow = cudf.pandas.as_proxy_object(given)
assert cudf.pandas.is_proxy_object(slow) and not devices.on_gpu(slow)
on_gpu = TargetEncoder(columns=["k"], cv=2, device="cpu").fit_transform(slow, y)
assert cudf.pandas.is_proxy_object(on_gpu)
assert devices.unwrap(on_gpu)["k"].tolist() == expected
print("slow")
# On a GPU, reading from a proxy may move it there.
assert read(slow).kind in ["pandas", "cudf"][: 1 + (not devices.simulated())] and read(fast).kind == "cudf"
print("read")
"""
