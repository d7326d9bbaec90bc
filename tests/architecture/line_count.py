"""Counts the lines of the project's Python: ``python -m tests.architecture.line_count [FOLDER]``.

FOLDER is a checkout, by default this one; files that git does not track are left out.

- lines: all lines.
- code: lines that are not blank, not only a comment, and not in a docstring.
- scored: the number of all lines minus blank lines, minus comment lines, minus lines of docstrings.  A blank line in a
  docstring is subtracted twice, so this number is a little below "code".  The project's goal for its size uses it.
"""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(source: ast.Module) -> set[int]:
    """Give the numbers, from one, of the lines in docstrings."""
    numbers: set[int] = set()
    for node in ast.walk(source):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            numbers.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return numbers


def count_lines(source: str) -> Counter[str]:
    """Count the lines of one file in the three ways."""
    lines = source.splitlines()
    documented = docstring_lines(ast.parse(source))
    left_out = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    return Counter(
        lines=len(lines),
        code=len(lines) - len(left_out | documented),
        scored=len(lines) - len(left_out) - len(documented),
    )


def tracked_files(root: Path) -> list[Path]:
    """List the Python files that git tracks and that are there."""
    command = ["git", "-C", str(root), "ls-files", "-z", "*.py"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [root / name for name in listed.split("\0") if name and (root / name).exists()]


def count_folders(root: Path) -> dict[str, Counter[str]]:
    """Count the lines of each folder of the checkout."""
    folders: dict[str, Counter[str]] = {}
    for path in tracked_files(root):
        folders.setdefault(path.relative_to(root).parts[0], Counter()).update(count_lines(path.read_text()))
    return folders


def table(folders: dict[str, Counter[str]]) -> str:
    """Write a line for each folder, the longest first, and their total."""
    rows = sorted(folders.items(), key=lambda row: -row[1]["scored"])
    rows.append(("total", sum(folders.values(), Counter())))
    header = f"{'folder':20}{'lines':>10}{'code':>10}{'scored':>10}"
    return "\n".join([header, *(f"{name:20}{n['lines']:>10,}{n['code']:>10,}{n['scored']:>10,}" for name, n in rows)])


if __name__ == "__main__":
    sys.stdout.write(table(count_folders(Path(sys.argv[1]) if sys.argv[1:] else ROOT)) + "\n")
