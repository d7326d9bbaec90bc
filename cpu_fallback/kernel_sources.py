"""Find the source code that a kernel's machine code is made of, without loading it and without numba.

A kernel is compiled together with the stages that it calls, and holds the constants that it names.  So its stamp is a
hash of its own statement and of all statements of ours that this one names, directly or through others.  Every word of
a statement counts as a name, so a stamp depends on too much code rather than on too little.  Comments and docstrings
are left out.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent
OURS = ("cpu_fallback", "gpu_encode")
# The functions that compile each kernel, which belong to every stamp; and the modules that only find its folder, which
# belong to none.
COMPILER = ("cpu_fallback.compiled.border", ("kernel", "stage", "separate"))
FOLDERS = ("cpu_fallback.kernel_folder", "cpu_fallback.kernel_sources")

WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")
AFTER_A_POINT = re.compile(r"\.([^\W\d]\w*)")
# A statement begins at the margin; closing brackets and `else` at the margin belong to the statement before.
MARGIN = re.compile(r"^(?=[^\s)\]}#])(?!(?:else|elif|except|finally)\b)", re.MULTILINE)
DEFINED = re.compile(r"(?:@.*\n(?:[ )].*\n)*)*(?:async def|def|class) (\w+)")
ASSIGNED = re.compile(r"(\w[\w ,]*)(?::[^=\n]*)?=(?!=)")
IMPORTED = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)", re.MULTILINE)
RENAMED = re.compile(r"(\w+)(?:\s+as\s+(\w+))?")
REMARKS = re.compile(r"^[ \t]*(?:#.*)?\n", re.MULTILINE)
DOCSTRINGS = re.compile(r'^([ \t]*)"""(?s:.*?)"""\n', re.MULTILINE)

Name = tuple[str, str]


class Source(NamedTuple):
    """The statements of a module by the names that they define, statements without a name, and imported names."""

    defined: dict[str, list[str]]
    nameless: list[str]
    imported: dict[str, Name]


def digest(*parts: str) -> str:
    """Give a short hash of some texts."""
    return sha256("\0".join(parts).encode()).hexdigest()[:8]


@cache
def sources_stamp() -> str:
    """Give a stamp that changes with any source file."""
    # Times of files are not used, since layers of container images keep only their seconds.
    return digest(*(path.name + path.read_text("utf-8") for path in sorted(SOURCES.rglob("*.py"))))


@cache
def stamp_of(module: str, name: str, compiler: tuple[str, tuple[str, ...]] = COMPILER) -> str:
    """Give a kernel's stamp, which changes with the code that the kernel is made of.

    `compiler` is a module and names in it: the functions that compile the kernel.
    """
    reached = made_of({(module, name), *((compiler[0], each) for each in compiler[1])})
    return digest(*sorted({text for each in reached for text in statements_of(*each)}))


def made_of(names: set[Name]) -> set[Name]:
    """Give names, and all names to which their statements refer, directly or through others."""
    reached: set[Name] = set()
    while names:
        reached |= names
        names = set().union(*map(named_by, names)) - reached
    return reached


def current_stamps() -> dict[str, str]:
    """Give the stamps of all functions that may be kernels of the CPU, by module and name."""
    files = [path.relative_to(SOURCES.parent).with_suffix("") for path in SOURCES.rglob("*.py")]
    modules = [".".join(file.parts) for file in files if file.name != "__init__"]
    return {f"{module}.{name}": stamp_of(module, name) for module in modules for name in source_of(module).defined}


@cache
def file_of(module: str) -> Path | None:
    """Give the file of a module of ours; None for any other module."""
    if module.partition(".")[0] not in OURS:
        return None
    path = f"{SOURCES.parent}/{module.replace('.', '/')}"
    return next((file for file in map(Path, (f"{path}.py", f"{path}/__init__.py")) if file.exists()), None)


@cache
def source_of(module: str) -> Source:
    """Read a module; one that is not ours has no statements."""
    source, decorators = Source({}, [], {}), ""
    file = file_of(module)
    text = "" if file is None else REMARKS.sub("", DOCSTRINGS.sub(r'\1""\n', file.read_text("utf-8")))
    for statement in filter(None, MARGIN.split(text)):
        if statement.startswith("@"):
            decorators += statement
        # Imports for type checks, and the module's docstring, are in no kernel.
        elif not statement.startswith(("if TYPE_CHECKING", '""')):
            keep_statement(source, decorators + statement)
            decorators = ""
    return source


def keep_statement(source: Source, statement: str) -> None:
    """Add a statement to its module."""
    if "import" in statement:
        for origin, names in IMPORTED.findall(statement):
            source.imported.update((alias or name, (origin, name)) for name, alias in RENAMED.findall(names))
    if found := DEFINED.match(statement):
        names = [found[1]]
    elif found := ASSIGNED.match(statement):
        names = WORD.findall(found[1])
    elif not statement.startswith(("from ", "import ")):
        source.nameless.append(statement)
        return
    else:
        return
    for name in names:
        source.defined.setdefault(name, []).append(statement)


def statements_of(module: str, name: str) -> list[str]:
    """Give the statements on which a name of a module depends: those that define it, and those that define no name."""
    source = source_of(module)
    return [*source.defined.get(name, ()), *source.nameless]


@cache
def named_by(name: Name) -> set[Name]:
    """Give the names to which the statements of a name refer; if they name a module, any word after a point in it."""
    (module, own), texts = name, statements_of(*name)
    source, words = source_of(module), {own}.union(*map(WORD.findall, texts))
    found = {(module, word) for word in words & source.defined.keys()}
    for origin in map(source.imported.__getitem__, words & source.imported.keys()):
        if not {origin[0], inside := ".".join(origin)}.isdisjoint(FOLDERS):
            continue
        if file_of(inside) is not None:
            members = set().union(*map(AFTER_A_POINT.findall, texts))
            found.update((inside, member) for member in members & source_of(inside).defined.keys())
        elif file_of(origin[0]) is not None:
            found.add(origin)
    return found
