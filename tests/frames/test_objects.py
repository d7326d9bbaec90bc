"""Python's text in columns of objects: numbered and found by its own hashes as by Arrow, and never by a cousin's."""

import numpy as np
import pyarrow as pa
import pytest

import cpu_fallback
from gpu_encode.categories import vocabulary
from gpu_encode.frames import factorizing
from gpu_encode.frames.columns import Column


def test_few_objects_are_numbered_and_found_as_by_arrow(monkeypatch):
    """Python's hashes number text that repeats, and find it among few categories; Arrow is the independent way."""
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
    assert among_many.place_of_text is None
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
