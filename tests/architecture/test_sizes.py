"""Functions stay small enough to be read at once."""

import ast

import pytest

from tests.architecture.imports import modules
from tests.architecture.line_count import docstring_lines

LINES_OF_A_FUNCTION = 40
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def lines_without_docstrings(function, docstrings):
    """Count the lines of a function from `def` on, but for those in docstrings."""
    return len(set(range(function.lineno, function.end_lineno + 1)) - docstrings)


def test_a_docstring_does_not_count():
    source = 'def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x\n'
    assert lines_without_docstrings(ast.parse(source).body[0], docstring_lines(source)) == 4


@pytest.mark.parametrize("module", sorted(modules()))
def test_sizes(module):
    source = modules()[module].read_text()
    docstrings, nodes = docstring_lines(source), ast.walk(ast.parse(source))
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    assert [each.name for each in functions if lines_without_docstrings(each, docstrings) > LINES_OF_A_FUNCTION] == []
