"""`plan` gives a bound: no call takes more memory, and the bound is not many times the memory of a call."""

import gc
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold as TheirKFold
from sklearn.model_selection import LeaveOneGroupOut, ShuffleSplit

from cpu_fallback.compiled import key_sums
from cpu_fallback.compiled.threads import set_threads
from cpu_fallback.memory_pool import pool
from gpu_encode import (
    CatBoostEncoder,
    CountEncoder,
    Greedy,
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    Ordered,
    PartialPooling,
    Prefixes,
    StatisticEncoder,
    TargetEncoder,
    TimeFolds,
    interactions,
)
from gpu_encode.fitting import memory_plan
from gpu_encode.fitting.memory_plan import LEAST
from gpu_encode.seam.ops import use_backend
from tests.cuda.test_peak_memory import DOCUMENT, SCHEMES

pytestmark = pytest.mark.host
N = 40_000


def table(n_rows, n_values, n_columns=3, kind="int"):
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.integers(0, n_values, n_rows) for i in range(n_columns)}
    frame = pd.DataFrame(columns)
    return frame if kind == "int" else frame.astype(kind)


def target(kind, n_rows):
    rng = np.random.default_rng(1)
    classes = {"binary": 2, "ten": 10, "eighty": 80}
    return rng.normal(size=n_rows) if kind == "real" else rng.integers(0, classes[kind], n_rows)


def measured(encoder, X, y, **given):
    """Return the peak bytes of NumPy arrays during a call, without its input."""
    pool.free.clear()
    gc.collect()
    tracemalloc.start()
    try:
        encoder.fit_transform(X, y, **given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ONE = {"columns": ["c0"], "smooth": 10.0, "dtype": "float32"}
PAIRS = {"columns": interactions(["c0", "c1", "c2"], order=2), "smooth": 10.0}
TRIPLES = {"columns": interactions([f"c{i}" for i in range(5)], 3)[5:], "smooth": 10.0, "dtype": "float32"}
CASES = {
    "folds": ({"cv": 5, **ONE}, "binary", {}),
    "folds, many categories": ({"cv": 5, **ONE}, "binary", {"n_values": 40_000}),
    "folds, text": ({"cv": 5, **ONE}, "binary", {"n_values": 40_000, "kind": "str"}),
    "folds, floats": ({"cv": 5, **ONE}, "real", {"n_values": 40_000, "kind": "float"}),
    "folds, ten classes": ({"cv": 5, **ONE}, "ten", {"n_values": 40_000}),
    "folds, real": ({"cv": 5, **ONE}, "real", {"n_values": 40_000}),
    "folds, empirical Bayes": ({"cv": 5, "columns": ["c0"]}, "real", {"n_values": 40_000}),
    "twenty folds": ({"cv": 20, **ONE}, "binary", {"n_values": 20_000}),
    "stratified": ({"cv": KFold(5, stratify=True), **ONE}, "binary", {}),
    "by value": ({"cv": KFold(5, by="c1"), **ONE}, "binary", {"n_values": 5000}),
    "blow-up": ({"cv": KFold(5, blow_up=True), **ONE}, "binary", {"n_values": 5000}),
    "groups": ({"cv": GroupKFold(5, groups="c1"), **ONE}, "binary", {"n_values": 5000}),
    "time": ({"cv": TimeFolds(5, time="c1"), **ONE}, "binary", {"n_values": 5000}),
    "holdout": ({"cv": Holdout(), **ONE}, "real", {"n_values": 5000}),
    "leave-one-out": ({"cv": LeaveOneOut(), **ONE}, "binary", {"n_values": 40_000}),
    "leave-one-out, ten classes": ({"cv": LeaveOneOut(), **ONE}, "ten", {"n_values": 40_000}),
    "leave-one-out, eighty classes": ({"cv": LeaveOneOut(), **ONE}, "eighty", {"n_values": 5000}),
    "ordered": ({"cv": Ordered(), **ONE}, "binary", {"n_values": 40_000}),
    "four orders": ({"cv": Ordered(4), **ONE}, "ten", {"n_values": 40_000}),
    "four orders apart": ({"cv": Ordered(4, average=False), **ONE}, "real", {"n_values": 5000}),
    "order in time": ({"cv": Ordered(time="c1"), **ONE}, "binary", {"n_values": 5000}),
    "a splitter": ({"cv": TheirKFold(4), **ONE}, "real", {"n_values": 5000}),
    "pairs": (PAIRS, "binary", {"n_values": 200}),
    "pairs, real": (PAIRS, "real", {"n_values": 200}),
    "pairs, leave-one-out": ({**PAIRS, "cv": LeaveOneOut()}, "real", {"n_values": 200}),
    "triples, leave-one-out, eighty classes": (
        {**TRIPLES, "cv": LeaveOneOut()},
        "eighty",
        {"n_values": 12, "n_columns": 5},
    ),
    "James and Stein": ({"columns": ["c0"], "smooth": JamesStein()}, "binary", {"n_values": 40_000}),
    "category means": ({"columns": ["c0"], "prior": "category_mean"}, "binary", {"n_values": 40_000}),
    "partial pooling": ({"columns": ["c0"], "smooth": PartialPooling()}, "real", {"n_values": 40_000}),
    "a limit": ({"columns": ["c0"], "max_categories": 50}, "binary", {"n_values": 40_000}),
    "a scale": ({"columns": ["c0"], "scale": "sqrt"}, "binary", {"n_values": 40_000}),
    "a hierarchy": ({"columns": ["c0"], "hierarchy": {"c0": ["c1"]}}, "binary", {"n_values": 150}),
    "text and its beginnings": (
        {"columns": ["c0"], "hierarchy": {"c0": Prefixes(2)}},
        "binary",
        {"n_values": 20_000, "kind": "str"},
    ),
    "indicators": ({**ONE, "indicators": True}, "binary", {"n_values": 5000}),
}


@pytest.fixture(autouse=True)
def _compiled():
    with use_backend("compiled"):
        yield


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_no_call_takes_more(case):
    parameters, kind, asked = CASES[case]
    encoder, X, y = TargetEncoder(**parameters), table(N, **{"n_values": 16, **asked}), target(kind, N)
    encoder.fit_transform(X[:5000], y[:5000])
    plan, taken = encoder.plan(X, y), measured(encoder, X, y)
    assert taken <= plan.peak_bytes
    # Apart from a fixed amount, the bound is within a few times of the memory in use.
    assert plan.peak_bytes - LEAST <= 10 * taken


@pytest.mark.parametrize("weight", [2, 0.3], ids=["whole", "fractions"])
@pytest.mark.parametrize("n_keys", [1, 41])
def test_nor_do_weights(weight, n_keys):
    """A thread that encodes many keys together holds wide sums of many classes."""
    keys = [f"c{i}" for i in range(12)] if n_keys == 1 else interactions([f"c{i}" for i in range(6)], order=3)
    encoder, X, y = TargetEncoder(columns=keys[-n_keys:], smooth=10.0), table(N, 9, 12), target("ten", N)
    weights = np.arange(N) % 7 * weight
    encoder.fit_transform(X[:5000], y[:5000], sample_weight=weights[:5000])
    plan = encoder.plan(X, y, sample_weight=weights)
    gc.collect()
    assert measured(encoder, X, y, sample_weight=weights) <= plan.peak_bytes
    assert plan.peak_bytes >= encoder.plan(X, y).peak_bytes


SPARSE = {
    "folds": (5, "binary", 100),
    "leave-one-out, ten classes": (LeaveOneOut(), "ten", 60),
    "real": (5, "real", 40),
}


@pytest.mark.parametrize("n_threads", [2, 16])
@pytest.mark.parametrize("case", SPARSE)
def test_nor_do_sparse_keys_on_many_threads(case, n_threads):
    """Tables of keys that are encoded together have all cells, of which few have a row."""
    cv, kind, n_values = SPARSE[case]
    keys = interactions([f"c{i}" for i in range(8)], order=2)[8:]
    encoder, X, y = TargetEncoder(columns=keys, cv=cv, smooth=10.0), table(1000, n_values, 8), target(kind, 1000)
    try:
        set_threads(1)
        encoder.fit_transform(X, y)
        alone = measured(encoder, X, y)
        set_threads(n_threads)
        plan, taken = encoder.plan(X, y), measured(encoder, X, y)
    finally:
        set_threads(None)
    assert taken <= plan.peak_bytes
    # How many threads have tables at the same moment is chance: at most all of them.
    assert plan.peak_bytes - LEAST <= 10 * n_threads * alone


def test_groups_of_keys_are_those_of_the_kernels():
    assert memory_plan.GROUP == key_sums.GROUP


def test_nor_do_hundreds_of_keys():
    names = [f"c{i}" for i in range(12)]
    encoder = TargetEncoder(columns=interactions(names, order=3), smooth=10.0, dtype="float32")
    X, y = table(N, 8, 12), target("binary", N)
    encoder.fit_transform(X[:5000], y[:5000])
    plan, taken = encoder.plan(X, y), measured(encoder, X, y)
    assert (len(plan.keys), plan.output_bytes) == (298, 298 * 4 * N)
    assert taken <= plan.peak_bytes <= LEAST + 3 * taken


@pytest.mark.parametrize(
    "encoder",
    [
        CountEncoder(columns=["c0"]),
        CatBoostEncoder(columns=["c0"]),
        StatisticEncoder(columns=["c0"], statistics=["mean", "std"]),
        StatisticEncoder(columns=["c0"], statistics=["median"], cv=5),
        StatisticEncoder(columns=["c0"], values=["c1", "c2"], statistics=["mean", "max"], cv=5),
    ],
    ids=str,
)
def test_nor_do_other_encoders(encoder):
    X, y = table(N, 5000), target("real", N)
    y = None if isinstance(encoder, CountEncoder) else (y > 0).astype(int)
    encoder.fit_transform(X[:5000], None if y is None else y[:5000])
    assert measured(encoder, X, y) <= encoder.plan(X, y).peak_bytes


@pytest.mark.parametrize(
    ("scheme", "asked"), [key for key in DOCUMENT if key[0] in SCHEMES and "on the device" not in key[0]]
)
def test_rows_of_a_gpu_are_those_of_its_tests(scheme, asked):
    cv = SCHEMES[scheme](1000)
    timed = next((getattr(cv, name) for name in ("time", "by") if getattr(cv, name, None) is not None), None)
    rest = {} if timed is None else {"columns": [0]}
    X, y = np.arange(2000).reshape(1000, 2) % 16, np.arange(1000) % 2
    encoder = TargetEncoder(cv=cv, smooth=10.0, dtype="float32", **rest)
    plan = encoder.plan(X, y if asked != "real" else y + 0.5)
    assert (plan.code_bytes + plan.row_bytes) // 1000 >= DOCUMENT[scheme, asked]
    assert plan.keys[0].output_bytes // 1000 == 4 * (
        5 if "blow_up" in scheme else 2 if "average=False" in scheme else 1
    )


def test_rows_need_not_be_there():
    X, y = table(N, 30), target("binary", N)
    encoder = TargetEncoder(columns=["c0", "c1", ("c0", "c1")], cv=KFold(4, by="c2"))
    here = encoder.plan(X, y, device_memory="2 GB")
    there = encoder.plan(rows=N, categories={"c0": 30, "c1": 30, "c2": 30}, device_memory=2_000_000_000)
    assert here == there
    assert [key.categories for key in here.keys] == [31, 31, 31 * 31]
    assert here.cells == (31 + 31 + 961) * 4 * 2
    (key,) = TargetEncoder(columns=["c0"]).plan(rows=50).keys
    assert key.categories == 51
    numbers = TargetEncoder(columns=["c0"], target_type="continuous")
    assert numbers.plan(rows=50).cells == TargetEncoder(columns=["c0"]).plan(rows=50, classes=1).cells == 51 * 5
    assert TargetEncoder(columns=["c0"]).plan(rows=50, classes=7).cells == 51 * 5 * 7
    everything = TargetEncoder().plan(rows=50, categories={"c0": 3, "c1": 4})
    assert [key.name for key in everything.keys] == ["c0", "c1"]
    values = StatisticEncoder(columns=["c0"], values=["price"])
    assert [key.name for key in values.plan(rows=50).keys] == ["c0"]


@pytest.mark.parametrize(
    ("cv", "folds"),
    [
        (Greedy(), 1),
        (7, 7),
        (LeaveOneOut(), 1),
        (Ordered(3), 1),
        (Holdout(), 2),
        ("c2", 10),
        (np.arange(N) % 6, 6),
        (TheirKFold(4), 4),
        ([([0, 1], [2, 3]), ([2, 3], [0, 1])], 2),
        (ShuffleSplit(8), 8),
        ({"c0": 3, "c1": 3}, 3),
    ],
    ids=str,
)
def test_folds_are_counted(cv, folds):
    X = table(N, 9)
    plan = TargetEncoder(columns=["c0", "c1"], cv=cv).plan(X, target("real", N))
    assert plan.cells == 2 * 10 * folds


def test_what_does_not_fit_is_cut():
    encoder = TargetEncoder(columns=interactions(["a", "b", "c", "d"], order=2))
    asked = {"rows": 10_000_000, "categories": dict.fromkeys("abcd", 100)}
    whole = encoder.plan(**asked, device_memory="1TB")
    assert whole.fits
    assert whole.batches == [[key.name for key in whole.keys]]
    assert whole.parts == 1
    assert repr(whole).endswith("yes")
    half = encoder.plan(**asked, device_memory=whole.input_bytes + whole.peak_bytes - whole.output_bytes // 2)
    assert not half.fits
    assert [len(batch) for batch in half.batches] == [5, 5]
    assert [*half.batches[0], *half.batches[1]] == whole.batches[0]
    assert half.parts == 2
    assert "no; in 2 batches of keys or in 2 parts of rows" in repr(half)
    small = encoder.plan(**asked, device_memory="500MB")
    assert (small.batches, small.parts) == (None, 4)
    none = encoder.plan(**asked, device_memory="1MB")
    assert (none.batches, none.parts) == (None, None)
    assert repr(none).endswith("neither in batches of keys nor in parts of rows")
    told = half.to_dict()
    assert told["batches"] == half.batches
    assert told["keys"][0] == vars(half.keys[0])
    assert told["peak_bytes"] == sum(told[f"{name}_bytes"] for name in ("code", "work", "table", "output"))


def test_memory_is_looked_for_where_the_call_runs(monkeypatch):
    devices = "gpu_encode.fitting.memory_plan.devices"
    monkeypatch.setattr(f"{devices}.available_bytes", lambda: 12345)
    plan = TargetEncoder(columns=["c0"]).plan(rows=10)
    assert (plan.device, plan.free_bytes) == ("cpu", 12345)
    assert TargetEncoder(columns=["c0"], device="cuda").plan(rows=10, device_memory="3MB").device == "cuda"


def test_nothing_is_encoded(monkeypatch):
    X, y = table(N, 30), target("binary", N)
    monkeypatch.delattr("gpu_encode.fitting.fit.encode_rows")
    monkeypatch.delattr("gpu_encode.fitting.inputs.read_categories")
    encoder = TargetEncoder()
    encoder.plan(X, y)
    assert not hasattr(encoder, "_model")


@pytest.mark.parametrize(
    ("encoder", "given", "said"),
    [
        (TargetEncoder(), {}, "takes a table X or a number of rows"),
        (TargetEncoder(), {"X": [["a"]], "rows": 3}, "takes a table X or a number of rows"),
        (TargetEncoder(), {"X": [["a"]], "categories": {"a": 3}}, "counts the categories of X"),
        (TargetEncoder(), {"y": [0, 1], "rows": 3}, "takes y beside X"),
        (TargetEncoder(), {"X": [["a"], ["b"]], "y": [0, 1], "classes": 3}, "takes y beside X"),
        (TargetEncoder(), {"rows": 3, "categories": ["a"]}, "must be a dict"),
        (TargetEncoder(), {"rows": 0}, "'rows' parameter of plan must be"),
        (TargetEncoder(), {"rows": 3}, "has to know the columns"),
        (TargetEncoder(columns=[0]), {"rows": 3}, "takes columns by name"),
        (TargetEncoder(), {"rows": 3, "categories": {"a": 0}}, r"parameter of plan must be"),
        (TargetEncoder(), {"rows": 3, "categories": {"a": 2}, "classes": 0}, "'classes' parameter of plan must be"),
        (TargetEncoder(), {"rows": 3, "categories": {"a": 2}, "device_memory": "much"}, "device_memory must be"),
        (TargetEncoder(cv=TimeFolds(time="t", half_life=1)), {"rows": 3, "categories": {"a": 2}}, "half_life"),
        (TargetEncoder(cv=iter([])), {"rows": 3, "categories": {"a": 2}}, "splits of an iterator"),
        (TargetEncoder(cv=LeaveOneGroupOut()), {"rows": 3, "categories": {"a": 2}}, "groups"),
        (TargetEncoder(smooth=-1.0), {"rows": 3, "categories": {"a": 2}}, "must be"),
        (TargetEncoder(columns=["a"]), {"rows": 3, "categories": {"a": 2, "b": 2}}, "names the column 'b', which"),
        (TargetEncoder(columns=["a"], cv="t"), {"rows": 3, "categories": {"b": 2}}, "that are read: 't', 'a'"),
        (TargetEncoder(columns=["a"]), {"rows": 3, "sample_weight": [1, 2, 3]}, "sample_weight beside X"),
        (TargetEncoder(), {"X": [["a"], ["b"]], "sample_weight": [1]}, "inconsistent"),
    ],
    # The text of an iterator holds an address, another one in each process.
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_errors(encoder, given, said):
    with pytest.raises(ValueError, match=said):
        encoder.plan(**given)


def test_rows_that_are_not_in_memory_yet_count():
    encoder = TargetEncoder(columns=[*"abcd"], dtype="float32", device="cuda")
    asked = {"rows": 1e9, "categories": dict.fromkeys("abcd", 1e6)}
    plan = encoder.plan(**asked, device_memory="80GiB")
    # Four columns and the target.
    assert plan.input_bytes == 10**9 * 5 * 4
    assert not plan.fits
    assert encoder.plan(**asked, device_memory=plan.input_bytes + plan.peak_bytes).fits
    assert not encoder.plan(**asked, device_memory=plan.input_bytes + plan.peak_bytes - 1).fits
    assert "X and y           18.6 GiB, 4 bytes a value" in repr(plan)
    assert plan.to_dict()["input_bytes"] == plan.input_bytes
    # In parts, X and y are in parts, too; in batches of keys they are whole.
    assert plan.parts == 2
    least = plan.input_bytes + plan.peak_bytes - plan.output_bytes + plan.keys[0].output_bytes
    assert [len(batch) for batch in encoder.plan(**asked, device_memory=least).batches] == [1, 1, 1, 1]
    assert encoder.plan(**asked, device_memory=plan.input_bytes).batches is None
    # The rows of a table are in memory already, unless the memory is that of another machine.
    X = pd.DataFrame({name: [1, 2, 3] for name in "abcd"})
    assert encoder.set_params(device="auto").plan(X, [0, 1, 0]).input_bytes == 0
    assert encoder.plan(X, [0, 1, 0], device_memory="80GiB").input_bytes == 3 * 5 * 4
    assert StatisticEncoder(columns=["a"], values=["b", "c"]).plan(rows=10).input_bytes == 10 * 3 * 4


def test_columns_without_a_number_of_values_are_named():
    encoder = TargetEncoder(columns=["shop", "city"])
    plan = encoder.plan(rows=1000, categories={"shop": 10})
    assert plan.not_counted == ["city"]
    assert "all distinct      city (not in categories)" in repr(plan)
    assert "all distinct" not in repr(encoder.plan(rows=1000, categories={"shop": 10, "city": 1000}))
    with pytest.raises(ValueError, match=r"device_memory=80 is 80 bytes, .* Did you mean '80GiB'"):
        encoder.plan(rows=1000, device_memory=80)
    for wrong in (1.5, float("nan"), float("inf"), True, "1e9"):
        with pytest.raises(ValueError, match="must be an integer"):
            encoder.plan(rows=wrong)
