"""The sources of a kernel: an edit changes the stamps of the kernels that it can change, and no others."""

import ast

import pytest

from cpu_fallback import kernel_folder, kernel_sources
from tests.architecture.imports import is_type_checking, modules, tree, within

# Functions with a cache on the way to a stamp; each test clears it.
CACHED = [getattr(kernel_sources, name) for name in ("stamp_of", "source_of", "file_of", "named_by", "sources_stamp")]
FILES = {
    "__init__.py": "",
    "compiled/__init__.py": "",
    "compiled/border.py": "from numba import njit\nOPTIONS = {}\ndef kernel(function):\n    return njit(OPTIONS)\n",
    "compiled/sums.py": '''"""Sums."""

from cpu_fallback.compiled.border import kernel
from cpu_fallback.compiled.digits import (
    add,
    split,  # not what is called
)
from cpu_fallback.settings import number

FOUND = number()


# Two.
@kernel
def total(x):
    """Add them up."""
    return add(x)


@kernel
def first(x):
    return x[0]


def call(x):
    return total(x), split
''',
    "compiled/digits.py": """from cpu_fallback import exact as definition
from cpu_fallback.compiled.border import kernel

if kernel is None:
    raise ValueError


@kernel
def add(x):
    return x + definition.LIMB


def split(x):
    return x
""",
    "exact.py": "from cpu_fallback.rows import BASE, UNUSED\n\nLIMB: int = BASE + 1\nOTHER = UNUSED\n",
    "rows.py": "BASE, UNUSED = 7, 8\n",
    "settings.py": "def number():\n    return 1\n",
}


@pytest.fixture(autouse=True)
def nothing_known():
    forget()
    yield
    forget()


def forget():
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small backend on disk."""
    folder = tmp_path / "cpu_fallback"
    monkeypatch.setattr(kernel_sources, "SOURCES", folder)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def stamps():
    forget()
    return {name: kernel_sources.stamp_of("cpu_fallback.compiled.sums", name) for name in ("total", "first")}


BOTH = ("total", "first")


@pytest.mark.parametrize(
    ("file", "before", "after", "changed"),
    [
        ("compiled/sums.py", "return add(x)", "return add(x) + 1", ["total"]),
        ("compiled/sums.py", "return x[0]", "return x[1]", ["first"]),
        ("compiled/sums.py", "@kernel\ndef total", "@kernel  # fast\ndef total", ["total"]),
        ("compiled/sums.py", "# Two.", "# Three.\n# Four.", []),
        ("compiled/sums.py", '"""Add them up."""', '"""Add\n\n    them up.\n    """', []),
        ("compiled/sums.py", "return total(x), split", "return total(x)", []),
        ("compiled/digits.py", "x + definition", "x - definition", ["total"]),
        ("compiled/digits.py", "return x\n", "return -x\n", []),
        ("compiled/digits.py", "raise ValueError", "raise TypeError", ["total"]),
        ("exact.py", "BASE + 1", "BASE + 2", ["total"]),
        ("exact.py", "OTHER = UNUSED", "OTHER = 3", []),
        ("rows.py", "7, 8", "9, 8", ["total"]),
        ("rows.py", "BASE, UNUSED = 7, 8", "if True:\n    BASE, UNUSED = 7, 8", ["total"]),
        ("compiled/border.py", "OPTIONS = {}", "OPTIONS = {1: 2}", BOTH),
        ("compiled/border.py", "njit(OPTIONS)", "njit()", BOTH),
        ("settings.py", "return 1", "return 2", []),
    ],
)
def test_an_edit_changes_the_stamps_of_what_can_change(package, file, before, after, changed):
    old, all_sources = stamps(), kernel_sources.sources_stamp()
    path = package / file
    assert path.read_text().count(before) == 1
    path.write_text(path.read_text().replace(before, after))
    new = stamps()
    assert [name for name in BOTH if old[name] != new[name]] == list(changed)
    assert kernel_sources.sources_stamp() != all_sources


def test_a_constant_that_a_function_computes_counts_with_the_function(package):
    old, path = stamps(), package / "compiled" / "sums.py"
    path.write_text(path.read_text().replace("return x[0]", "return x[FOUND]"))
    used = stamps()
    (package / "settings.py").write_text("def number():\n    return 2\n")
    assert len({old["first"], used["first"], stamps()["first"]}) == 3


def test_what_compiles_a_kernel_counts_where_the_kernel_does_not_name_it(package):
    """As for a definition of the NumPy backend that is compiled as it is."""
    number = "cpu_fallback.settings", "number"
    old, path = kernel_sources.stamp_of(*number), package / "compiled" / "border.py"
    path.write_text(path.read_text().replace("OPTIONS = {}", "OPTIONS = {1: 2}"))
    forget()
    assert kernel_sources.stamp_of(*number) != old


WITH_KERNELS = [name for name in sorted(modules()) if within(name, "cpu_fallback", "gpu_encode.cuda")]


def without_docstrings(statement):
    """Return a statement as text, without layout, comments and docstrings."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(statement)


def of_no_kernel(statement):
    """Whether a statement is an import, a check of types or the module's docstring."""
    said = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Import | ast.ImportFrom) or is_type_checking(statement) or said


def test_statements_and_imports_are_those_of_the_syntax_tree():
    for module in WITH_KERNELS:
        parsed = ast.parse(modules()[module].read_text())
        source = kernel_sources.source_of(module)
        kept = [text for texts in source.defined.values() for text in texts] + source.nameless
        found = {without_docstrings(ast.parse(text).body[0]) for text in kept}
        assert found == {without_docstrings(each) for each in parsed.body if not of_no_kernel(each)}, module
        for each in parsed.body:
            name = getattr(each, "name", None)
            if name is not None:
                texts = source.defined[name]
                assert without_docstrings(each) in {without_docstrings(ast.parse(text).body[0]) for text in texts}


def imports_at_run_time(node):
    """Return the imports of a module, inside functions too, without the imports of types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not is_type_checking(child):
            yield from imports_at_run_time(child)


def test_every_import_of_ours_is_followed():
    for module in WITH_KERNELS:
        imported = kernel_sources.source_of(module).imported
        for each in imports_at_run_time(tree(module)):
            origins = [each.module] if isinstance(each, ast.ImportFrom) else [alias.name for alias in each.names]
            if within(origins[0], *kernel_sources.OURS):
                assert isinstance(each, ast.ImportFrom), module
                names = {alias.asname or alias.name: (each.module, alias.name) for alias in each.names}
                assert names.items() <= imported.items(), module


def test_real_kernels_are_made_of_what_they_call_elsewhere():
    reached = kernel_sources.made_of({("cpu_fallback.compiled.product_errors", "product_error")})
    assert {("cpu_fallback.compiled.product_errors", name) for name in ("multiply_add", "fuses", "halve")} <= reached
    reached = kernel_sources.made_of({("cpu_fallback.compiled.folds", "inverse_of")})
    assert ("cpu_fallback.row_numbers", "inverse_of") in reached
    on_a_gpu = {("gpu_encode.cuda.moments", "compare"), ("gpu_encode.cuda.runtime", "compile_kernel")}
    reached = kernel_sources.made_of(on_a_gpu)
    assert {("cpu_fallback.compiled.midpoints", "side"), ("gpu_encode.cuda.runtime", "library_of")} <= reached


def test_what_only_python_uses_is_in_few_kernels():
    """Most other modules import the module that reads settings from the environment."""
    of_python = ("cpu_fallback.settings", "number_from_environment")
    reaching = [
        f"{module}.{name}"
        for module in WITH_KERNELS
        for name, (text, *_) in kernel_sources.source_of(module).defined.items()
        if text.startswith(("@kernel", "@stage", "@separate")) and of_python in kernel_sources.made_of({(module, name)})
    ]
    # A variable of a kernel that has the name of a function counts as the function.
    assert len(reaching) < 5


def test_the_seal_tells_the_stamps(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_folder, "folder", lambda: tmp_path)
    kernel = "cpu_fallback.compiled.sums", "accumulate"
    kernel_folder.stamps_told.cache_clear()
    found = kernel_folder.stamp_of(*kernel)
    kernel_folder.set_complete()
    kernel_folder.stamps_told.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(kernel_sources, "stamp_of", None)
        assert kernel_folder.stamp_of(*kernel) == found
    for damaged in ("", "one line\nof three words\n", "cut"):
        kernel_folder.seal(tmp_path).write_text(damaged)
        kernel_folder.stamps_told.cache_clear()
        assert kernel_folder.stamp_of(*kernel) == found
    kernel_folder.stamps_told.cache_clear()
