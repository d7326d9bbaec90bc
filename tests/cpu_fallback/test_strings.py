"""Strings to codes and back, compared with Arrow's dictionaries and Python's order of bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_fallback.compiled import string_pieces, strings, threads
from cpu_fallback.compiled.string_order import Picked, order_of
from tests.strategies import examples

# Lengths around the ends of words and pieces; bytes that tell signed from unsigned and short strings from padded ones.
BYTES = st.sampled_from([0, 1, 97, 127, 128, 255])
SOME = st.lists(BYTES, max_size=3).map(bytes)
TEXTS = st.builds(
    lambda head, length, tail: head * length + tail, SOME, st.sampled_from([0, 1, 2, 3, 5, 6, 8]), SOME
) | st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"a" * 7, b"a" * 8, b"a" * 9, b"a" * 15, b"a" * 16, b"a" * 17])


def part(values, dtype=np.int64, before=0, behind=b""):
    """Return strings as an Arrow slice: other strings and `nulls` null rows before them are cut off."""
    held = [b"xyz"] * before + [b"null" if value is None else value for value in values]
    offsets = np.cumsum([0, *map(len, held)]).astype(dtype)[before:]
    bits = np.array([0] * before + [value is not None for value in values])
    validity = np.packbits(bits, bitorder="little") if None in values or before % 2 else None
    return strings.Strings(offsets, np.frombuffer(b"".join(held) + behind, np.uint8), validity, before)


def pieces_of(values):
    """Return sixteen bytes of each string; shorter strings are filled with zeros."""
    return np.frombuffer(b"".join(value[:16].ljust(16, b"\0") for value in values), np.uint64)


def to_list(buffers):
    held = buffers.characters.tobytes()
    assert buffers.offsets[0] == 0
    assert buffers.offsets[-1] == len(held)
    return [held[start:stop] for start, stop in zip(buffers.offsets[:-1], buffers.offsets[1:], strict=True)]


def expected(values):
    known = sorted({value for value in values if value is not None})
    index = {value: number for number, value in enumerate(known)}
    return known, [-1 if value is None else index[value] for value in values]


def check(chunks, **layout):
    values = [value for chunk in chunks for value in chunk]
    codes, distinct = strings.factorize_strings([part(chunk, **layout) for chunk in chunks])
    known, places = expected(values)
    assert codes.dtype == np.int32
    assert distinct.offsets.dtype == np.int64
    assert to_list(distinct) == known
    assert codes.tolist() == places
    return distinct


@examples(200)
@given(
    chunks=st.lists(st.lists(st.none() | TEXTS, max_size=12), max_size=4),
    dtype=st.sampled_from([np.int32, np.int64]),
    before=st.integers(0, 9),
)
def test_distinct_strings_in_the_order_of_their_bytes(chunks, dtype, before):
    for number in (1, 2):
        threads.set_threads(number)
        check(chunks, dtype=dtype, before=before)
    threads.set_threads(None)


@examples(200)
@given(known=st.lists(TEXTS, unique=True, max_size=12), rows=st.lists(st.none() | TEXTS, max_size=20))
def test_strings_are_found_or_unknown(known, rows):
    index = {value: number for number, value in enumerate(known)}
    categories = strings.prepare(part(known))
    for chunks in ([rows], [rows[:5], [], rows[5:]]):
        codes = strings.lookup_strings([part(chunk, np.int32) for chunk in chunks], categories)
        assert codes.dtype == np.int32
        assert codes.tolist() == [-1 if value is None else index.get(value, -2) for value in rows]


def many(random, n_rows, n_distinct, longest):
    """Draw strings of many lengths, most of them with much in common."""
    lengths = random.integers(0, longest + 1, n_distinct)
    held = [b"http://" * (number % 3) + random.bytes(length) for number, length in enumerate(lengths)]
    return [None if place % 97 == 5 else held[place] for place in random.integers(0, n_distinct, n_rows)]


@pytest.mark.parametrize("n_distinct", [3, 6000])
@pytest.mark.parametrize("longest", [3, 16, 40])
def test_many_strings_on_any_number_of_threads(n_threads, n_distinct, longest):
    random = np.random.default_rng(n_distinct + longest)
    rows = many(random, 5000, n_distinct, longest)
    distinct = check([rows])
    check([rows[:3000], rows[3000:3001], rows[3001:]], dtype=np.int32, before=3)
    others = many(random, 3000, n_distinct, longest) + rows[:2000]
    index = {value: number for number, value in enumerate(to_list(distinct))}
    codes = strings.lookup_strings([part(others, behind=b"no end")], strings.prepare(distinct))
    assert codes.tolist() == [-1 if value is None else index.get(value, -2) for value in others]


def test_nothing_and_nulls_alone(n_threads):
    check([])
    check([[]])
    check([[None, None]])
    check([[b""] * 3])
    nothing = strings.prepare(part([]))
    assert strings.lookup_strings([part([b"a", None, b""])], nothing).tolist() == [-2, -1, -2]
    assert strings.lookup_strings([], nothing).tolist() == []


def test_short_strings_of_one_hash_are_told_apart(n_threads):
    factor, every = int(string_pieces.SECOND_FACTOR), (1 << 64) - 1
    pairs = [((second * factor ^ factor * 5) & every, second) for second in range(2, 40)]
    assert len({int(string_pieces.hash_of(*map(np.uint64, pair))) for pair in pairs}) == 1
    values = [b"".join(word.to_bytes(8, "little") for word in pair) for pair in pairs]
    check([[*values, *values[::-1]] * 30])
    codes = strings.lookup_strings([part(values)], strings.prepare(part(values[1::2])))
    assert codes.tolist() == [number // 2 if number % 2 else -2 for number in range(len(values))]


def test_long_strings_of_one_hash_are_told_apart(n_threads):
    # The hash takes eight bytes at a time by (word ^ bytes) * odd, so some bytes undo the first difference.
    golden, every = int(string_pieces.GOLDEN), (1 << 64) - 1

    def after(word, piece):
        word = (word ^ piece) * golden & every
        return word ^ word >> 32

    one, other, behind = 11, 12, 13
    same = after(after(32, one), behind) ^ 0
    undone = behind ^ after(32, one) ^ after(32, other)
    assert after(after(32, other), undone) == same
    tail = b"t" * 16
    first, second = (
        b"".join(word.to_bytes(8, "little") for word in pair) + tail for pair in ((one, behind), (other, undone))
    )
    texts = strings.texts_of(part([first, second]))
    assert string_pieces.hash_of_long(texts.words, 0, 32) == string_pieces.hash_of_long(texts.words, 32, 32)
    check([[first, second, first, second] * 400])
    codes = strings.lookup_strings([part([second, first, tail])], strings.prepare(part([first])))
    assert codes.tolist() == [-2, 0, -2]
    # Known strings keep their numbers, though the second of the two is distinguished later than its neighbours.
    names = [first, *(b"a%04d" % i for i in range(511)), second, *(b"z%04d" % i for i in range(100))]
    assert strings.lookup_strings([part(names)], strings.prepare(part(names))).tolist() == list(range(len(names)))


@examples(100)
@given(values=st.lists(TEXTS, unique=True, max_size=40))
def test_order_of_strings(values):
    buffers = part(values)
    picked = Picked(
        strings.texts_of(buffers).words,
        buffers.offsets[:-1],
        np.diff(buffers.offsets),
        pieces_of(values),
    )
    assert [values[place] for place in order_of(picked)] == sorted(values)


@pytest.mark.parametrize("prefix", [b"", b"abc", b"0123456789", b"x" * 33])
def test_order_of_many_that_tie(prefix):
    random = np.random.default_rng(len(prefix))
    values = list(
        {prefix + random.choice([b"commonpart", b"commonpast", b""]) + random.bytes(k % 20) for k in range(1500)}
    )
    random.shuffle(values)
    check([values])


@pytest.mark.parametrize("n_bytes", [7, 8, 9, 15, 16, 17, 24])
def test_order_of_what_others_begin_with(n_bytes):
    prefix = bytes(range(1, n_bytes + 1))
    check([[prefix + b"b", prefix + b"\0", prefix, prefix + b"a" * 9, prefix + b"\xff"]])


@pytest.mark.parametrize("n_bytes", [1, 15, 16, 17, 40])
def test_nothing_is_read_behind_the_end(n_bytes):
    held = bytes(range(1, n_bytes + 1))
    words = strings.words_of(np.frombuffer(held, np.uint8))
    # Run as plain Python, which checks indices.
    word_at = getattr(string_pieces.word_at, "py_func", string_pieces.word_at)
    for start in range(n_bytes + 1):
        for length in range(-8, n_bytes - start + 1):
            expected_word = held[start : start + min(max(length, 0), 8)].ljust(8, b"\0")
            assert int(word_at(words, start, length)).to_bytes(8, "little") == expected_word
    values = [held[start:] for start in range(n_bytes + 1)]
    starts = np.arange(n_bytes + 1)
    picked = Picked(words, starts, n_bytes - starts, pieces_of(values))
    assert [values[place] for place in order_of(picked)] == sorted(values)
    for last in (b"", b"z", b"last of all, and long"):
        check([[held, last]])
