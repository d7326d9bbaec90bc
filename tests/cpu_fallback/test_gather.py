"""gather, compared with indexing row by row, into outputs of any layout."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback import compiled
from cpu_fallback.row_numbers import FoldPattern, fold_numbers
from tests.cpu_fallback.definitions import N_CATEGORIES, NUMBERS, column, line, read_only
from tests.strategies import examples

PAGE = 5
gather = import_module("cpu_fallback.compiled.gather")

OUTPUTS = {
    "C": lambda rows, outputs, dtype: np.zeros((rows, outputs), dtype),
    "Fortran": lambda rows, outputs, dtype: np.zeros((rows, outputs), dtype, order="F"),
    "columns of a page": lambda rows, outputs, dtype: np.zeros((rows, PAGE), dtype)[:, 1 : 1 + outputs],
    "every other column": lambda rows, outputs, dtype: np.zeros((rows, 2 * PAGE), dtype)[:, : 2 * outputs : 2],
    "backwards": lambda rows, outputs, dtype: np.zeros((rows, outputs), dtype)[::-1, ::-1],
    "unaligned": lambda rows, outputs, dtype: np.zeros(rows, [("_", "i1"), ("encodings", dtype, (outputs,))])[
        "encodings"
    ],
    "foreign byte order": lambda rows, outputs, dtype: np.zeros((rows, outputs), np.dtype(dtype).newbyteorder()),
}


def table_of(outputs, n_folds):
    random = np.random.default_rng(outputs)
    table = random.standard_normal((N_CATEGORIES + 2, n_folds, outputs))
    table[0, 0, 0] = np.nan
    return table


def check(ops, table, codes, folds, out, fold_of_row):
    ops.gather(read_only(table), read_only(codes), folds, out)
    for row, code in enumerate(codes.tolist()):
        expected = table[line(code), fold_of_row[row]].astype(out.dtype)
        assert out[row].tobytes() == expected.tobytes()


@examples(40)
@given(data=st.data())
@pytest.mark.parametrize("layout", OUTPUTS)
def test_gather_writes_the_encoding_of_every_row(ops, layout, data):
    size, outputs = data.draw(st.integers(0, 26)), data.draw(st.integers(1, 3))
    codes = data.draw(column(size, st.integers(-2, N_CATEGORIES - 1), np.int32))
    folds = data.draw(st.none() | column(size, st.integers(0, 2), np.int32))
    out = OUTPUTS[layout](size, outputs, data.draw(st.sampled_from([np.float64, np.float32])))
    n_folds = 1 if folds is None else 3
    check(ops, table_of(outputs, n_folds), codes, folds, out, np.zeros(size, int) if folds is None else folds)


@pytest.mark.parametrize("order", ["random", "interleaved", "contiguous"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_gather_computes_folds_over_several_blocks(ops, order, outputs):
    pattern = FoldPattern(order, 3, seed=1, n_rows=5000, first_row=2000)
    codes = np.random.default_rng(0).integers(-2, N_CATEGORIES, 2500).astype(np.int32)
    check(ops, table_of(outputs, 3), codes, pattern, np.zeros((2500, outputs)), fold_numbers(pattern, 0, 2500))


def test_gather_leaves_the_neighbours_of_its_output_alone(ops):
    page = np.full((9, PAGE), 7.0)
    ops.gather(np.ones((3, 1, 2)), np.zeros(9, np.int32), None, page[:, 1:3])
    assert page.tolist() == [[7, 1, 1, 7, 7]] * 9


def test_a_float32_table_is_written_as_it_is(ops):
    table = np.array([0.1, 0.2, 0.3], np.float32).reshape(3, 1, 1)
    for dtype in (np.float32, np.float64):
        out = np.zeros((3, 1), dtype)
        ops.gather(table, np.array([0, -1, -2], np.int32), None, out)
        assert out[:, 0].tolist() == [table[0, 0, 0], table[2, 0, 0], table[1, 0, 0]]


KNOWN = NUMBERS | {"none": np.zeros(0, np.int64)}


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize(("n_rows", "outputs"), [(0, 1), (3, 1), (40, 2), (1500, 1)])
def test_numbers_get_the_encodings_of_their_places(ops, known, n_rows, outputs):
    categories, random = KNOWN[known], np.random.default_rng(n_rows)
    one = np.ones(1, categories.dtype)
    near = np.concatenate([categories, categories[:1] - one, one, categories[-1:] + one])
    # As far away as a distance that has lost bits would not tell.
    far = (
        [near ^ np.array(1 << bit).astype(near.dtype) for bit in (32, 62)]
        if near.dtype in (np.int64, np.uint64)
        else []
    )
    values = random.choice(np.concatenate([near, *far]), n_rows)
    table, dtype = random.standard_normal((len(categories) + 2, 1, outputs)), random.choice([np.float32, np.float64])
    place = {value: number for number, value in enumerate(categories.tolist())}
    for layout in OUTPUTS if n_rows < 100 else ["Fortran"]:
        out, wanted = (OUTPUTS[layout](n_rows, outputs, dtype) for _ in range(2))
        ops.gather_numbers(read_only(table), read_only(values), read_only(categories), out)
        wanted[...] = [table[place.get(value, -2), 0] for value in values.tolist()] or np.zeros((0, outputs))
        assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("categories", "n_rows", "codes"),
    [([4, 9], 10, False), ([4, 2000], 10, True), ([4, 2000], 10000, False), ([4, 20000], 6000, True), ([4.0], 9, True)],
)
def test_numbers_are_found_without_codes_where_their_range_is_small(categories, n_rows, codes, monkeypatch):
    looked_up = []
    monkeypatch.setattr(gather, "lookup", lambda *given: looked_up.append(given) or compiled.lookup(*given))
    known = np.array(categories)
    gather.gather_numbers(np.ones((len(known) + 2, 1, 1)), np.repeat(known[:1], n_rows), known, np.zeros((n_rows, 1)))
    assert bool(looked_up) == codes
