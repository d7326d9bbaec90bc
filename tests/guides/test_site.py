"""The documentation site: its reference has every public name, and its hook finds the files that guides link to."""

import importlib.util
import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import gpu_encode
from gpu_encode.serve import export

pytestmark = pytest.mark.host
pytest.importorskip("mkdocs")
DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hook():
    return load("repository_pages")


@pytest.fixture(scope="module")
def pictures():
    pytest.importorskip("matplotlib")
    return load("draw_pictures")


def test_the_reference_has_every_public_name_once():
    pages = "".join(page.read_text() for page in DOCS.glob("api/*.md"))
    assert sorted(re.findall(r"^::: gpu_encode\.(\w+)$", pages, re.MULTILINE)) == sorted(gpu_encode.__all__)
    exports = (DOCS / "api/exports.md").read_text()
    assert sorted(re.findall(r"^::: gpu_encode\.serve\.export\.(\w+)$", exports, re.MULTILINE)) == sorted(
        export.__all__
    )


def test_pages_show_every_picture_that_is_drawn(pictures):
    drawn = dict(pictures.draw_all())
    shown = [name for page in DOCS.glob("*.md") for name in re.findall(r"\(pictures/([\w-]+)\.svg\)", page.read_text())]
    assert {*shown} == {*drawn} == {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    ids = [each for picture in drawn.values() for each in re.findall(r' id="([^"]+)"', picture)]
    assert len({*ids}) == len(ids) > 0
    for picture in drawn.values():
        ElementTree.fromstring(picture)
        themed = picture.replace(pictures.INK, "").replace(pictures.PAPER, "")
        assert not re.search("#(fff|000)", themed)


def test_the_first_page_shows_what_its_code_prints(pictures):
    areas = [re.search(r"AUC ([\d.]+)", picture)[1] for _, picture in pictures.draw_leak()]
    page = (DOCS / "index.md").read_text()
    assert re.findall(r"print\(.*# (.*)", page) == [areas[1], areas[0]]
    assert re.findall(r"!\[.*with an area (?:under the curve )?of ([\d.]+)\]", page) == areas
    for name, picture in pictures.draw_leak():
        assert (DOCS / f"pictures/{name}.svg").read_text() == picture


def test_a_picture_stands_in_its_page_with_its_description(pictures):
    files = SimpleNamespace(get_file_from_path={"pictures/leak.svg": SimpleNamespace(content_string="<svg />")}.get)
    html = pictures.on_page_content('<img alt="Two" src="../pictures/leak.svg" />', files)
    assert html == '<svg class="picture" role="img" aria-label="Two" />'


@pytest.mark.parametrize(
    ("path", "search"),
    [
        ("repository/benchmarks/results/x.md", {"exclude": True}),
        ("repository/examples/x.md", {"boost": 0.5}),
        ("files.md", None),
    ],
)
def test_the_search_leaves_out_results_of_benchmarks(hook, path, search):
    page = SimpleNamespace(file=SimpleNamespace(src_uri=path), meta={})
    assert hook.on_page_content("<th></th><th>a</th>", page) == "<td></td><th>a</th>"
    assert page.meta.get("search") == search


def test_parameters_of_one_description_are_written_apart():
    pytest.importorskip("griffe")
    text = "Parameters\n----------\nX, y\n    As.\na, b : int\n    Two\n\nReturns\n-------\nu, v\n    Both"
    apart = text.replace("X, y\n", "X\n    As.\ny\n")
    assert load("grouped_parameters").write_apart(text) == apart


def test_errors_of_one_description_are_written_apart():
    pytest.importorskip("griffe")
    apart = load("grouped_parameters").write_apart("Raises\n------\nValueError, TypeError\n    For bad input.\n")
    assert apart == "Raises\n------\nValueError\n    For bad input.\nTypeError\n    For bad input.\n"


def test_marks_of_references_are_markdown():
    griffe = pytest.importorskip("griffe")
    text = "By XXH64 [1]_ of `x[0]`.\n\nReferences\n----------\n.. [1] Collet\n"
    shown = griffe.Function("f", docstring=griffe.Docstring(text))
    load("grouped_parameters").GroupedParameters().on_object(obj=shown)
    assert shown.docstring.value == text.rstrip().replace("[1]_", "[1]").replace(".. [1]", "[1]")


def test_names_of_classes_are_links():
    pytest.importorskip("griffe")
    text = "As in `KFold`, `Ordered`, `Other`.\n\nSee Also\n--------\nTargetEncoder : `x`.\nKFold, Two : Both.\n"
    kfold, ordered, target = (f"[`{name}`][gpu_encode.{name}]" for name in ("KFold", "Ordered", "TargetEncoder"))
    linked = f"As in {kfold}, `Ordered`, `Other`.\n\nSee Also\n--------\n{target} : `x`.\nKFold, Two : Both.\n"
    assert load("grouped_parameters").link_classes(text, "Ordered") == linked
    assert ordered in load("grouped_parameters").link_classes(text, "KFold")


def test_types_are_shown_as_they_stand():
    pytest.importorskip("griffe")
    text = (
        'Parameters\n----------\na : {"x", "y"}, float or list, default="x"\n    "x": it.\nb : "z" or int, optional\n'
    )
    shown = text.replace('{"x", "y"}, ', "\u201cx\u201d, \u200b\u201cy\u201d, \u200b").replace('"z"', "\u201cz\u201d")
    assert load("grouped_parameters").quote_types(text) == shown


def test_the_reference_shows_marks_that_can_be_copied(hook):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="api/encoders.md"), meta={})
    shown = hook.on_page_content("<code>\u201cx\u201d, \u200bint</code>", page)
    assert shown == "<code>&quot;x&quot;, int</code>"


def test_links_have_titles_and_no_names_of_files():
    pages = [*DOCS.rglob("*.md")]
    assert len(pages) > 40
    assert [(page.name, name) for page in pages for name in re.findall(r"\[([\w-]+\.md)\]\(", page.read_text())] == []


@pytest.mark.parametrize("folder", ["docs", "benchmarks", "examples", "."])
def test_headings_skip_no_level(folder):
    """Readers who hear a page go from heading to heading by their levels."""
    root = DOCS.parent / folder
    pages = [*(root.glob("*.md") if folder == "." else root.rglob("*.md"))]
    assert pages
    skipped = []
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        levels = [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]
        skipped += [page.name for one, next_one in pairwise(levels) if next_one > one + 1]
    assert skipped == []


def table(*rows):
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


@pytest.mark.parametrize(
    ("column", "right"),
    [
        (["ms", "1,201", "0.07", ""], True),
        (["time", "4.8 min", "24 s", "-"], True),
        (["change", "+0.0060", "<strong>-3</strong>", "1e9"], True),
        (["size", "2 GiB", "3 %", "25%"], True),
        (["a", "4", "not run", "5"], False),
        (["a", "2 (7)", "3 (8)", "4 (9)"], False),
        (["a", "", "-", ""], False),
        (["a", "10 words of text", "2", "3"], False),
    ],
)
def test_columns_of_numbers_stand_at_the_right(column, right):
    given = table(*([f"row {cell}", cell] for cell in column))
    at_right = re.findall('<td style="text-align: right;">(.*?)</td>', load("fit_tables").on_page_content(given))
    assert at_right == (column if right else [])


def test_only_long_code_of_tables_may_break():
    fit = load("fit_tables").on_page_content
    short, long = "<code>plan(x=1)</code>", "<code>CUPY_CUDA_PER_THREAD(stream=1)</code>"
    broken = long.replace("_", "_<wbr>").replace("(", "(<wbr>").replace("=", "=<wbr>")
    assert fit(f"<p>{long}</p>{table([short, long])}") == f"<p>{long}</p>{table([short, broken])}"


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("[a](methods.md#recipes)", "[a](../methods.md#recipes)"),
        ("[a](../ARCHITECTURE.md)", "[a](../repository/ARCHITECTURE.md)"),
        ("[a](../examples)", "[a](../repository/examples/README.md)"),
        ("[a](../CHANGELOG.md)", "[a](../changelog.md)"),
        ("[a](../Makefile)", "a (`Makefile`)"),
        ("[a](nowhere.md) encoders[0](x)", "[a](nowhere.md) encoders[0](x)"),
        ("[a](https://example.org/x.md) [b](#c)", "[a](https://example.org/x.md) [b](#c)"),
        ("```python no-run (needs a GPU)\n```", "```python\n```"),
    ],
)
def test_links_out_of_the_guides_lead_to_pages(hook, link, found):
    page = SimpleNamespace(file=SimpleNamespace(abs_src_path=DOCS / "guide.md", src_uri="below/guide.md"))
    assert hook.on_page_markdown(link, page) == found


@pytest.fixture(scope="module")
def reference():
    pytest.importorskip("mkdocs")
    return load("reference_pages")


def test_each_listed_class_has_a_page_in_the_navigation(reference):
    nav = {"Reference": [{"Encoders": "api/encoders.md"}, {"Schemes": "api/schemes.md"}]}
    ((first, second),) = reference.place(nav).values()
    assert second == {"Schemes": "api/schemes.md"}
    everything, *pages = first["Encoders"]
    assert everything == {"All encoders": "api/encoders.md"}
    named = re.findall(r"^::: .*\.(\w+)$", (DOCS / "api/encoders.md").read_text(), re.MULTILINE)
    assert pages == [f"api/{name}.md" for name in named]


def test_the_list_has_the_first_sentence_of_each_class(reference):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="api/encoders.md"))
    lines = reference.on_page_markdown((DOCS / "api/encoders.md").read_text(), page).splitlines()
    assert "| [`CountEncoder`][gpu_encode.CountEncoder] | Encode categories by how often they occur in" in str(lines)
    assert not any(line.startswith((":::", "    ")) for line in lines)
    assert reference.on_page_markdown("text", SimpleNamespace(file=SimpleNamespace(src_uri="tables.md"))) == "text"


@pytest.mark.parametrize(
    ("name", "shared", "own"),
    [
        ("CatBoostEncoder", {"fit", "draw"}, set()),
        ("OrdinalEncoder", {"fit", "transform"}, {"inverse_transform", "draw"}),
    ],
)
def test_methods_that_TargetEncoder_describes_are_linked(reference, name, shared, own):
    linked = set(re.findall(r"\[gpu_encode\.TargetEncoder\.(\w+)\]", reference.list_methods(f"gpu_encode.{name}")))
    assert shared <= linked
    assert not own & linked
    assert reference.list_methods("gpu_encode.TargetEncoder") == ""
    assert reference.list_methods("gpu_encode.scale.engines.DistributedEncoder") == ""
