"""A message stands where it is raised; shared ones, checks and those built with logic stand in `words.errors`."""

import ast
import builtins
from collections import Counter

import pytest

from tests.architecture.imports import modules, within

LINES_OF_A_MESSAGE = 3
TREES = {name: ast.parse(path.read_text()) for name, path in modules().items() if within(name, "gpu_encode")}
FUNCTIONS = {
    node.name: node
    for name, tree in TREES.items()
    if within(name, "gpu_encode.words.errors")
    for node in tree.body
    if isinstance(node, ast.FunctionDef)
}


def uses():
    """Count the uses of every function of errors by the modules that use it."""
    counts = {name: Counter() for name in FUNCTIONS}
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name in counts:
                counts[name][module] += 1
    return counts


def is_short(function):
    """Tell whether a function does nothing but give an exception of Python's with a short text."""
    body = function.body[1:]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or not isinstance(body[0].value, ast.Call):
        return False
    made, arguments = body[0].value.func, body[0].value.args
    return (
        hasattr(builtins, ast.unparse(made))
        and isinstance(arguments[0], (ast.Constant, ast.JoinedStr))
        and arguments[0].end_lineno - arguments[0].lineno < LINES_OF_A_MESSAGE
        and not any(
            isinstance(node, ast.Name) and (node.id in FUNCTIONS or node.id.isupper()) for node in ast.walk(body[0])
        )
    )


@pytest.mark.parametrize(
    ("body", "short"),
    [
        ("return ValueError(f'No {x}.')", True),
        ("return ValueError(\n'One '\n'two '\n'three '\n'four.')", False),
        ("near = x[0]\n    return ValueError(f'No {near}.')", False),
        ("return first_of('No ', x, 'rows', '.')", False),
    ],
)
def test_short_messages_are_noticed(body, short):
    assert is_short(ast.parse(f'def f(x):\n    """Error."""\n    {body}').body[0]) is short


def test_every_message_is_used():
    assert [name for name, modules_using in uses().items() if not modules_using] == []


def test_short_messages_of_one_use_stand_where_they_are_raised():
    once = [name for name, using in uses().items() if using.total() == 1]
    assert [name for name in once if is_short(FUNCTIONS[name])] == []


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("_")])
def test_a_message_is_returned_and_a_check_raises(name):
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(FUNCTIONS[name]))
    assert raises is name.startswith("check_")
