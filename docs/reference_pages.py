"""Hook of MkDocs: each class of the reference that has many parameters gets a page of its own; its list is a table."""

import inspect
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import gpu_encode

ROOT = Path(__file__).parents[1]
LISTS = {"api/encoders.md": "All encoders", "api/estimators.md": "All estimators"}
# A class, and the options of its line.
LISTED = re.compile(r"^::: (\S+)(?:\n    options:((?:\n      .+)*))?", re.MULTILINE)


def find_listed(page: str) -> list[tuple[str, str, str]]:
    """Give the path of each class of a list, the options of its line, and the page that it gets."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [(path, options, f"api/{path.rsplit('.', 1)[-1]}.md") for path, options in LISTED.findall(text)]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages below the list that names them."""
    config.nav = [place(entry) for entry in config.nav or []]
    return config


def place(entry: Any) -> Any:
    """Turn each list of the navigation into a section of its pages."""
    if not isinstance(entry, dict):
        return entry
    ((title, target),) = entry.items()
    if isinstance(target, list):
        return {title: [place(below) for below in target]}
    if target in LISTS:
        return {title: [{LISTS[target]: target}, *(page for _, _, page in find_listed(target))]}
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name in LISTS:
        for path, options, page in find_listed(name):
            text = f"::: {path}\n    options:\n      heading_level: 1{options}\n"
            files.append(File.generated(config, page, content=text + list_methods(path)))
    return files


def list_methods(path: str) -> str:
    """Give a table of the methods that a class shares with TargetEncoder, whose page describes them."""
    package, _, name = path.rpartition(".")
    if package != "gpu_encode":
        return ""
    shared = []
    for method, function in inspect.getmembers(getattr(gpu_encode, name), inspect.isfunction):
        ours = function.__module__.startswith("gpu_encode.") and not method.startswith("_")
        if ours and name != "TargetEncoder" and getattr(gpu_encode.TargetEncoder, method, None) is function:
            shared.append((f"[`{method}`][gpu_encode.TargetEncoder.{method}]", str(inspect.getdoc(function))))
    return "\n## Shared methods\n\n" + tabulate("method", shared) if shared else ""


def tabulate(title: str, described: list[tuple[str, str]]) -> str:
    """Give a table of names and of the first sentences of their docstrings."""
    sentences = [(name, " ".join(text.partition("\n\n")[0].split())) for name, text in described]
    rows = [f"| {name} | {sentence} |" for name, sentence in sentences]
    return "\n".join([f"| {title} | what it does |", "|---|---|", *rows, ""])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put a table of names and first sentences where a list has its classes."""
    if page.file.src_uri not in LISTS:
        return markdown
    package = griffe.load("gpu_encode", search_paths=[ROOT])
    described = []
    for path, _, _ in find_listed(page.file.src_uri):
        docstring = package[path.removeprefix("gpu_encode.")].docstring
        described.append((f"[`{path.rsplit('.', 1)[-1]}`][{path}]", docstring.value))
    first = LISTED.search(markdown)
    return markdown[: first.start()] + tabulate("class", described) if first else markdown
