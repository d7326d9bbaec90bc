"""Every Python block of guides and notebooks runs (without a GPU pandas replaces cuDF), and tables are checked.

Blocks that are called `python cuml` run on cuML if it is installed, and on its formulas if pandas replaces cuDF.
"""

import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path

import pytest

import gpu_encode
from gpu_encode.schemes import Scheme, resolve
from tests.guides import cuml_formula, nvtabular_formula
from tests.guides.libraries import ON_CUDF, require_modules

ROOT = Path(__file__).parents[2]
PATHS = {path.name: path for folder in ("docs", "examples/notebooks") for path in sorted((ROOT / folder).glob("*.md"))}
DOCUMENTS = {name: path.read_text() for name, path in PATHS.items()}
CUML = "python cuml"
TAGS = {"python", CUML}
# Blocks of commands, which the README's test runs.
BASH = "bash"
PUBLIC = {name: getattr(gpu_encode, name) for name in gpu_encode.__all__}
# Those of methods stand beside those of classes and functions.
SIGNATURES = [inspect.signature(public) for name, public in PUBLIC.items() if not name.endswith("Warning")]
PARAMETERS = {"sample_weight", *(name for signature in SIGNATURES for name in signature.parameters)}
ON_GPU = "import cudf  # without a GPU: "
# What the blocks of a document import beside cuDF.
NEEDED = {
    "billion_rows.md": ("dask",),
    "many-keys.md": ("xgboost",),
    "rapids.md": ("xgboost", "dask", "dask_cudf"),
    "sources.md": ("polars", "duckdb", "fsspec"),
    "production.md": ("duckdb", "sqlglot", "skl2onnx", "onnxruntime"),
}


def blocks(text):
    """Return the tag and the code of every fenced block."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def program(name, tags):
    """Return all runnable blocks of a document, joined: a reader would run them in the same session."""
    code = "\n".join(code for tag, code in blocks(DOCUMENTS[name]) if tag in tags)
    return code if ON_CUDF else code.replace(ON_GPU, "")


@pytest.fixture
def _libraries(monkeypatch):
    """Put the definition of cuML's formulas, which takes pandas frames, in place of cuML."""
    if not ON_CUDF:
        module = types.ModuleType("cuml.preprocessing")
        module.TargetEncoder = cuml_formula.TargetEncoder
        monkeypatch.setitem(sys.modules, "cuml", types.ModuleType("cuml"))
        monkeypatch.setitem(sys.modules, "cuml.preprocessing", module)


def run(name, tags, capsys):
    """Run a document, and compare its output with the output that it shows."""
    code = program(name, tags)
    exec(compile(code, name, "exec"), {})
    shown = re.findall(r"print\(.*# (.*)", code)
    assert capsys.readouterr().out.splitlines() == shown


# The first row of an order has none before it; Dask warns of itself where pandas is newer.
@pytest.mark.filterwarnings("ignore:.*see no rows", "ignore:.*inplace keyword")
@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_blocks_run_without_cuml(name, tmp_path, monkeypatch, capsys):
    require_modules(*NEEDED.get(name, ()))
    monkeypatch.chdir(tmp_path)
    for module in ("cuml", "cuml.preprocessing"):
        # An import of it fails.
        monkeypatch.setitem(sys.modules, module, None)
    run(name, {"python"}, capsys)


@pytest.mark.usefixtures("_libraries")
def test_blocks_run_with_cuml(tmp_path, monkeypatch, capsys):
    require_modules("cuml")
    monkeypatch.chdir(tmp_path)
    run("from-cuml.md", TAGS, capsys)


def test_a_block_says_whether_it_needs_cuml():
    needing = [(name, code) for name, text in DOCUMENTS.items() for tag, code in blocks(text) if tag == CUML]
    assert {name for name, _ in needing} == {"from-cuml.md"}
    assert all(code.startswith("# needs cuML\n") for _, code in needing)
    assert f"The {['no', 'one', 'two', 'three'][len(needing)]} blocks of code that begin" in DOCUMENTS["from-cuml.md"]


def test_every_block_runs_or_says_why_not():
    tags = [tag for text in DOCUMENTS.values() for tag, _ in blocks(text)]
    assert len(tags) > 10
    assert [tag for tag in tags if tag not in {*TAGS, BASH} and not re.fullmatch(r"python no-run \(.+\)", tag)] == []
    assert sum(tag not in {*TAGS, BASH} for tag in tags) <= 10
    for name, text in DOCUMENTS.items():
        for tag, code in blocks(text):
            if tag.startswith("python no-run"):
                compile(code, name, "exec")


def first_column(text, title):
    """Return the names in code font in the first column of the table below a title."""
    table = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")][1:]
    return [name for cell in cells for name in re.findall(r"`(\w+)", cell)]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("from-cuml.md", cuml_formula.PARAMETERS), ("from-nvtabular.md", nvtabular_formula.PARAMETERS)],
)
def test_every_parameter_of_the_peer_is_mapped(name, parameters):
    assert parameters <= set(first_column(DOCUMENTS[name], "Parameters"))


if importlib.util.find_spec("cuml") is not None:

    def test_the_recorded_parameters_are_those_of_cuml():
        encoder = importlib.import_module("cuml.preprocessing").TargetEncoder
        assert set(inspect.signature(encoder).parameters) == cuml_formula.PARAMETERS


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_parameters_named_for_this_library_exist(name):
    column = [line.split("|")[2] for line in DOCUMENTS[name].splitlines() if line.startswith("| `")]
    given = [code for cell in column for code in re.findall(r"`(\w+=[^`]*)`", cell)]
    for code in given:
        key, value = code.split("=", 1)
        assert key in PARAMETERS, code
        if key == "cv" and "(" in value:
            assert isinstance(resolve(eval(value, PUBLIC), True, 0), Scheme), code


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_links_lead_somewhere(name):
    text = DOCUMENTS[name]
    titles = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        assert (anchor in titles) if not path else (PATHS[name].parent / path).exists(), target
    for path in re.findall(r"`((?:examples|tests)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
