"""Messages of the library are built in `gpu_encode.errors` alone, where they can be read side by side."""

import ast
import builtins
import inspect
import pkgutil
from importlib import import_module

import pytest

from gpu_encode import errors
from tests.architecture.imports import modules, within

# The command line and the reader of files speak of flags and members, which nothing else knows.
OWN_WORDS = ("gpu_encode.errors", "gpu_encode.cli", "gpu_encode.storage")
CORE = sorted(
    name for name in modules() if within(name, "gpu_encode") and not any(within(name, own) for own in OWN_WORDS)
)
TOPICS = [import_module(f"gpu_encode.errors.{topic.name}") for topic in pkgutil.iter_modules(errors.__path__)]
MESSAGES = {
    name: found
    for topic in TOPICS
    for name, found in vars(topic).items()
    if inspect.isfunction(found) and found.__module__ == topic.__name__ and not name.startswith("_")
}
# What Python itself asks for by type, and what only a mistake in the library can raise.
NOT_FOR_USERS = {"AttributeError", "NotImplementedError", "RuntimeError", "StopIteration"}
FOR_USERS = {
    name for name, found in vars(builtins).items() if isinstance(found, type) and issubclass(found, Exception)
} - NOT_FOR_USERS


def built(source):
    """Give the exceptions that a module builds itself, by line: raised at once or kept in a name."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("builtins.") in FOR_USERS
    ]


@pytest.mark.parametrize(
    "source", ["raise ValueError('x')", "raise TypeError(f'{x}') from None", "error = KeyError(x)\nraise error"]
)
def test_a_message_elsewhere_is_noticed(source):
    assert built(source)


@pytest.mark.parametrize("source", ["raise no_rows(x)", "raise NotImplementedError", "raise", "raise found"])
def test_what_is_no_message_is_let_through(source):
    assert not built(source)


@pytest.mark.parametrize("module", CORE)
def test_messages_are_built_in_one_place(module):
    assert built(modules()[module].read_text()) == []


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_returned_and_a_check_raises(name):
    returned = inspect.signature(MESSAGES[name]).return_annotation
    if name.startswith("check_"):
        assert returned is None
    else:
        assert issubclass(returned, Exception)


def test_every_message_is_used():
    source = "\n".join(modules()[name].read_text() for name in modules() if name != "gpu_encode.errors")
    calls = {
        node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
    }
    assert [name for name in MESSAGES if name not in calls] == []
