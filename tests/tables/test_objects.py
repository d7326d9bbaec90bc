"""Columns of Python objects: text is found by its own hashes as by Arrow, and shared objects by their addresses."""

from decimal import Decimal
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

import cpu_fallback
from gpu_encode.seam.ops import use_backend
from gpu_encode.tables.categories import vocabulary
from gpu_encode.tables.frames import factorizing
from gpu_encode.tables.frames.columns import Column


def test_few_objects_are_numbered_and_found_as_by_arrow(monkeypatch):
    """Python's hashes number repeated text, and find it among few categories; Arrow is the independent reference."""
    values = ["b", "a", "ß", "", "a", "Z", "b"]
    rows = ["a", "new", "b", None, "", float("nan"), "ß", "b", "newer", "new"]
    fitted = factorizing.keys(Column(np.array(values, object)), "c", cpu_fallback)
    expected = factorizing.keys(Column(pa.array(values)), "c", cpu_fallback)
    np.testing.assert_array_equal(fitted.codes, expected.codes)
    assert fitted.vocabulary.to_arrow().equals(expected.vocabulary.to_arrow())
    given = np.array(rows, object)
    arrow = pa.array([value if isinstance(value, str) else None for value in rows])
    found = factorizing.lookup(Column(given), "c", fitted.vocabulary, cpu_fallback)
    np.testing.assert_array_equal(found, factorizing.lookup(Column(arrow), "c", expected.vocabulary, cpu_fallback))
    monkeypatch.setattr(vocabulary, "_TABLED", 0)
    among_many = factorizing.keys(Column(pa.array(values)), "c", cpu_fallback).vocabulary
    assert among_many.index_of_text is None
    np.testing.assert_array_equal(found, factorizing.lookup(Column(given), "c", among_many, cpu_fallback))


@pytest.mark.parametrize("other", [1.5, 3, b"a"])
def test_what_is_not_text_is_refused_among_known_text(other):
    known = factorizing.keys(Column(np.array(["a", "b"], object)), "c", cpu_fallback).vocabulary
    with pytest.raises((TypeError, ValueError), match=r"mixe|bytes|number"):
        factorizing.lookup(Column(np.array(["a", other, "new"], object)), "c", known, cpu_fallback)


def test_text_of_a_subclass_is_found_by_what_it_holds():
    class Folded(str):
        def __eq__(self, other):
            return str(self).lower() == str(other).lower()

        def __hash__(self):
            return hash(str(self).lower())

    known = factorizing.keys(Column(np.array(["a", "b"], object)), "c", cpu_fallback).vocabulary
    rows = np.array([Folded("A"), "a"], object)
    assert factorizing.lookup(Column(rows[:1]), "c", known, cpu_fallback).tolist() == [-2]


@pytest.fixture
def compiled():
    with use_backend("compiled"):
        yield import_module("cpu_fallback.compiled")


def drawn(kinds, n_rows=5000, step=1):
    """Return rows in which each object occurs many times, in no order, in every second position of memory."""
    places = np.random.default_rng(0).integers(0, len(kinds), n_rows * abs(step))
    objects = np.empty(len(kinds), object)
    objects[:] = kinds
    return objects[places][::step]


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize(
    "kinds",
    [
        ["b", "a", "ß", None],
        ["b", "".join(["b"]), float("nan"), float("nan")],
        [1, 1.0, True, 2**70, Decimal(3)],
        [None],
    ],
    ids=["text", "equal", "numbers", "null"],
)
def test_objects_in_several_rows_are_numbered_as_each_by_itself(kinds, step, compiled):
    rows = drawn(kinds, step=step)
    shared, alone = (factorizing.keys(Column(rows), "c", ops) for ops in (compiled, cpu_fallback))
    assert factorizing.share_objects(Column(rows), compiled).codes is not None
    np.testing.assert_array_equal(shared.codes, alone.codes)
    assert shared.vocabulary == alone.vocabulary
    assert repr(shared.vocabulary.to_numpy()) == repr(alone.vocabulary.to_numpy())
    fitted = factorizing.keys(Column(rows[:1]), "c", cpu_fallback).vocabulary
    found, expected = (factorizing.lookup(Column(rows), "c", fitted, ops) for ops in (compiled, cpu_fallback))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("wrong", [float("inf"), ["unhashable"], 1j, "text"])
def test_an_object_that_is_refused_is_named_by_its_first_row(wrong, compiled):
    rows = drawn([1.5, 2])
    rows[3210] = rows[4000] = wrong
    said = []
    for ops in (compiled, cpu_fallback):
        with pytest.raises((TypeError, ValueError)) as error:
            factorizing.keys(Column(rows), "c", ops)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_objects_that_hardly_repeat_are_left_alone(compiled):
    rows = np.array([f"text {row}" for row in range(2000)], object)
    assert factorizing.share_objects(Column(rows), compiled).codes is None
