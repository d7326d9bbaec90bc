"""The imports of every module, read from its syntax tree."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gpu_encode", "cpu_fallback")


@dataclass(frozen=True)
class Import:
    """One import: the module by its full name, and whether it happens when the importing module is loaded."""

    module: str
    at_once: bool


@cache
def modules() -> dict[str, Path]:
    """Give all modules of both packages by name."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(module: str) -> ast.Module:
    """Give a module's syntax tree: the only parse of it, which all tests of the architecture share."""
    return ast.parse(modules()[module].read_text())


def last_name(node: ast.expr) -> str:
    """Give the last word of a dotted name; nothing for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING"


def named(node: ast.AST) -> list[str]:
    """Give the modules that a statement imports; a name imported from a package may be one of its modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        source = node.module or ""
        inside = [f"{source}.{alias.name}" for alias in node.names]
        return [each if each in modules() else source for each in inside]
    if isinstance(node, ast.Call) and last_name(node.func).endswith("import_module"):
        return [name.value for name in node.args[:1] if isinstance(name, ast.Constant)]
    return []


@cache
def imports_of(module: str, types: bool = False) -> frozenset[Import]:
    """Give what a module imports at run time, inside functions too; with `types` for types alone as well."""
    found = set()

    def visit(node: ast.AST, at_once: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if is_type_checking(child) and not types:
                continue
            found.update(Import(name, at_once) for name in named(child))
            visit(child, at_once and not isinstance(child, (ast.FunctionDef, ast.Lambda)))

    visit(tree(module), True)
    return frozenset(found)


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)
