"""Memory of large arrays is reused only when nobody refers to it, and no more than the limit is kept."""

import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback import memory, memory_pool
from cpu_fallback.memory_pool import HUGE, MOST_BLOCKS, MemoryPool, round_up
from gpu_encode import Greedy, LeaveOneOut, Ordered, TargetEncoder

SMALL, LARGE = memory.SMALLEST, 3 * HUGE
DTYPES = ["bool", "int8", "int32", "uint64", "float32", "float64", "<M8[ns]", "U4"]


@pytest.fixture
def pool(monkeypatch):
    own = MemoryPool(8 * LARGE)
    monkeypatch.setattr(memory, "pool", own)
    return own


def kept(pool):
    return sum(map(len, pool.free.values()))


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "shape", [0, 7, SMALL, np.int64(SMALL), (np.int64(LARGE // 24), 3), (2, 3, SMALL // 4), (0, 5), (SMALL, 1)]
)
def test_arrays_are_those_of_numpy(pool, shape, dtype, order):
    result, expected = memory.empty(shape, dtype, order), np.empty(shape, dtype, order)
    for name in ("shape", "dtype", "strides", "nbytes"):
        assert getattr(result, name) == getattr(expected, name)
    for name in ("WRITEABLE", "ALIGNED", "C_CONTIGUOUS", "F_CONTIGUOUS"):
        assert result.flags[name] == expected.flags[name]
    zero = memory.zeros(shape, dtype)
    assert np.array_equal(zero, np.zeros(shape, dtype))
    assert zero.dtype == np.dtype(dtype)


def test_objects_are_never_made_of_old_memory(pool):
    memory.empty(LARGE, np.uint8)[:] = 255
    assert memory.empty(LARGE // 8, object)[-1] is None


def test_memory_is_taken_again_when_nobody_shows_it(pool):
    first = memory.empty(LARGE, np.uint8)
    where, tail = address(first), first[5:].view(np.int8)[::2]
    del first
    other = memory.empty(LARGE, np.uint8)
    assert address(other) != where
    del tail
    # A few bytes less are of the same size of block, and of another type.
    assert address(memory.empty(LARGE // 8 - 1, np.float64)) == where


def test_a_block_is_not_given_to_an_array_of_less_than_half(pool):
    arrays = [memory.empty(times * LARGE, np.uint8) for times in (1, 2, 3)]
    where = [address(array) for array in arrays]
    arrays.clear()
    # The smallest block that fits is taken; a block that is far too large stays for other arrays.
    result = [memory.empty(LARGE, np.uint8) for _ in range(3)]
    assert [address(array) for array in result[:2]] == where[:2]
    assert address(result[2]) != where[2]
    assert [len(block) for block in pool.free.values()] == [round_up(3 * LARGE)]


def test_the_columns_of_a_matrix_know_it(pool):
    matrix = memory.empty((LARGE // 16, 2), np.float64, "F")
    assert matrix[:, 0].base is matrix


def test_large_arrays_begin_at_a_huge_page(pool):
    assert address(memory.empty(LARGE, np.uint8)) % HUGE == 0


@given(st.integers(1, 1 << 40))
def test_a_block_is_hardly_larger_than_what_it_holds(n_bytes):
    size = round_up(n_bytes)
    assert n_bytes <= size
    assert size < n_bytes + max(n_bytes / 4, HUGE if n_bytes >= HUGE else 1)
    assert round_up(size) == size


@given(
    st.lists(st.tuples(st.sampled_from([SMALL, SMALL + 9, LARGE, 2 * LARGE]), st.integers(0, 3)), max_size=30),
    st.sampled_from([0, LARGE, 4 * LARGE]),
)
def test_living_arrays_never_share_memory_and_little_is_kept(steps, most):
    own, alive = MemoryPool(most), {}
    before, memory.pool = memory.pool, own
    try:
        for number, (size, slot) in enumerate(steps):
            alive.pop(slot, None)
            alive[slot] = (number % 251, memory.empty(size, np.uint8))
            alive[slot][1][:] = number % 251
            assert kept(own) <= most
        for number, array in alive.values():
            assert (array == number).all()
        alive.clear()
        assert kept(own) <= most
    finally:
        memory.pool = before


def test_what_has_been_free_for_longest_goes_first(pool):
    arrays = [memory.empty(LARGE + number * HUGE, np.uint8) for number in range(4)]
    pool.most = sum(round_up(array.nbytes) for array in arrays[2:])
    while arrays:
        del arrays[0]
    assert [len(block) for block in pool.free.values()] == [LARGE + 2 * HUGE, LARGE + 3 * HUGE]


def test_what_is_larger_than_all_that_is_kept_lets_nothing_else_go(pool):
    small, large = memory.empty(LARGE, np.uint8), memory.empty(9 * LARGE, np.uint8)
    del small, large
    assert [len(block) for block in pool.free.values()] == [LARGE]


def test_few_blocks_are_kept(pool):
    arrays = [memory.empty(SMALL, np.uint8) for _ in range(MOST_BLOCKS + 3)]
    newest = {address(array) for array in arrays[3:]}
    while arrays:
        del arrays[0]
    assert set(pool.free) == newest


def test_free_memory_goes_before_there_is_none_left(pool, monkeypatch):
    del_me = memory.empty(LARGE, np.uint8)
    del del_me

    def fresh(size):
        if pool.free:
            raise MemoryError
        return np.empty(size, np.uint8)

    monkeypatch.setattr(memory_pool, "fresh", fresh)
    assert memory.empty(4 * LARGE, np.uint8).nbytes == 4 * LARGE


def test_memory_may_come_back_at_any_line(pool, monkeypatch):
    cycle, known = [memory.empty(LARGE, np.uint8)], memory_pool.round_up
    cycle.append(cycle)
    where = address(cycle[0])
    del cycle

    def rounded(n_bytes):
        # The collector may run at any line.
        gc.collect()
        return known(n_bytes)

    monkeypatch.setattr(memory_pool, "round_up", rounded)
    assert address(memory.empty(LARGE, np.uint8)) == where


def run_python(script, **settings):
    """Run a script in a separate process."""
    call, environment = [sys.executable, "-c", script], os.environ | settings
    return subprocess.run(call, env=environment, capture_output=True, timeout=60, check=False)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_an_interrupt_at_any_line_leaves_a_pool_that_works():
    # In a separate process: for every interrupt in a `__del__`, Python reports that it was ignored.
    script = """
import signal, numpy as np
from cpu_fallback import memory
def interrupt(*_):
    raise KeyboardInterrupt
alive, interrupts = memory.zeros(1 << 18, np.uint8), 0
signal.signal(signal.SIGALRM, interrupt)
for turn in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0001 + turn % 100 * 1e-6)
        for _ in range(400):
            memory.empty(1 << 18, np.uint8)[:1000] = 1
    except KeyboardInterrupt:
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert interrupts > 100 and not alive.any()
assert (memory.zeros(1 << 18, np.uint8) == 0).all()
"""
    assert run_python(script).returncode == 0


def test_threads_take_and_give_back_at_once(pool):
    def work(number):
        for turn in range(200):
            array = memory.empty(SMALL + (turn % 3) * 4096, np.uint8)
            array[:] = number
            if (array != number).any():
                return False
        return True

    with ThreadPoolExecutor(4) as executor:
        assert all(executor.map(work, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_takes_what_nobody_shows():
    script = """
import os, numpy as np
from cpu_fallback import memory
alive, free = memory.zeros(1 << 22, np.uint8), memory.zeros(1 << 22, np.uint8)
del free
if os.fork() == 0:
    again = [memory.empty(1 << 22, np.uint8) for _ in range(2)]
    again[0][:], again[1][:] = 7, 9
    os._exit(int(alive.any() or (again[0] != 7).any()))
assert os.wait()[1] == 0
assert not memory.zeros(1 << 22, np.uint8).any() and not alive.any()
"""
    assert run_python(script).returncode == 0


@pytest.mark.parametrize(("given", "most"), [("", 512 << 20), ("0", 0), ("64", 64 << 20)])
def test_the_environment_says_how_much_is_kept(given, most):
    result = run_python("from cpu_fallback.memory_pool import pool; print(pool.most)", GPU_ENCODE_KEPT_MEMORY=given)
    assert int(result.stdout) == most


def test_a_senseless_environment_is_an_error():
    result = run_python("import cpu_fallback", GPU_ENCODE_KEPT_MEMORY="all")
    assert b"GPU_ENCODE_KEPT_MEMORY must be a number of MiB, 0 or more. Got 'all'." in result.stderr


TEXTS = np.array(["a", "bb", "c" * 15, "d" * 16, "e" * 17, "f" * 40, ""], object)
SCHEMES = {"mean": Greedy(), "folds": 5, "ordered": Ordered(random_state=0), "leave-one-out": LeaveOneOut()}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("target", ["binary", "continuous", "multiclass"])
@pytest.mark.filterwarnings("ignore:Greedy training encodings:UserWarning")
def test_what_lay_in_memory_before_changes_no_bit(pool, monkeypatch, scheme, target):
    generator = np.random.default_rng(0)
    n_rows = 70_000
    columns = {
        "dense": generator.integers(-3, 20_000, n_rows),
        "sparse": generator.integers(0, 900, n_rows) ** 6,
        "real": generator.integers(-5, 5, n_rows) / 3,
        "text": np.char.add(
            TEXTS[generator.integers(0, 7, n_rows)].astype(str), generator.integers(0, 99, n_rows).astype(str)
        ),
    }
    X, take = pa.table(columns), MemoryPool.take
    y = generator.random(n_rows) if target == "continuous" else generator.integers(0, 2 + (target != "binary"), n_rows)
    result = []
    for byte in (None, 0, 255):

        def dirty(self, n_bytes, byte=byte):
            block = take(self, n_bytes)
            block[:] = byte
            return block

        monkeypatch.setattr(memory, "SMALLEST", 1 << 60 if byte is None else 1)
        monkeypatch.setattr(MemoryPool, "take", take if byte is None else dirty)
        encoder = TargetEncoder(
            columns=[*columns, ("dense", "text")], cv=SCHEMES[scheme], target_type=target, device="cpu"
        )
        tables = [encoder.fit_transform(X, y), encoder.transform(X.slice(7))]
        result.append([column.to_numpy().tobytes() for table in tables for column in table.columns])
        result[-1] += [codes.tobytes() for codes in encoder.encodings_]
    assert result[0] == result[1] == result[2]
