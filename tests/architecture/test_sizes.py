"""Functions are small enough to be read at once."""

import ast

from tests.architecture.imports import modules, tree
from tests.architecture.line_count import docstring_lines

LINES_OF_A_FUNCTION = 40
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def lines_without_docstrings(function, docstrings):
    """Count the lines of a function from `def` on, without its docstrings."""
    return len(set(range(function.lineno, function.end_lineno + 1)) - docstrings)


def long_functions(parsed):
    """Return the names of the functions that are too long."""
    functions = [node for node in ast.walk(parsed) if isinstance(node, FUNCTIONS)]
    long = [each for each in functions if each.end_lineno - each.lineno >= LINES_OF_A_FUNCTION]
    docstrings = docstring_lines(parsed) if long else set()
    return [each.name for each in long if lines_without_docstrings(each, docstrings) > LINES_OF_A_FUNCTION]


def test_a_docstring_does_not_count():
    source = ast.parse('def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x\n')
    assert lines_without_docstrings(source.body[0], docstring_lines(source)) == 4


def test_a_function_that_is_too_long_is_named():
    lines = '    """One.\n\n    Two.\n    """\n' + "    x += 1\n"
    for more, named in ((LINES_OF_A_FUNCTION - 2, []), (LINES_OF_A_FUNCTION - 1, ["f"])):
        assert long_functions(ast.parse("def f(x):\n" + lines + "    x += 1\n" * more)) == named


def test_no_function_is_too_long():
    assert {module: names for module in modules() if (names := long_functions(tree(module)))} == {}
