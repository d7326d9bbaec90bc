"""Files and functions stay small enough to be read at once."""

import ast

import pytest

from tests.architecture.imports import modules

LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 40


def lines_without_docstring(function):
    """Count the lines of a function from `def` on, but for its docstring."""
    total = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return total
    docstring = function.body[0]
    return total - (docstring.end_lineno - docstring.lineno + 1)


def test_a_docstring_does_not_count():
    (function,) = ast.parse('def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x\n').body
    assert lines_without_docstring(function) == 4


@pytest.mark.parametrize("module", sorted(modules()))
def test_sizes(module):
    source = modules()[module].read_text()
    assert len(source.splitlines()) <= LINES_OF_A_FILE
    too_long = {
        node.name: lines_without_docstring(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and lines_without_docstring(node) > LINES_OF_A_FUNCTION
    }
    assert too_long == {}
