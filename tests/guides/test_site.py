"""The documentation site: its reference has every public name, and its hook finds the files that guides link to."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

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


def test_the_reference_has_every_public_name_once():
    pages = "".join(page.read_text() for page in DOCS.glob("api/*.md"))
    assert sorted(re.findall(r"^::: gpu_encode\.(\w+)$", pages, re.MULTILINE)) == sorted(gpu_encode.__all__)
    exports = (DOCS / "api/exports.md").read_text()
    assert sorted(re.findall(r"^::: gpu_encode\.serve\.export\.(\w+)$", exports, re.MULTILINE)) == sorted(
        export.__all__
    )


def test_parameters_of_one_description_are_written_apart():
    pytest.importorskip("griffe")
    text = "Parameters\n----------\nX, y\n    As.\na, b : int\n    Two\n\nReturns\n-------\nu, v\n    Both"
    apart = text.replace("X, y\n", "X\n    As.\ny\n")
    assert load("grouped_parameters").write_apart(text) == apart


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
