"""Imports go one way, and heavy libraries stay where they belong."""

import json
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from tests.architecture.imports import PACKAGES, ROOT, imports_of, modules, within

# From the ground floor up: a folder or module may import those above its line here, and itself.
LAYERS = (
    "annotations",
    "errors",
    "notices",
    "progress",
    "devices",
    "loading",
    "compilation",
    "ops",
    "cuda",
    "categories",
    "frames",
    "sums",
    "formulas",
    "schemes",
    "training",
    "fitting",
    "storage",
    "encoders",
    "factors",
    "boosting",
    "parts",
    "votes",
    "proximity",
    "tuning",
    "plots",
    "leaks",
    "datasets",
    "distributed",
    "engines",
    "export",
    "warm_up",
    "accel",
    "cli",
    "__main__",
)
PLACE = {f"gpu_encode.{name}": place for place, name in enumerate(LAYERS)}
OURS = sorted(modules())

# Which modules may import a library, at whatever time.
HOMES = {
    "numba": ("cpu_fallback.compiled", "gpu_encode.cuda.runtime"),
    "llvmlite": ("cpu_fallback.compiled",),
    "cupy": ("gpu_encode.cuda.runtime",),
    # Categories that are intervals or periods are shown as its objects; Dask shuffles its frames.
    "pandas": (
        "gpu_encode.frames",
        "gpu_encode.cli",
        "gpu_encode.categories.intervals",
        "gpu_encode.distributed.exchange",
    ),
    "polars": ("gpu_encode.frames", "gpu_encode.cli", "gpu_encode.export"),
    "narwhals": ("gpu_encode.frames", "gpu_encode.cli"),
    "cudf": ("gpu_encode.frames", "gpu_encode.cli"),
    "dask": ("gpu_encode.distributed", "gpu_encode.cli"),
    # Arrow arrays hold the categories, in memory and in files.
    "pyarrow": (
        "gpu_encode.frames",
        "gpu_encode.cli",
        "gpu_encode.storage",
        "gpu_encode.datasets",
        "gpu_encode.distributed.exchange",
        "gpu_encode.distributed.place_tasks",
        "gpu_encode.distributed.shuffle",
        "gpu_encode.engines",
        "gpu_encode.export",
        "gpu_encode.categories",
        "gpu_encode.warm_up",
    ),
    "pyspark": ("gpu_encode.engines.spark", "gpu_encode.engines.spark_shuffle"),
    "ray": ("gpu_encode.engines.ray", "gpu_encode.engines.ray_shuffle"),
    "fsspec": ("gpu_encode.datasets.stores",),
    "matplotlib": ("gpu_encode.plots",),
    "sqlglot": ("gpu_encode.export.sql",),
    "onnx": ("gpu_encode.export",),
    "skl2onnx": ("gpu_encode.export.onnx_pipelines",),
    "rich": ("gpu_encode.cli", "gpu_encode.progress"),
    # Numba pickles machine code, and Dask all that its tasks are given; models are never pickled.
    "pickle": ("cpu_fallback.compiled.kernel_files", "gpu_encode.distributed.exchange"),
}
HEAVY = ("numba", "cupy", "cudf", "dask", "distributed", "pandas", "polars", "pyarrow", "narwhals", "sklearn", "scipy")


def unit(module):
    """Give the module, or the package, that a module of gpu_encode belongs to."""
    return ".".join(module.split(".")[:2])


def test_every_module_has_a_layer():
    units = {unit(module) for module in OURS if within(module, "gpu_encode") and module != "gpu_encode"}
    assert units == set(PLACE), "LAYERS must say where each module belongs"


@pytest.mark.parametrize("module", [module for module in OURS if "." in module and within(module, "gpu_encode")])
def test_imports_go_down(module):
    for imported in imports_of(module):
        if unit(imported.module) in PLACE:
            assert PLACE[unit(imported.module)] <= PLACE[unit(module)], f"{module} imports {imported.module}"


def importers(library, of=PACKAGES, without=(), times=(True, False)):
    """Give the modules of some packages, but for others, that import a library, at once or when it is needed."""
    outside = [name for name in OURS if within(name, *of) and not within(name, *without)]
    uses = {name: [each for each in imports_of(name) if within(each.module, library)] for name in outside}
    return [name for name, imports in uses.items() if any(each.at_once in times for each in imports)]


def test_the_backend_knows_nothing_above_the_seam():
    assert importers("gpu_encode", of=["cpu_fallback"]) == []


def test_the_numpy_backend_does_not_know_the_compiled_one():
    assert importers("cpu_fallback.compiled", of=["cpu_fallback"], without=["cpu_fallback.compiled"]) == []


def test_the_backend_is_reached_through_the_seam_alone():
    # The ground floor: types that cross the seam, exact numbers in tables, formulas as backends know them, properties.
    names = ("types", "cached", "row_numbers", "exact", "elementary", "fused_rules", "decay")
    ground = {f"cpu_fallback.{name}" for name in names}
    allowed = {
        "gpu_encode.ops": {"cpu_fallback.memory"},
        # Where kernels lie, and whether they do, is known without loading them.
        "gpu_encode.compilation": {"cpu_fallback.kernel_folder"},
        "gpu_encode.warm_up": {"cpu_fallback.kernel_folder"},
        # Free memory is given back where there is a limit of it.
        "gpu_encode.datasets.memory": {"cpu_fallback.memory_pool"},
        # All numbers that users set in the environment are read alike.
        "gpu_encode.datasets.formats": {"cpu_fallback.settings"},
    }
    for module in OURS:
        # The backends are twins: the one on a GPU uses scalars of the compiled one as they are.
        if within(module, "gpu_encode") and not within(module, "gpu_encode.cuda"):
            reached = {each.module for each in imports_of(module) if within(each.module, "cpu_fallback")}
            assert reached <= ground | allowed.get(module, set()), module


def test_the_cuda_backend_knows_the_seam_and_the_other_backends_alone():
    known = ("cpu_fallback", "gpu_encode.cuda", "gpu_encode.errors", "gpu_encode.ops")
    for module in OURS:
        if within(module, "gpu_encode.cuda"):
            reached = {each.module for each in imports_of(module)}
            ours = [each for each in reached if each.startswith(("gpu_encode.", "cpu_fallback."))]
            assert not [each for each in ours if not within(each, *known)], module


def test_the_cuda_backend_is_loaded_when_it_is_resolved():
    assert importers("gpu_encode.cuda", of=["gpu_encode"], without=["gpu_encode.cuda"]) == []


def test_no_module_imports_itself_by_a_detour():
    graph = {
        module: {each.module for each in imports_of(module) if each.at_once and each.module in modules()} - {module}
        for module in OURS
    }
    # A package is loaded before its modules, which it imports: that is no detour.
    for module, needed in graph.items():
        graph[module] = {each for each in needed if not within(module, each)}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("library", HOMES)
def test_libraries_stay_at_home(library):
    assert importers(library, without=HOMES[library]) == []


@pytest.mark.parametrize("library", ["numba", "cupy", "cudf", "dask", "pandas", "polars", "pyspark", "ray"])
def test_heavy_libraries_are_imported_where_they_are_used(library):
    assert importers(library, without=["cpu_fallback.compiled", "gpu_encode.cuda.runtime"], times=[True]) == []


def loaded_by(code):
    """Run Python code in a fresh interpreter; give the heavy libraries that it loaded."""
    program = f"{code}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import gpu_encode; gpu_encode.__version__; dir(gpu_encode)") == set()


def test_public_names_load_what_they_need():
    assert not {"numba", "cupy", "cudf", "dask", "distributed"} & loaded_by("from gpu_encode import *")
    assert not {"numba", "polars"} & loaded_by(
        "from gpu_encode import TargetEncoder\n"
        "TargetEncoder().fit_transform([[value % 3] for value in range(30)], [value % 2 for value in range(30)])"
    )


def test_the_seam_loads_the_compiled_backend_for_many_rows_alone():
    many = "import os; os.environ['GPU_ENCODE_COMPILE'] = 'now'\nfrom gpu_encode import ops\nops.resolve({rows})"
    assert "numba" not in loaded_by(many.format(rows="ops.LOADING_ROWS[ops.COMPILED] - 1"))
    assert "numba" in loaded_by(many.format(rows="ops.LOADING_ROWS[ops.COMPILED]"))
