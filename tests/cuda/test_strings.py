"""Strings on the GPU: numbered as by Arrow, sorted as Python sorts their bytes, and looked up exactly."""

from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest

from gpu_encode.seam import devices
from tests.backends import memory

pytestmark = pytest.mark.cuda

LISTS = {
    "one": [b"a"],
    "empty string": [b"", b"a", b"", b"\0"],
    "only empty": [b"", b""],
    "zeros behind": [b"a", b"a\0", b"a\0\0", b"a\0\0\0\0\0\0\0\0\0", b"a\0"],
    "common beginnings": [f"customer-{i % 37:09d}".encode() for i in range(100)],
    "lengths around eight": [b"x" * n for n in range(20)] + [b"x" * n + b"y" for n in range(20)],
    "long": [b"z" * 300, b"z" * 299 + b"a", b"z" * 300, b"z" * 299],
    "text": [word.encode() for word in ("straße", "strasse", "Übung", "日本", "日本語", "z", "Z", "😀")],
    "all bytes": [bytes([value]) for value in range(256)],
    "none": [],
}


@pytest.fixture(scope="module")
def strings(ops):
    return import_module("gpu_encode.cuda.strings")


@pytest.fixture(params=[np.int32, np.int64], ids=["int32", "int64"])
def offsets_type(request):
    return request.param


def given(strings, rows, dtype=np.int64, ahead=b"junk"):
    """Rows on the device; the first does not begin where the bytes begin."""
    offsets = np.cumsum([len(ahead), *map(len, rows)]).astype(dtype)
    return strings.strings_to_device(offsets, np.frombuffer(ahead + b"".join(rows), np.uint8))


def read(strings, result):
    offsets, characters = strings.strings_to_host(result)
    return [bytes(characters[start:stop]) for start, stop in pairwise(offsets)]


@pytest.mark.parametrize("rows", LISTS.values(), ids=LISTS)
def test_codes_count_the_sorted_distinct_strings(strings, rows, offsets_type):
    codes, distinct = strings.factorize_strings(given(strings, rows, offsets_type))
    assert read(strings, distinct) == sorted(set(rows))
    assert [sorted(set(rows))[code] for code in memory.to_host(codes)] == rows
    assert codes.dtype == np.int32


def test_strings_of_one_word_are_told_apart(strings, monkeypatch):
    """Under the first two seeds all strings have one word; the third is the first that tells them apart."""
    tried = []

    def weak(rows, nulls, seed):
        tried.append(int(seed))
        result = hashed(rows, nulls, seed)
        return result if seed > 1 else result._replace(words=result.words * np.uint64(0))

    hashed = strings.hash_strings
    monkeypatch.setattr(strings, "hash_strings", weak)
    rows = [b"b", b"a", b"b", b"c"]
    codes, distinct = strings.factorize_strings(given(strings, rows))
    assert read(strings, distinct) == [b"a", b"b", b"c"]
    assert memory.to_host(codes).tolist() == [1, 0, 1, 2]
    known = strings.prepare(distinct)
    assert tried == [0, 1, 2, 0, 1, 2]
    assert known.seed == 2


@pytest.mark.parametrize("rows", LISTS.values(), ids=LISTS)
def test_known_strings_are_found_and_others_are_not(strings, rows, offsets_type):
    words = sorted({*rows[: len(rows) // 2 + 1], b"never seen", b"never"})
    known = strings.prepare(given(strings, words))
    codes = memory.to_host(strings.lookup_strings(given(strings, rows, offsets_type), known))
    assert codes.tolist() == [words.index(row) if row in words else -2 for row in rows]


def test_a_string_of_the_same_word_is_not_the_same_string(strings, monkeypatch):
    known = strings.prepare(given(strings, [b"a", b"b"]))
    of_b = strings.hash_strings(given(strings, [b"b"]), None, known.seed)
    monkeypatch.setattr(strings, "hash_strings", lambda rows, nulls, seed: of_b)
    assert memory.to_host(strings.lookup_strings(given(strings, [b"x"]), known)).tolist() == [-2]


def test_nothing_is_found_among_nothing(strings):
    known = strings.prepare(given(strings, []))
    assert memory.to_host(strings.lookup_strings(given(strings, [b"a"]), known)).tolist() == [-2]


def test_picked_rows_share_their_bytes(strings):
    whole = given(strings, [b"ab", b"", b"cde"])
    part = whole.pick(memory.to_device(np.array([2, 0])))
    assert part.characters is whole.characters
    assert read(strings, part) == [b"cde", b"ab"]


@pytest.mark.parametrize("rows", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("every", [1, 2, 3])
def test_null_is_no_string(strings, rows, every):
    """Whatever bytes stand in the rows that are null: strings that only they have are none."""
    null = np.arange(len(rows)) % every == 0
    nulls, there = memory.to_device(null), given(strings, rows)
    codes, distinct = strings.factorize_strings(there, nulls)
    words = sorted({row for row, is_null in zip(rows, null, strict=True) if not is_null})
    expected = [-1 if is_null else words.index(row) for row, is_null in zip(rows, null, strict=True)]
    assert memory.to_host(codes).tolist() == expected
    assert read(strings, distinct) == words
    result = strings.lookup_strings(there, strings.prepare(given(strings, words[1:])), nulls)
    assert memory.to_host(result).tolist() == [-2 if code == 0 else max(code - 1, -1) for code in expected]


@pytest.mark.skipif(not devices.simulated(), reason="a compiled kernel keeps the word that it was compiled with")
def test_a_string_whose_word_is_that_of_null_is_not_null(strings, monkeypatch):
    words = strings.hash_strings(given(strings, [b"x"]), None, np.uint64(0)).words
    monkeypatch.setattr(strings, "NULL", np.uint64(int(memory.to_host(words)[0])))
    rows = given(strings, [b"x", b"y", b"x"])
    codes, distinct = strings.factorize_strings(rows, memory.to_device(np.array([False, False, True])))
    assert memory.to_host(codes).tolist() == [0, 1, -1]
    assert read(strings, distinct) == [b"x", b"y"]
