"""Hook of MkDocs: what the guides link to outside of docs/, such as results of benchmarks, becomes pages of the site.

In the repository links are relative paths, which hold there.  In the site they lead to a page of the same text below
repository/, or, where a file is neither Markdown nor a picture, are the file's path.
"""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
SHOWN = {".md", ".png", ".svg"}


def locate(link: str, source: Path) -> Path:
    """File that a link of a file leads to; of a folder, its README."""
    path = Path(os.path.normpath(source.parent / link))
    return path / "README.md" if (path / "README.md").exists() else path


def find_page(path: Path) -> str:
    """Where the site has a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    if name == "CHANGELOG.md":
        return "changelog.md"
    return name.removeprefix("docs/") if name.startswith("docs/") else f"repository/{name}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog, the pages that others link to, and those that these link to."""
    waiting = [Path(str(file.abs_src_path)) for file in files.documentation_pages()]
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    waiting.append(ROOT / "CHANGELOG.md")
    while waiting:
        source = waiting.pop()
        for _, link, _ in LINK.findall(source.read_text(encoding="utf-8")) if source.suffix == ".md" else ():
            path = locate(link, source)
            if path.suffix in SHOWN and path.exists() and files.get_file_from_path(find_page(path)) is None:
                page = File.generated(
                    config, find_page(path), abs_src_path=str(path), inclusion=InclusionLevel.NOT_IN_NAV
                )
                files.append(page)
                waiting.append(path)
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links to files of the repository into links to their pages, and tags of blocks into plain `python`."""
    source = Path(str(page.file.abs_src_path))

    def point(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = locate(target, source)
        if not path.exists():
            return link[0]
        if path.suffix not in SHOWN:
            return f"{text} (`{path.relative_to(ROOT).as_posix()}`)"
        return f"[{text}]({os.path.relpath(find_page(path), Path(page.file.src_uri).parent)}{anchor or ''})"

    return re.sub(r"^```python .*$", "```python", LINK.sub(point, markdown), flags=re.MULTILINE)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Leave results of benchmarks out of the search, put other files of the repository behind the guides.

    Empty cells of a table's head name nothing, so they become plain cells.  Types of the reference get back the marks
    and spaces of Python, which grouped_parameters.py has hidden from Griffe.
    """
    if page.file.src_uri.startswith("repository/benchmarks/"):
        page.meta["search"] = {"exclude": True}
    elif page.file.src_uri.startswith(("repository/", "changelog")):
        page.meta["search"] = {"boost": 0.5}
    elif page.file.src_uri.startswith("api/"):
        html = re.sub("[\u201c\u201d]", "&quot;", html).replace("\u200b", "")
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)
