"""ordered on the GPU: both ways, chunks and segments of all lengths, the carry, sums that wrap around 2**64."""

from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpu_fallback
from cpu_fallback.types import Carry, Layout, Rows, Window
from tests.backends import memory
from tests.cpu_fallback import definitions
from tests.cpu_fallback.definitions import N_CATEGORIES, column, many
from tests.strategies import examples

pytestmark = pytest.mark.cuda
WAYS = ["chunks", "sorting"]


@pytest.fixture(scope="module")
def chunks():
    return import_module("gpu_encode.cuda.chunks")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Send rows without ties through one method only, and a few rows at a time."""
    module = import_module("gpu_encode.cuda.ordered")
    if request.param == "sorting":
        monkeypatch.setattr(module, "fits", lambda shape: False)
    monkeypatch.setattr(module, "MOST_ROWS", 50)
    return request.param


def compare(ops, rows, ties, layout, shape, cuts=()):
    """Chain chunks on both backends, and compare the sums that rows see and the carry."""
    carries = [Carry.empty(shape[0] - 2, *shape[1:], ties is not None) for _ in range(2)]
    edges = [0, *cuts, len(rows)]
    for start, stop in pairwise(edges):
        part, tied = rows.block(start, stop), None if ties is None else ties[start:stop]
        visible = ops.ordered(part, tied, layout, carries[0])
        expected = cpu_fallback.ordered(part, tied, layout, carries[1])
        assert visible.dtype == np.int64
        assert np.array_equal(visible, expected)
        for name in ("sums", "at_tie", "last_tie") if ties is not None else ("sums",):
            assert np.array_equal(getattr(carries[0], name), getattr(carries[1], name))


@examples(40)
@given(data=st.data())
@pytest.mark.parametrize("most_rows", [3, 50])
@pytest.mark.parametrize("one_way", WAYS)
def test_any_rows_in_any_chunks(ops, one_way, most_rows, data):
    drawn = data.draw(definitions.drawn())
    size, shape = len(drawn.rows), (N_CATEGORIES + 2, drawn.n_classes, drawn.layout.width)
    ties = data.draw(st.none() | column(size, st.integers(0, 4), np.int64).map(np.sort))
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
    module = import_module("gpu_encode.cuda.ordered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ROWS", most_rows)
        if one_way == "sorting":
            patch.setattr(module, "fits", lambda shape: False)
        compare(ops, drawn.rows, ties, drawn.layout, shape, cuts)


@pytest.mark.parametrize("n_rows", [1, 3, 4, 5, 11, 12, 13, 23, 24, 25, 47, 48, 49, 50, 51, 99, 100, 101])
@pytest.mark.parametrize("n_classes", [1, 2])
def test_edges_of_turns_chunks_and_pieces(ops, way, n_rows, n_classes):
    random = np.random.default_rng(n_rows)
    classes = random.integers(0, n_classes, n_rows).astype(np.int32)
    rows = Rows(random.integers(-2, 2, n_rows).astype(np.int32), classes)
    compare(ops, rows, None, Layout(), (4, n_classes, 1))


@pytest.mark.parametrize("codes", [np.zeros(120), np.full(120, -1), np.arange(120), np.arange(120)[::-1] // 2])
@pytest.mark.parametrize("kind", ["classes", "whole"])
@pytest.mark.parametrize("tied", [False, True])
def test_one_category_and_one_for_each_row(ops, way, codes, kind, tied):
    drawn = many(120, 8, kind)
    ties = np.repeat([0, 3, 4], [1, 100, 19]) if tied else None
    rows = drawn.rows.with_codes(codes.astype(np.int32))
    compare(ops, rows, ties, drawn.layout, (int(codes.max()) + 3, drawn.n_classes, drawn.layout.width), [7, 60])


@pytest.mark.parametrize("lengths", [[1, 2, 3, 4, 5, 6, 7, 8, 9], [33, 1, 32, 31, 2, 1, 1, 17], [64], [63, 1], [1, 65]])
@pytest.mark.parametrize("tied", [False, True])
def test_segments_of_every_length(ops, way, lengths, tied):
    codes = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    codes = np.random.default_rng(5).permutation(codes) if not tied else codes
    ties = np.repeat(np.arange(len(lengths)), lengths[::-1]) if tied else None
    rows = Rows(codes, np.arange(len(codes), dtype=np.int32) % 2)
    compare(ops, rows, ties, Layout(), (len(lengths) + 2, 2, 1))


def test_sums_of_all_columns_may_wrap_around(ops, way):
    large = np.full(30, 2**62 + 12345)
    rows = Rows(np.tile(np.arange(30, dtype=np.int32), 2), None, np.concatenate([large, -large]))
    compare(ops, rows, None, Layout(Window(), Window()), (32, 1, 2), [31])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("more", ["nothing", "weight", "target"])
def test_several_classes(ops, way, more, labelled, tied):
    random = np.random.default_rng(2)
    codes, classes, numbers = (random.integers(low, 3, 70) for low in (-2, 0, -9))
    rows = Rows(codes.astype(np.int32), classes.astype(np.int32) if labelled else None)
    layout = Layout()
    if more == "weight":
        rows = replace(rows, weight=numbers)
    if more == "target":
        rows, layout = replace(rows, target=numbers), Layout(Window(), Window())
    compare(ops, rows, np.arange(70) // 5 if tied else None, layout, (5, 3, layout.width), [13])


@pytest.mark.parametrize("tied", [False, True])
def test_a_carry_in_pieces_is_brought_up_to_date_where_it_lies(ops, way, runtime, tied):
    drawn = many(60, 9, "classes")
    ties = np.arange(60) // 4 if tied else None
    expected = Carry.empty(N_CATEGORIES, 3, 1, tied)
    cpu_fallback.ordered(drawn.rows, ties, drawn.layout, expected)
    pages = [memory.zeros((*part.shape, 2), np.int64) for part in (expected.sums, expected.at_tie, expected.last_tie)]
    pages[2][...] = -1
    carry = Carry(*(part[..., 0] for part in pages))
    rows = Rows(memory.to_device(drawn.rows.codes), memory.to_device(drawn.rows.classes))
    module = import_module("gpu_encode.cuda.ordered")
    module.ordered(rows, None if ties is None else memory.to_device(ties), drawn.layout, carry)
    for part, name in zip(pages, ("sums", "at_tie", "last_tie"), strict=True):
        assert np.array_equal(memory.to_host(part[..., 0]), getattr(expected, name))
        assert (memory.to_host(part[..., 1]) == (-1 if name == "last_tie" else 0)).all()


def test_chunks_hold_all_rows_in_whole_turns(chunks):
    most, lanes = chunks.MOST_BLOCKS, chunks.LANES
    for n_rows in [1, lanes, lanes + 1, most * lanes, most * lanes + 1, 10**6, 2**23]:
        for n_cells in [1, 6, 1000]:
            size = chunks.chunk_size(n_rows, n_cells)
            n_chunks = -(-n_rows // size)
            assert size % lanes == 0
            assert n_chunks <= most
            assert n_chunks * n_cells <= max(n_rows, n_cells)


def test_sums_stay_in_shared_memory(chunks, runtime):
    width = 2
    most = (runtime.SHARED_BYTES // 8 - chunks.LANES * (1 + width)) // width
    assert chunks.fits((most, 1, width))
    assert not chunks.fits((most + 1, 1, width))
