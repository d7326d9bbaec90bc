"""Runs the tests that a change can break, nearest first: ``python -m tests.architecture.check [SINCE] [--list]``.

SINCE is a commit; by default, the commit at which the branch left `main`.  Changes without a commit count, too.

The fewer imports there are between a test and a file, the nearer is the test.  Tests with the name of the file come
first, then tests that import it, and tests of its folder.  When the time is over, the remaining tests are named, and
left to continuous integration.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import gpu_encode
from cpu_fallback.kernel_sources import IMPORTED, RENAMED
from tests.architecture.imports import ROOT, modules

# Seconds that each of the two processes may run, including its start.
SECONDS = float(os.environ.get("CHECK_SECONDS", "45"))
MOST_FILES = 24
# Test folders of each folder of the library.  Some have no test folder of their own name: the laws test the core.
ROOMS = {
    "cpu_fallback": ("cpu_fallback", "exact", "rows", "laws"),
    "cuda": ("cuda",),
    "encoders": ("encoders", "family"),
    "fitting": ("laws", "encoders"),
    "formulas": ("laws", "family", "mixed_models"),
    "schemes": ("rows", "laws", "encoders"),
    "seam": ("encoders",),
    "sums": ("laws", "exact"),
    "words": ("encoders", "family"),
}
# These tests read every module, and take a second.
OF_ALL_MODULES = tuple(f"tests/architecture/test_{name}.py" for name in ("sizes", "messages", "loops", "storage"))
# These tests have their own environment, or take minutes: `make rapids` and `make ptx`.
ELSEWHERE = ("tests/rapids/", "tests/ptx/")
# A module or a public name, written in full.
NAMED = re.compile(r"\b(?:gpu_encode|cpu_fallback|tests)(?:\.\w+)+")
HOMES = {f"gpu_encode.{name}": f"gpu_encode.{home}" for name, home in gpu_encode._HOME.items()}

BEGAN = time.monotonic()
_left: dict[str, int] = {}


@cache
def test_files() -> list[str]:
    """Return the paths of all test files, and of the helper modules that they share."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))


def module_of(path: str) -> str:
    """Return the module of a file; a file that is not Python belongs to the package of its folder."""
    parts = Path(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" or not path.endswith(".py") else parts)


@cache
def needed_by(path: Path) -> frozenset[str]:
    """Return the modules that a file names: in imports, in strings, and by the package's public names.

    Searches the text, which takes a tenth of the time of a syntax tree.
    """
    text = path.read_text()
    found = set(NAMED.findall(text))
    for source, names in IMPORTED.findall(text):
        found.update((source, *(f"{source}.{name}" for name, _ in RENAMED.findall(names))))
    found.update(HOMES[name] for name in found & HOMES.keys())
    # Every module imports the package, which loads nothing by itself.
    return frozenset(found - {"gpu_encode"})


@cache
def distances(module: str) -> dict[str, int]:
    """Count the imports between a module and all modules that need it, test files among them."""
    needed = {name: needed_by(path) for name, path in modules().items()}
    needed |= {module_of(path): needed_by(ROOT / path) for path in test_files()}
    found, reached, distance = {}, {module}, 0
    while reached:
        found.update(dict.fromkeys(reached, distance))
        reached = {name for name, needs in needed.items() if name not in found and not needs.isdisjoint(reached)}
        distance += 1
    return found


def rooms_of(path: str) -> list[str]:
    """Return the folders of tests for a changed file, the nearest first."""
    parts = Path(path).parts
    parts = parts[1:-1] if parts[0] == "gpu_encode" and len(parts) > 2 else parts[:1]
    nested = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return [f"tests/{folder}/" for folder in ROOMS.get(nested[-1], nested)]


def nearness(test: str, changed: str) -> tuple[int, ...] | None:
    """Return how near a test file is to a changed file (small: near); None if the test cannot show a fault of it."""
    size, of_library = (ROOT / test).stat().st_size, changed.startswith(("gpu_encode", "cpu_fallback"))
    if test == changed or (of_library and changed.endswith(".py") and test in OF_ALL_MODULES):
        return 0, size
    if not of_library and not changed.startswith("tests"):
        return (1, size) if Path(changed).name in (ROOT / test).read_text() else None
    distance = distances(module_of(changed)).get(module_of(test))
    folder = next((number for number, each in enumerate(rooms_of(changed)) if test.startswith(each)), None)
    if distance is None and folder is None:
        return None
    if folder is None:
        return 3 + test.startswith("tests/cuda/"), distance or 0, size
    if Path(test).stem == f"test_{Path(changed).stem}":
        return 0, 0
    return (1, folder, size) if distance == 1 else (2, folder, distance or len(modules()), size)


def tests_of(changed: Iterable[str]) -> list[str]:
    """Return the test files that a change of some files can break, the nearest first."""
    found = {}
    for test in test_files():
        if Path(test).name.startswith("test_") and not test.startswith(ELSEWHERE):
            near = [each for path in changed if (each := nearness(test, path)) is not None]
            found.update({test: min(near)} if near else {})
    return sorted(found, key=found.__getitem__)


def git(*arguments: str) -> list[str]:
    """Return the output lines of a git command."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed_since(commit: str | None) -> list[str]:
    """Return the existing files that differ from a commit, or from the point where the branch left `main`."""
    if not commit:
        known = git("for-each-ref", "--format=%(refname)", "refs/heads/main")
        commit = git("merge-base", "HEAD", known[0])[0] if known else "HEAD"
    names = git("diff", "--name-only", commit) + git("ls-files", "--others", "--exclude-standard")
    return [name for name in names if (ROOT / name).exists()]


def pytest_runtest_protocol(item: Any) -> bool | None:
    """Skip a test when time is over."""
    if time.monotonic() - BEGAN < SECONDS:
        return None
    path = item.location[0]
    _left[path] = _left.get(path, 0) + 1
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the files whose tests were skipped for lack of time."""
    for path, number in _left.items():
        terminalreporter.write_line(f"left to continuous integration: {number} tests of {path}")


def run(tests: list[str]) -> int:
    """Run test files in two processes; return 1 if a test failed, otherwise 0."""
    options = ["-q", "--no-header", "-p", "no:xdist", "-p", "tests.architecture.check", "-m", "not slow and not long"]
    shares = [share for share in (tests[::2], tests[1::2]) if share]
    command = [sys.executable, "-m", "pytest", *options]
    running = [subprocess.Popen([*command, *share], cwd=ROOT, stdout=subprocess.PIPE, text=True) for share in shares]
    for process in running:
        sys.stdout.write(process.communicate()[0])
    # Exit code 5: the marks left no test to run.
    return int(any(process.returncode not in (0, 5) for process in running))


def main() -> int:
    """Run the tests, or list their files."""
    parser = argparse.ArgumentParser(description="Run the tests that a change can break.")
    parser.add_argument("since", nargs="?", help="a commit; without it, where the branch left main")
    parser.add_argument("--list", action="store_true", help="list the files of tests, and run none")
    given = parser.parse_args()
    changed = changed_since(given.since)
    tests = tests_of(changed)
    sys.stdout.write(f"{len(changed)} files changed; {len(tests)} files of tests, the nearest {MOST_FILES} are run.\n")
    if given.list:
        sys.stdout.write("".join(f"{test}\n" for test in tests))
        return 0
    return run(tests[:MOST_FILES]) if tests else 0


if __name__ == "__main__":
    sys.exit(main())
