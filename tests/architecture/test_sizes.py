"""Functions stay small enough to be read at once."""

import ast

import pytest

from tests.architecture.imports import modules

LINES_OF_A_FUNCTION = 40


def lines_without_docstring(function):
    """Count the lines of a function from `def` on, but for its docstring."""
    total = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return total
    docstring = function.body[0]
    return total - (docstring.end_lineno - docstring.lineno + 1)


def keeps_parameters(function):
    """Tell whether a function keeps the parameters of an estimator, each under its own name, and does nothing else."""
    kept = [f"self.{argument.arg} = {argument.arg}" for argument in (*function.args.args, *function.args.kwonlyargs)]
    return function.name == "__init__" and [ast.unparse(line) for line in function.body] == kept[1:]


def test_parameters_that_are_kept_do_not_count():
    source = "class A:\n    def __init__(self, x, *, y):\n        self.x = x\n        self.y = y"
    for text, keeps in ((source, True), (source + " + 1", False), (source.replace("init", "call"), False)):
        assert keeps_parameters(ast.parse(text).body[0].body[0]) is keeps


def test_a_docstring_does_not_count():
    (function,) = ast.parse('def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x\n').body
    assert lines_without_docstring(function) == 4


@pytest.mark.parametrize("module", sorted(modules()))
def test_sizes(module):
    source = modules()[module].read_text()
    too_long = {
        node.name: lines_without_docstring(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and lines_without_docstring(node) > LINES_OF_A_FUNCTION
        and not keeps_parameters(node)
    }
    assert too_long == {}
