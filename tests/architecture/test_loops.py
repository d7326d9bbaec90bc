"""Loops of kernels index rows by numbers that cannot be negative: see "Indices that cannot be negative" in NOTES.md."""

import ast

import pytest

from tests.architecture.imports import modules, tree, within

# Loops over categories, keys or strings do so much arithmetic per step that computing an index costs little.
OF_CATEGORIES = {
    "blending",
    "closed_forms",
    "conjunction_scores",
    "conjunctions",
    "key_sums",
    "key_lookups",
    "keys_by_fold",
    "moments",
    "string_order",
}
BEGINNINGS = {"start", "begin"}
KERNELS = "cpu_fallback.compiled"


def begins_anywhere(loop: ast.For) -> bool:
    """Whether a loop runs over a range of rows whose start, for all the compiler knows, may be negative."""
    call = loop.iter
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
        return False
    return len(call.args) > 1 and isinstance(call.args[0], ast.Name) and call.args[0].id in BEGINNINGS


def signed_places(parsed: ast.Module) -> list[int]:
    """Return the lines where a possibly negative number is an index: a row of a loop, or one counted from a start."""
    loops = [each for each in ast.walk(parsed) if isinstance(each, ast.For) and isinstance(each.target, ast.Name)]
    rows = [(loop, {loop.target.id}) for loop in loops if begins_anywhere(loop)]
    found = set()
    for part, names in [*rows, (parsed, BEGINNINGS)]:
        places = [each.slice for each in ast.walk(part) if isinstance(each, ast.Subscript)]
        found |= {name.lineno for place in places for name in _summands(place) if name.id in names}
    return sorted(found)


def _summands(place: ast.expr) -> list[ast.Name]:
    """Return the names that an index adds up."""
    if isinstance(place, ast.Name):
        return [place]
    if isinstance(place, ast.Tuple):
        return [name for each in place.elts for name in _summands(each)]
    if isinstance(place, ast.BinOp):
        return _summands(place.left) + _summands(place.right)
    return []


def test_places_of_rows_are_never_negative():
    of_rows = set(modules()) - {f"{KERNELS}.{name}" for name in OF_CATEGORIES}
    found = {module: signed_places(tree(module)) for module in of_rows if within(module, KERNELS)}
    assert len(found) > len(OF_CATEGORIES)
    assert {module: lines for module, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for i in range(start, stop):\n    out[i] = 0", [2]),
        ("for i in range(start, stop):\n    out[k, i + 1] = 0", [2]),
        ("for i in range(start, stop):\n    out[np.uint64(i)] = 0", []),
        ("for i in range(len(out)):\n    out[i] = 0", []),
        ("for i in range(1, n):\n    out[i] = 0", []),
        ("for i in range(n):\n    out[start + i] = 0", [2]),
        ("for i in range(n):\n    out[np.uint64(start + i)] = 0", []),
        ("part = out[start:stop]", []),
    ],
)
def test_what_is_found(loop, expected):
    assert signed_places(ast.parse(loop)) == expected
