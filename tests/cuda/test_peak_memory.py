"""Peak device memory of a call, in bytes per row and per category, in addition to its input and output.

Live arrays are counted: at every line of the package that makes an array, the size of all live arrays is recorded.  Two
calls with different numbers of rows, or of categories, are compared line by line, so everything that does not grow
cancels out.  The line with the largest growth is the peak.  Memory that CuPy takes inside one of its functions, above
all a sort, is not seen.
"""

import gc
import math
import os
import re
import sys
import weakref
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold as Splitter

from gpu_encode import Greedy, GroupKFold, Holdout, KFold, LeaveOneOut, Ordered, TargetEncoder, TimeFolds

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS") != "tests.cuda.stand_in",
        reason="only the stand-in's arrays are counted; on a GPU the benchmark asks the driver",
    ),
    pytest.mark.filterwarnings("ignore:Greedy", "ignore:[0-9]+ rows see no rows"),
]

# Both sizes have whole tiles, equal groups, times, classes and shares of null, and equally large hash tables and
# checkpoints.
FEW, MANY, TILE = 48, 60, 12


def fold_numbers(n_rows):
    return import_module("gpu_encode.cuda.memory").to_device((np.arange(n_rows) % 5).astype(np.int32))


def half_splits(n_rows):
    """Return two splits; each trains on every second row of the other half."""
    first, second = np.split(np.arange(n_rows), 2)
    return [(second[::2], first), (first[::2], second)]


# The scheme's name in the document, and a function that makes the scheme for a number of rows.
SCHEMES = {
    "`Greedy`": lambda n: Greedy(),
    "`KFold`, random": lambda n: KFold(5),
    "`KFold`, contiguous": lambda n: KFold(5, order="contiguous"),
    "`KFold`, interleaved": lambda n: KFold(5, order="interleaved"),
    "`KFold(blow_up=True)`": lambda n: KFold(5, blow_up=True),
    "`KFold(stratify=True)`, two classes of equal size": lambda n: KFold(5, stratify=True),
    "`KFold(by=...)`, values as int32": lambda n: KFold(2, by=1, random_state=3),
    "`GroupKFold`, groups as int32": lambda n: GroupKFold(5),
    "`TimeFolds`, times as int32": lambda n: TimeFolds(5, time=1),
    "`Holdout`": lambda n: Holdout(0.3),
    "`LeaveOneOut`": lambda n: LeaveOneOut(),
    "`Ordered`": lambda n: Ordered(),
    "`Ordered(shuffle=False)`": lambda n: Ordered(shuffle=False),
    "`Ordered(2)`": lambda n: Ordered(2),
    "`Ordered(3)`": lambda n: Ordered(3),
    "`Ordered(2, average=False)`": lambda n: Ordered(2, average=False),
    "`Ordered(time=...)`, times as int32": lambda n: Ordered(time=1),
    "fold numbers, int32 on the device": fold_numbers,
    "a splitter of scikit-learn (`KFold`)": lambda n: Splitter(5),
    "two splits, each trained on half of the other's rows": half_splits,
}
JOINT, CONTINUOUS = {"columns": [(0, 1)]}, {"target_type": "continuous"}
# Kinds of columns, with the arguments of `peaks` that make them.
COLUMNS = {
    "int64": {"column": "int64"},
    "int32": {"column": "int32"},
    "float64 without NaN": {"column": "float64"},
    "float64, a quarter NaN": {"column": "float64", "missing": True},
    "int64, a quarter null": {"column": "int64", "missing": True},
    "text": {"column": "text"},
    "text, a quarter null": {"column": "text", "missing": True},
    "two columns of int64, side by side (a frame)": {"column": "int64", "width": 2, "order": "F"},
    "two columns of int64, row by row (a C-ordered matrix)": {"column": "int64", "width": 2},
    "two columns of int64 as a joint key": {"column": "int64", "width": 2, "order": "F", "options": JOINT},
}
# Kinds of targets and weights, with the arguments of `peaks` that make them.
VECTORS = {
    "class, int32": {},
    "class, int64": {"target": "class", "target_dtype": "int64"},
    "real, float64": {"target": "real"},
    'real, float64, `target_type="continuous"`': {"target": "real", "options": CONTINUOUS},
    "real, float32": {"target": "real", "target_dtype": "float32"},
    "class, int32, by `Holdout`": {"scheme": lambda n: Holdout(0.3)},
    "class, int32, and weights as float64": {"weight": "float64"},
    "class, int32, and weights as float32": {"weight": "float32"},
    "class, int32, and weights as int64": {"weight": "int64"},
}


ASKED = {"class": {}, "real": {"target": "real"}, "class and weights": {"weight": "float64"}}


def read_document():
    """Return the bytes in the document's tables, by the names of the line and of the column."""
    text = (Path(__file__).parents[2] / "docs" / "rapids.md").read_text()
    section = text.split("### Peak memory by scheme\n")[1].split("\n#")[0]
    figures = {}
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        heads, _, *lines = (line[2:-2].split(" | ") for line in table.splitlines())
        for name, *cells in lines:
            figures |= {(name, head): int(cell) for head, cell in zip(heads[1:], cells, strict=True) if cell.strip()}
    return figures


DOCUMENT = read_document()


class Count:
    """Counts the bytes of live arrays, and the most of them at each line that makes an array."""

    def __init__(self):
        self.known = set()
        self.bytes = 0
        self.peaks = {}

    def add(self, array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        if not array.flags.owndata or id(array) in self.known:
            return
        self.known.add(id(array))
        self.bytes += array.nbytes
        line = line_of_package()
        self.peaks[line] = max(self.peaks.get(line, 0), self.bytes)
        weakref.finalize(array, self.remove, id(array), array.nbytes)

    def remove(self, known, n_bytes):
        self.known.discard(known)
        self.bytes -= n_bytes


def line_of_package():
    """Return the package's calls that led here, each by its position in the code."""
    frame, calls = sys._getframe(1), []
    while frame is not None:
        if frame.f_globals["__name__"].startswith("gpu_encode."):
            calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(calls)


@pytest.fixture
def count(monkeypatch):
    strict = import_module("tests.cuda.strict").StrictArray
    counted, begin = Count(), strict.__init__

    def made(self, held):
        begin(self, held)
        counted.add(held)

    monkeypatch.setattr(strict, "__init__", made)
    known = import_module("gpu_encode.cuda.memory").empty(1000, np.uint8)
    assert counted.bytes == known.nbytes == 1000, "arrays are not counted"
    del known
    monkeypatch.setattr(import_module("gpu_encode.cuda"), "TILE", TILE)
    monkeypatch.setattr(import_module("gpu_encode.fitting.model"), "SAMPLE", TILE)
    ordered = import_module("gpu_encode.cuda.ordered_encodings")
    monkeypatch.setattr(ordered, "TILE", TILE)
    monkeypatch.setattr(ordered, "BYTES_A_ROW", 1 << 20)
    for name in ("order_tiles", "ordered_sums"):
        monkeypatch.setattr(import_module(f"gpu_encode.cuda.{name}"), "RANKS", TILE)
    segments = import_module("gpu_encode.cuda.order_segments")
    monkeypatch.setattr(segments, "CHECKPOINT_BITS", 1)
    scans = import_module("gpu_encode.fitting.ordered")
    monkeypatch.setattr(scans, "CHECKPOINT_BITS", 1)
    monkeypatch.setattr(scans, "EXACT_RANKS", 2)
    return counted


@pytest.fixture(scope="module", autouse=True)
def _cycles_are_kept():
    """Turn off garbage collection: arrays in a cycle of references count as alive, since their end is unpredictable."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def column_of(n_rows, column, missing):
    """Return a column on the device, as a cuDF frame holds it."""
    module, memory = import_module("gpu_encode.tables.frames.device_columns"), import_module("gpu_encode.cuda.memory")
    numbers, nulls = np.arange(n_rows) % 16, np.arange(n_rows) % 4 == 0
    if column == "text":
        words = [f"category {number:05d}".encode() for number in numbers]
        ends, characters = np.cumsum([0, *map(len, words)]).astype(np.int32), np.frombuffer(b"".join(words), np.uint8)
        rows = import_module("gpu_encode.cuda.strings").strings_to_device(ends, characters)
        return module.DeviceColumn(rows, memory.to_device(nulls) if missing else None, pa.large_string())
    rows = numbers.astype(column)
    if missing and column == "float64":
        return module.DeviceColumn(memory.to_device(np.where(nulls, np.nan, rows)))
    return module.DeviceColumn(memory.to_device(rows), memory.to_device(nulls) if missing else None)


def vectors_of(n_rows, target, target_dtype, weight):
    """Return target and options of a call: classes or real numbers, weights, groups."""
    memory = import_module("gpu_encode.cuda.memory")
    numbers = np.arange(n_rows)
    real = target == "real"
    y = (numbers % 7 - 1.25 if real else numbers // 2 % 2).astype(target_dtype or ("float64" if real else "int32"))
    weights = {} if weight is None else {"sample_weight": memory.to_device((numbers % 5 + 0.5).astype(weight))}
    return memory.to_device(y), weights


def matrix_of(n_rows, column, width, order, timed):
    """Return a matrix of numbers on the device; its last column holds the times, or the values that folds depend on."""
    memory = import_module("gpu_encode.cuda.memory")
    columns = [np.arange(n_rows) % 16] * width + [np.arange(n_rows) % 4] * timed
    matrix = np.column_stack(columns).astype("int32" if column == "text" else column)
    return memory.to_device(matrix) if order == "C" else memory.to_device(matrix.T).T


def peaks(
    count,
    monkeypatch,
    n_rows,
    call="fit_transform",
    scheme=lambda n: Greedy(),
    target="class",
    target_dtype=None,
    weight=None,
    column="int32",
    missing=False,
    width=1,
    order="C",
    options=None,
):
    """Return the live bytes at each line, without the call's input and output."""
    cv = scheme(n_rows)
    timed = any(getattr(cv, name, None) is not None for name in ("time", "by"))
    X, frame = matrix_of(n_rows, column, width, order, timed), import_module("gpu_encode.tables.frames").Frame
    if column == "text" or missing:
        held = column_of(n_rows, column, missing)
        monkeypatch.setattr(frame, "_device_column", lambda self, position: held)
    if timed:
        # As with cuDF frames: columns that pass through are not touched.
        monkeypatch.setattr(frame, "assemble", lambda self, names, arrays, passed, kind: arrays)
        options = {"columns": [0]}
    y, rest = vectors_of(n_rows, target, target_dtype, weight)
    if isinstance(cv, GroupKFold):
        rest["groups"] = import_module("gpu_encode.cuda.memory").to_device((np.arange(n_rows) % 12).astype(np.int32))
    encoder = TargetEncoder(cv=cv, smooth=10.0, dtype="float32", device="cuda", **options or {})
    if call == "transform":
        encoder.fit(X, y)
    gc.collect()
    before, count.peaks = count.bytes, {}
    result = encoder.transform(X) if call == "transform" else getattr(encoder, call)(X, y, **rest)
    arrays = [] if call == "fit" else result if isinstance(result, list) else [result]
    inevitable = before + sum(array.nbytes for array in arrays)
    return {line: peak - inevitable for line, peak in count.peaks.items()}


def bytes_a_row(count, monkeypatch, **asked):
    """Return the largest growth per row at any line, rounded up; no line that only one call reaches may be its peak."""
    # The first call of a kind may take other ways through the code, since it makes what later calls reuse.
    _, few, many = (peaks(count, monkeypatch, n_rows, **asked) for n_rows in (FEW, FEW, MANY))
    both = few.keys() & many.keys()
    for peak in (few, many):
        assert max(peak[line] for line in both) == max(peak.values())
    return math.ceil(max((many[line] - few[line]) / (MANY - FEW) for line in both))


def test_what_is_alive_is_counted(count):
    memory = import_module("gpu_encode.cuda.memory")
    array = memory.zeros((250, 4), np.float64)
    part = array[100:].reshape(-1)
    assert count.bytes == 8000
    copied = part.copy()
    assert count.bytes == 8000 + 4800
    del array, copied
    assert count.bytes == 8000
    del part
    assert count.bytes == 0


@pytest.mark.parametrize(("scheme", "asked"), [key for key in DOCUMENT if key[0] in SCHEMES])
def test_scheme(count, monkeypatch, scheme, asked):
    assert bytes_a_row(count, monkeypatch, scheme=SCHEMES[scheme], **ASKED[asked]) == DOCUMENT[scheme, asked]


@pytest.mark.parametrize(("kind", "call"), [key for key in DOCUMENT if key[0] not in SCHEMES])
def test_kind_of_column_target_or_weight(count, monkeypatch, kind, call):
    asked = (COLUMNS | VECTORS)[kind]
    assert bytes_a_row(count, monkeypatch, call=call.strip("`"), **asked) == DOCUMENT[kind, call]


def test_the_document_names_every_kind():
    assert {name for name, _ in DOCUMENT} == {*SCHEMES, *COLUMNS, *VECTORS}


def encode_categories(count, n_categories, call, **options):
    """Encode 1,024 rows of `n_categories` categories in five folds; return the live bytes at each line, beyond rows."""
    memory, rows = import_module("gpu_encode.cuda.memory"), np.arange(1024)
    X, y = memory.to_device((rows % n_categories).astype(np.int32)[:, None]), memory.to_device(rows // 2 % 2)
    encoder = TargetEncoder(cv=KFold(5), smooth=10.0, dtype="float32", device="cuda", **options)
    if call == "transform":
        encoder.fit(X, y)
    gc.collect()
    before, count.peaks = count.bytes, {}
    result = encoder.transform(X) if call == "transform" else encoder.fit_transform(X, y)
    count.peaks["kept"] = count.bytes
    inevitable = before + result.nbytes
    return {line: peak - inevitable for line, peak in count.peaks.items()}, encoder


@pytest.fixture
def bytes_a_category(count, monkeypatch):
    """Return a function that measures the largest growth per category at the lines below a function of the package."""
    monkeypatch.setattr(import_module("gpu_encode.cuda"), "TILE", 320)

    def measure(function, call, **options):
        # Encoders are kept alive: the memory that they hold counts.
        (few, _first), (many, _second) = (encode_categories(count, n, call, **options) for n in (256, 512))
        lines = [line for line in few.keys() & many.keys() if function in names_of(line)]
        return max((many[line] - few[line]) / 256 for line in lines)

    return measure


def names_of(line):
    """Return the functions of the package that led to a line."""
    return [line] if isinstance(line, str) else [code.co_name for code, _ in line]


def test_a_table_in_one_pass_takes_what_it_gives(bytes_a_category):
    # Per fold: two counts, an encoding in the output type, and whether it is unseen.  Memory for doubtful estimates
    # grows in whole numbers.  Codes are looked up in an index.
    assert round(bytes_a_category("encode_categories", "fit_transform")) == 5 * (2 * 8 + 4 + 1) + 4


def test_moments_of_tiles_are_put_together_field_by_field(bytes_a_category):
    # With a scale, which no fused pass supports.  Per fold: count and two digits, the digits twice.
    assert bytes_a_category("concatenate", "fit_transform", scale="sqrt") == 84 + 5 * 8 * (1 + 2 + 2)


def test_a_model_keeps_what_rows_are_looked_up_in(bytes_a_category):
    # An encoding; consecutive whole numbers need no index.
    assert bytes_a_category("kept", "transform") == 4
    assert bytes_a_category("kept", "transform", indicators=True) == 4 + 1


# Memory for 1e8 rows of 1e6 categories, measured on fewer of both: codes, sums and slabs of partitioned rows are in
# proportion to the rows.  Types of the keys and of the target, number of its classes, scheme, and the
# largest number of bytes per row.
SCALE, ROWS_A_CATEGORY = 10_240, 100
MANY_CATEGORIES = {
    "5 folds, int64": ("int64", "int64", 2, lambda: KFold(5), 8),
    "5 folds, ten classes": ("int32", "int32", 10, lambda: KFold(5), 8),
    "5 folds, int32": ("int32", "int32", 2, lambda: KFold(5), 4),
    "leave-one-out, int32": ("int32", "int32", 2, LeaveOneOut, 4),
    "5 folds, float32": ("int32", "float32", None, lambda: KFold(5), 5),
    "5 folds, float64, empirical Bayes": ("int32", "float64", None, lambda: KFold(5), 8),
}


@pytest.fixture
def small_tables(monkeypatch):
    """Give blocks few cells, and slabs the same share of the rows; return the list of launched kernels."""
    sums, counting, partition = (import_module(f"gpu_encode.cuda.{name}") for name in ("sums", "counting", "partition"))
    monkeypatch.setattr(partition, "FEWEST_ROWS", 0)
    monkeypatch.setattr(partition.windows, "add", lambda engine, job: False)
    for name in ("SLAB", "SLAB_OF_PAIRS"):
        monkeypatch.setattr(partition, name, round(getattr(partition, name) * SCALE / 1e8))
    launched, run = [], counting.raw.run

    def launch(name, *given, **more):
        launched.append(name)
        run(name, *given, **more)

    most = max(max(each) for each in partition.windows.SLOT_BYTES.values())
    sums_bytes = partition.bytes_beside(sums.engine(), partition.MOST_BUCKETS) + 8 * most
    for module, table_bytes in ((counting, 128), (sums, sums_bytes)):
        engine = replace(module.engine(), run=launch, table_bytes=table_bytes)
        monkeypatch.setattr(module, "engine", lambda engine=engine: engine)
    return launched


@pytest.mark.parametrize("case", MANY_CATEGORIES)
def test_many_categories(count, small_tables, case):
    keys, dtype, n_classes, scheme, most = MANY_CATEGORIES[case]
    memory, rows = import_module("gpu_encode.cuda.memory"), np.arange(SCALE)
    X = memory.to_device((rows * 7 % (SCALE // ROWS_A_CATEGORY)).astype(keys)[:, None])
    y = rows // 3 % n_classes if n_classes else np.random.default_rng(0).standard_normal(SCALE)
    y, smooth = memory.to_device(y.astype(dtype)), "auto" if "Bayes" in case else 10.0
    encoder = TargetEncoder(cv=scheme(), smooth=smooth, dtype="float32", device="cuda")
    before, count.peaks = count.bytes, {}
    out = encoder.fit_transform(X, y)
    assert {"count_buckets", "add_buckets"}.intersection(small_tables)
    line, peak = max(count.peaks.items(), key=lambda each: each[1])
    assert (peak - before - out.nbytes) / SCALE <= most, [code.co_name for code, _ in line]
