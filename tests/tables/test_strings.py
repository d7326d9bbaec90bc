"""Text and bytes in all containers: the compiled backend numbers and looks them up with the same bits as Arrow."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cpu_fallback
import cpu_fallback.compiled
import gpu_encode.seam.ops
from gpu_encode.seam.ops import use_backend
from gpu_encode.tables.categories import strings, vocabulary
from gpu_encode.tables.categories import values as values_module
from gpu_encode.tables.categories.values import from_arrow
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import factorizing, read, read_pieces
from tests.backends import backend

LONG = ["x" * 16, "x" * 17, "x" * 40, "x" * 40 + "y"]
WORDS = ["", "a", "a\0", "b", "ß", "日本", "cat_0000001", "cat_0000002", *LONG, None]


def drawn(seed, n_rows=400):
    picks = np.random.default_rng(seed).integers(0, len(WORDS), n_rows)
    return [WORDS[pick] for pick in picks]


def chunked(values, type_):
    edges = [0, 0, 7, 7, 150, len(values)]
    parts = [pa.array(values[start:stop], type_) for start, stop in pairwise(edges)]
    return pa.chunked_array(parts, type_)


def fixed_width(values):
    return np.ma.MaskedArray(np.array([value or "" for value in values], "U41"), [value is None for value in values])


def categories(values):
    return pd.Series(pd.Categorical(values, categories=[word for word in reversed(WORDS) if word is not None]))


def ordered_categories(values):
    known = sorted(word for word in WORDS if word is not None)
    return pd.Series(pd.Categorical(values, categories=known))


BUILDERS = {
    "string": lambda values: pa.array(values, pa.string()),
    "large_string": lambda values: pa.array(values, pa.large_string()),
    "string_view": lambda values: pa.array(values, pa.string()).cast(pa.string_view()),
    "sliced": lambda values: pa.array(["zz", None, "y", *values, None], pa.string())[3:-1],
    "chunked": lambda values: chunked(values, pa.string()),
    "chunked large": lambda values: chunked(values, pa.large_string()),
    "no chunk": lambda values: pa.chunked_array([pa.array(values, pa.string())][: len(values)], pa.string()),
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas string": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas category": categories,
    "pandas category, sorted": ordered_categories,
    "pandas category, all used": lambda values: ordered_categories(values).cat.remove_unused_categories(),
    "polars": lambda values: pl.Series(values, dtype=pl.String),
    "polars category": lambda values: pl.Series(values, dtype=pl.String).cast(pl.Categorical),
    "numpy object": lambda values: np.array([*values, None], object)[:-1],
    "numpy U": fixed_width,
    "numpy U, swapped": lambda values: fixed_width(values).astype(">U41"),
    "numpy U, strided": lambda values: fixed_width([*values, *values])[::2],
}
BYTES = {
    "binary": lambda values: pa.array(values, pa.binary()),
    "large_binary": lambda values: pa.array(values, pa.large_binary()),
    "binary_view": lambda values: pa.array(values, pa.binary()).cast(pa.binary_view()),
    "chunked": lambda values: chunked(values, pa.binary()),
    "polars": lambda values: pl.Series(values, dtype=pl.Binary),
}

pytestmark = pytest.mark.parametrize("ops", ["compiled"], indirect=True)


@pytest.fixture(params=[1, 2, 3])
def compiled(request, ops):
    """The compiled backend on one, two or three threads, for any number of rows."""
    with backend(f"compiled-{request.param}"):
        yield ops


def frame_of(values):
    """Read one column of a frame of any library."""
    if isinstance(values, np.ndarray):
        return read(values.reshape(-1, 1))
    of_library = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}
    return read(of_library.get(type(values), pa.table)({"c": values}))


def keys(frame):
    return frame.keys(0, cpu_fallback)


def lookup(frame, vocabulary):
    return frame.lookup(0, vocabulary, cpu_fallback)


def by_arrow(call, *arguments):
    with use_backend("numpy"):
        return call(*arguments)


def check_keys(keys, reference):
    assert keys.codes.dtype == np.int32
    np.testing.assert_array_equal(keys.codes, reference.codes)
    assert keys.vocabulary.kind == reference.vocabulary.kind
    if keys.vocabulary.kind != "null":
        assert keys.vocabulary.values.array.equals(reference.vocabulary.values.array)


@pytest.mark.parametrize("chunk_rows", [0, 1 << 15])
@pytest.mark.parametrize("name", BUILDERS)
def test_text_is_numbered_and_found_as_by_arrow(name, chunk_rows, compiled, monkeypatch):
    monkeypatch.setattr(strings, "CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(factorizing, "FEWEST_READ", 0)
    monkeypatch.setattr(factorizing, "REPEATED", 1000)
    for n_rows in (0, 1, 400):
        frame, others = (frame_of(BUILDERS[name](drawn(seed, n_rows))) for seed in (1, 2))
        reference = by_arrow(keys, frame)
        check_keys(keys(frame), reference)
        every = reference.vocabulary.values
        for known in (every, every.take(np.arange(len(every))[::-2])):
            for rows in (frame, others):
                expected = by_arrow(lookup, rows, Vocabulary(known))
                np.testing.assert_array_equal(lookup(rows, Vocabulary(known)), expected)


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_numbered_and_found_as_by_arrow(name, compiled):
    values = [None if value is None else value.encode() + b"\xff" for value in drawn(3)]
    frame = frame_of(BYTES[name](values))
    reference = by_arrow(keys, frame)
    check_keys(keys(frame), reference)
    np.testing.assert_array_equal(lookup(frame, reference.vocabulary), reference.codes)


def test_pieces_are_joined_alike(compiled):
    sizes = ((1, 50), (2, 0), (3, 3), (4, 50))
    tables = [pa.table({"c": pa.array(drawn(seed, 50)[:size], pa.string())}) for seed, size in sizes]
    whole = by_arrow(keys, read(pa.concat_tables(tables)))
    check_keys(keys(read_pieces(tables)), whole)
    check_keys(by_arrow(keys, read_pieces(tables)), whole)


# The last is Latin-1, as some other programs write it to files.
STRANGE = [*[value.encode() for value in WORDS if value is not None], b"\xf0\x9f\x99\x82", b"\xef\xbf\xbd", b"caf\xe9"]


def not_checked(values):
    """Text that is not checked to be UTF-8."""
    return from_arrow(pa.array(values, pa.large_binary()).view(pa.large_string()))


@pytest.mark.parametrize("few", [0, 1000])
def test_values_are_sorted_alike(few, compiled, monkeypatch):
    values = not_checked([STRANGE[pick] for pick in np.random.default_rng(5).integers(0, len(STRANGE), 400)])
    reference, expected = by_arrow(values.sort)
    monkeypatch.setattr(values_module, "FEW", few)
    in_order, codes = values.sort()
    assert in_order.array.equals(reference.array)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize(("few", "tabled"), [(0, 0), (1000, 0), (1000, 1000)])
def test_values_are_found_alike(few, tabled, compiled, monkeypatch):
    monkeypatch.setattr(vocabulary, "_FEW", few)
    monkeypatch.setattr(vocabulary, "_TABLED", tabled)
    for known in (STRANGE[::2], sorted(STRANGE[::2])):
        expected = [known.index(value) if value in known else -2 for value in STRANGE]
        assert Vocabulary(not_checked(known)).positions(not_checked(STRANGE), "c").tolist() == expected


def test_other_kinds_are_refused_and_empty_vocabularies_know_nothing(compiled):
    text, data = read(pa.table({"c": ["a", "b"]})), read(pa.table({"c": [b"a", None]}))
    known = keys(text).vocabulary
    with pytest.raises(ValueError, match="was fitted on text values and now holds bytes values"):
        lookup(data, known)
    with pytest.raises(ValueError, match="was fitted on text values and now holds number values"):
        lookup(read(np.array([[1], [2]], object)), known)
    nothing = Vocabulary(known.values.take(np.zeros(0, np.int64)))
    assert lookup(text, nothing).tolist() == [-2, -2]


class Word(str):
    """A text type with its own comparison."""

    __slots__ = ()

    def __hash__(self):
        return hash(self.lower())

    def __eq__(self, other):
        return self.lower() == other.lower()


def test_objects_that_only_begin_as_text(ops, monkeypatch):
    monkeypatch.setattr(factorizing, "FEWEST_READ", 0)
    monkeypatch.setattr(factorizing, "REPEATED", 1000)

    def objects(*values):
        return frame_of(np.array(values, object))

    for message, values in {
        "mixes str and int": ["a", 1],
        "mixes str and bytes": [None, "a", b"a"],
        "no valid Unicode": ["a", "\ud800"],
        "holds list values": ["a", None, [1]],
    }.items():
        with pytest.raises((TypeError, ValueError), match=message):
            keys(objects(*values))
    nulls = objects("a", None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "ns"), np.str_("a"))
    assert keys(nulls).codes.tolist() == [0, -1, -1, -1, -1, -1, 0]
    words = objects(Word("b"), Word("A"), Word("a"))
    assert keys(words).codes.tolist() == by_arrow(keys, words).codes.tolist() == [1, 0, 0]


def test_the_table_is_made_once_and_not_pickled(compiled):
    frame = read(pa.table({"c": drawn(1)}))
    vocabulary = by_arrow(keys, frame).vocabulary
    lookup(frame, vocabulary)
    table = vocabulary.prepared["cpu"]
    lookup(frame, vocabulary)
    assert vocabulary.prepared["cpu"] is table
    assert pickle.loads(pickle.dumps(vocabulary)).prepared == {}


def test_categories_in_order_are_not_copied_and_cannot_be_written(compiled):
    series = pd.Series(pd.Categorical(["b", "a", "b"], categories=["a", "b"]))
    codes = keys(frame_of(series)).codes
    assert not codes.flags.writeable
    np.testing.assert_array_equal(codes, series.cat.codes)


def test_few_rows_are_left_to_arrow(ops, monkeypatch):
    monkeypatch.undo()
    assert gpu_encode.seam.ops.host_strings(10**9, cpu_fallback) is None
    assert gpu_encode.seam.ops.host_strings(gpu_encode.seam.ops.LOADED_ROWS, cpu_fallback.compiled) is not None
    # If kernels are not loaded, only many rows in total ask for them.
    monkeypatch.delitem(sys.modules, gpu_encode.seam.ops.STRINGS)
    monkeypatch.setattr(gpu_encode.seam.ops, "_rows_asked_for", dict.fromkeys(gpu_encode.seam.ops.LOADING_ROWS, 0))
    enough = gpu_encode.seam.ops.LOADING_ROWS[gpu_encode.seam.ops.STRINGS]
    assert gpu_encode.seam.ops.host_strings(enough - 1, cpu_fallback.compiled) is None
    for _ in range(gpu_encode.seam.ops.TIMES_ASKED - 1):
        assert not gpu_encode.seam.ops.compiled_serves(enough - 1, gpu_encode.seam.ops.STRINGS)
    assert gpu_encode.seam.ops.compiled_serves(enough - 1, gpu_encode.seam.ops.STRINGS)
