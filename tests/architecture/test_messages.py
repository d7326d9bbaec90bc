"""Messages are written where they are raised; those of several modules are in `words.errors`, or in their guest."""

import ast

from tests.architecture.imports import modules, tree, within

HOMES = ("gpu_encode.words.errors", "gpu_encode.scale.messages", "gpu_encode.serve.export.messages")
TREES = {name: tree(name) for name in modules() if within(name, "gpu_encode")}
FUNCTIONS = {
    node.name: node
    for name, module in TREES.items()
    if any(within(name, home) for home in HOMES)
    for node in module.body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
}


def uses():
    """Return the modules that use each function of a module of messages."""
    using = {name: set() for name in FUNCTIONS}
    for module, parsed in TREES.items():
        for node in ast.walk(parsed):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name in using:
                using[name].add(module)
    return using


def test_a_shared_message_is_used_by_two_modules_or_more():
    # `KnownKeywords` alone uses it, with the long lists of the words of other libraries.
    assert [name for name, using in uses().items() if len(using) < 2] == ["unknown_keyword"]


def test_a_message_is_returned_and_a_check_raises():
    raising = {name: any(isinstance(node, ast.Raise) for node in ast.walk(each)) for name, each in FUNCTIONS.items()}
    assert [name for name, raises in raising.items() if raises is not name.startswith("check_")] == []
