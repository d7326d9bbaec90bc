"""Limits of the launches and waits of a call, and of the bytes that it moves; device_calls.py counts them."""

import os
from functools import partial
from importlib import import_module
from itertools import pairwise
from operator import methodcaller

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpu_encode import KFold, LeaveOneOut, TargetEncoder, parts
from tests.cuda.call_recorder import KERNEL, RAW, SYNC, TO_DEVICE, Event, recording
from tests.cuda.device_calls import CASES, CATEGORIES, compare, count, list_calls, record

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        os.environ.get("GPU_ENCODE_SIMULATED_ARRAYS") != "tests.cuda.stand_in",
        reason="only calls on the stand-in's arrays are counted",
    ),
]

# At most, and what is counted today: device calls outside of tiles and a tile, waits of the host outside of tiles and a
# tile, bytes a row.  Goals, calls and bytes a row, all reached: folds 12 and 36; leave-one-out 12 and 24; ordered
# counts 20 and 60, with blocks 40; transform 3 and 12.
BOUNDS = {
    "folds-int": (12, 0, 6, 0, 24),
    "folds-int-auto": (11, 0, 6, 0, 24),
    "folds-f32": (14, 0, 8, 0, 28),
    "folds-f32-auto": (13, 0, 8, 0, 28),
    "loo-int": (11, 0, 6, 0, 24),
    "loo-int-auto": (10, 0, 6, 0, 24),
    "loo-f32": (17, 0, 7, 0, 32.5),
    "loo-f32-auto": (17, 0, 7, 0, 32.5),
    "ordered-int": (19, 0, 8, 0, 41),
    "ordered-int-auto": (19, 0, 8, 0, 41),
    "ordered-f32": (22, 0, 10, 0, 72),
    "ordered-f32-auto": (22, 0, 10, 0, 72),
    "ordered-rows-int": (18, 0, 7, 0, 37),
    "ordered-rows-f32": (21, 0, 9, 0, 70),
    "ordered-blocks-int": (20, 0, 8, 0, 32),
    "ordered-blocks-f32": (23, 0, 10, 0, 64),
    "first-transform": (11, 0, 4, 0, 8),
    "transform": (1, 0, 1, 0, 8),
    "folds-int-int64-keys": (12, 0, 6, 0, 36),
    "loo-int-int64-keys": (11, 0, 6, 0, 32),
    "ordered-int-int64-keys": (19, 0, 8, 0, 49),
    "transform-int64-keys": (1, 0, 1, 0, 12),
    # Whatever the number of columns and of keys.
    "wide-2": (16, 0, 5, 0, 92),
    "wide-3": (16, 0, 5, 0, 108),
    "wide-4": (16, 0, 5, 0, 112),
    "wide-of-2": (16, 0, 5, 0, 46),
    "wide-of-9": (16, 0, 5, 0, 133),
    "wide-2-fit": (11, 0, 3, 0, 43),
    "wide-4-fit": (11, 0, 3, 0, 43),
    "wide-of-9-fit": (11, 0, 3, 0, 83),
    "wide-2-first-transform": (9, 0, 2, 0, 68),
    "wide-4-first-transform": (9, 0, 2, 0, 88),
    "wide-of-9-first-transform": (9, 0, 2, 0, 99),
    "wide-2-transform": (6, 0, 1, 0, 68),
    "wide-4-transform": (6, 0, 1, 0, 88),
    "wide-of-9-transform": (6, 0, 1, 0, 99),
}


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.parametrize("name", CASES)
def test_a_call_does_no_more_than_it_did(name):
    counts = count(CASES[name])
    found = (*counts.calls, *counts.waits, counts.bytes_a_row)
    # There is a kernel, and keys are read and encodings written, in 32 bits.
    assert counts.number(KERNEL, RAW, tiles=1) >= 1
    assert counts.bytes_a_row >= 8
    within = [number <= bound for number, bound in zip(found, BOUNDS[name], strict=True)]
    assert all(within), "\n".join(list_calls(name, counts, tiles=12))


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.parametrize("tiles", [1, 30])
def test_ordered_counts_in_the_order_of_rows_take_few_launches(tiles):
    case = CASES["ordered-rows-int"]
    files = [f"gpu_encode/cuda/{name}.py" for name in ("encodings", "order_segments", "ordered_counts")]
    events = record(case, tiles, case.tiles[0])
    # Functions of CuPy among them.
    launches = [event for event in events if event.kind != SYNC and any(file in event.where for file in files)]
    assert sum(event.kind == RAW for event in launches) == 4
    assert len(launches) <= 8, launches


def encode_partitions(n_rows, cv):
    """Encode three partitions on the device; give the encodings, and the bytes that came to the host."""
    memory, numbers = import_module("gpu_encode.cuda.memory"), np.arange(n_rows)
    X, y = (numbers // 2 % CATEGORIES)[:, np.newaxis].astype(np.int32), (numbers % 5 % 2).astype(np.int32)
    encoder = TargetEncoder(cv=cv, smooth=10.0, dtype="float32", device="cuda")
    starts = [0, n_rows // 3, n_rows // 2, n_rows]
    own = [
        parts.Part(memory.to_device(X[start:stop]), memory.to_device(y[start:stop]), first_row=start)
        for start, stop in pairwise(starts)
    ]
    with recording() as events:
        plan = parts.plan(encoder, sum((parts.profile(encoder, part) for part in own), parts.Profile()))
        sums = sum((parts.measure(plan, part) for part in own), parts.PartialSums())
        tables = parts.fit(encoder, plan, sums)
        encodings = [parts.encode(tables, part) for part in own]
    to_host = [length * size for event in events if event.kind == SYNC for length, size in event.arrays]
    alone = TargetEncoder(cv=cv, smooth=10.0, dtype="float32", device="cpu").fit_transform(X, y)
    assert np.concatenate([of_part.get() for of_part in encodings]).tobytes() == alone.tobytes()
    return sum(to_host)


@pytest.mark.parametrize("cv", [KFold(5), LeaveOneOut()], ids=str)
def test_a_partition_on_a_gpu_sends_no_rows_to_the_host(cv):
    """Each partition may lie on a GPU of its own: only sums and facts leave it, less than a bit for each row."""
    few, many = encode_partitions(600, cv), encode_partitions(6000, cv)
    assert 0 < few < many < 2048
    assert many - few < (6000 - 600) // 8


def test_every_case_has_bounds():
    assert list(BOUNDS) == list(CASES)


@pytest.fixture
def runtime():
    return import_module("gpu_encode.cuda.runtime")


@pytest.fixture
def memory():
    return import_module("gpu_encode.cuda.memory")


@pytest.fixture
def combine_rows():
    """Kernel that reads two arrays of int32 and writes one of int64."""
    return import_module("gpu_encode.cuda.categories").combine_rows


def test_calls_are_noted_with_what_they_touch(runtime, memory, combine_rows):
    host = np.arange(100, dtype=np.int32)
    with recording() as events:
        there = memory.to_device(host)
        keys = there + np.int64(1)
        runtime.launch_rows(combine_rows, 100, there, there[::-1].copy(), 1000, keys)
    assert events[0].where.startswith("gpu_encode/cuda/memory.py:")
    assert events == [
        Event(TO_DEVICE, "ascontiguousarray", events[0].where, ((100, 4),)),
        Event("ufunc", "add", "test", ((100, 4), (100, 8))),
        Event("method", "copy", "test", ((100, 4), (100, 4))),
        Event(KERNEL, "combine_rows", "test", ((100, 4), (100, 4), (100, 8)), (100, 1000)),
    ]
    assert keys.get().tolist() == [1000 * number + 99 - number for number in range(100)]


def test_nothing_is_counted_outside_of_the_block_and_for_views(runtime, memory):
    there = memory.to_device(np.arange(100, dtype=np.int32))
    launch = runtime.launch
    with recording() as events:
        room = memory.empty(50, np.int32)
        part = there[10:60].reshape(5, 10).T.ravel("K").view(np.uint32)
        memory.to_device(part)
        runtime.xp.asarray(there)
        there.astype(np.int32, copy=False)
        np.broadcast_to(room, (3, 50))
    part + part
    assert events == []
    assert runtime.launch is launch


def test_every_kind_of_call_is_counted(runtime, memory):
    there, table = memory.to_device(np.arange(100)), memory.to_device(np.zeros(7))
    places, xp = there[:10], runtime.xp
    done = {
        "get_item": lambda: table[places[:7]],
        "take": lambda: table.take(places[:7]),
        "set_item": lambda: there.__setitem__(slice(0, 20), 5),
        "copied": lambda: there.__setitem__(slice(0, 10), there[10:20]),
        "put": lambda: there.put(xp.flatnonzero(table == 0)[:7], there[:7]),
        "in_place": lambda: there.__setitem__(slice(0, 20), np.add(there[:20], 1, out=there[:20])),
        "zeros": lambda: np.zeros_like(there),
        "made": lambda: xp.arange(9),
        "sorted": lambda: np.searchsorted(table, table),
        "minimum": lambda: there.min(),  # noqa: PLW0108 - the method is looked up while calls are noted
        "kept": lambda: there[there > 3],
    }
    found = {}
    for name, do in done.items():
        with recording() as events:
            do()
        found[name] = [(event.kind, event.name, sum(n * size for n, size in event.arrays)) for event in events]
    compared, chosen = ("ufunc", "equal", 7 * 9), [(SYNC, "flatnonzero", 0), ("lib", "flatnonzero", 7 * 9)]
    # What an earlier line has written is found by a later one.
    n_kept = int((there.held > 3).sum())
    assert found == {
        "get_item": [("copy", "getitem", 3 * 56)],
        "take": [("method", "take", 3 * 56)],
        "set_item": [("copy", "setitem", 160)],
        "copied": [("copy", "setitem", 160)],
        "put": [compared, *chosen, ("method", "put", 3 * 56)],
        "in_place": [("ufunc", "add", 2 * 160)],
        "zeros": [("func", "zeros_like", 800)],
        "made": [("lib", "arange", 72)],
        "sorted": [("func", "searchsorted", 56 + 56)],
        "minimum": [("method", "min", 808)],
        "kept": [("ufunc", "greater", 900), (SYNC, "getitem", 0), ("copy", "getitem", 100 + 2 * 8 * n_kept)],
    }


@pytest.mark.parametrize("wait", [int, float, bool, *map(methodcaller, ("get", "item", "tolist"))])
def test_waits_are_counted(memory, wait):
    one = memory.to_device(np.array([3]))[0]
    with recording() as events:
        assert wait(one) in (3, True)
    assert [event.kind for event in events] == [SYNC]


def test_launches_of_kernels_in_cuda_are_counted(monkeypatch, memory):
    raw, launched = import_module("gpu_encode.cuda.raw"), []
    monkeypatch.setattr(raw, "run", lambda *given, **options: launched.append((given, options)))
    there = memory.to_device(np.arange(100, dtype=np.int32))
    with recording() as events:
        raw.run("count_rows", 2, 32, there, there, 5, shared=64)
    # Of one array that is given twice the rows are read once.
    assert events == [Event(RAW, "count_rows", "test", ((100, 4),), (5,))]
    assert launched == [(("count_rows", 2, 32, there, there, 5), {"shared": 64})]


def run_by_tiles(runtime, memory, combine_rows, tiles, tile):
    """Work on all rows, then on tiles of them, in ways that the backend has."""
    there = memory.to_device(np.arange(tiles * tile, dtype=np.int32))
    table, keys = memory.zeros(5, np.int64), memory.empty(tiles * tile, np.int64)
    with recording() as events:
        there.min()
        table * table
        for start in range(0, tiles * tile, tile):
            rows = runtime.xp.arange(start, start + tile)
            there[rows] + 1
            table.sum()
            # All rows are handed over, and those of the tile are touched.
            runtime.launch_rows(combine_rows, tile, there, there, start, keys)
            int(table[0])
    return events


@pytest.mark.parametrize("tiles", [(16, 24), (24, 40)])
def test_calls_are_told_by_tile_and_bytes_by_row(runtime, memory, combine_rows, tiles):
    counts = compare(partial(run_by_tiles, runtime, memory, combine_rows), tiles)
    assert counts.calls == (2, 5)
    assert counts.waits == (0, 1)
    by_line = {line.key[1]: line.bytes_a_row for line in counts.lines}
    # All rows; of a tile their numbers; these and what is gathered, read and written; and again; what goes in and out.
    expected = {"min": 4, "multiply": 0, "arange": 8, "getitem": 8 + 2 * 4, "add": 4 + 4, "combine_rows": 4 + 8}
    expected |= {"sum": 0, "__int__": 0}
    assert by_line == expected
    assert counts.bytes_a_row == sum(expected.values())
