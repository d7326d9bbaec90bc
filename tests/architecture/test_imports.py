"""Imports go one way, and heavy libraries stay where they belong."""

import json
import subprocess
import sys
from graphlib import TopologicalSorter

from tests.architecture.imports import PACKAGES, ROOT, imports_of, modules, within

# From the lowest layer up: a folder or module may import itself and the entries above its line here.
# The core, the lowest first, ...
CORE = ("words", "seam", "cuda", "tables", "sums", "formulas", "schemes", "fitting", "storage", "encoders")
# ... guests, which import the core and never one another, ...
GUESTS = ("methods", "scale", "serve", "study")
# ... and the highest layer: calls that need every kernel, addresses of guests, and the command line.
DOORS = ("warm_up", "accel", "engines", "export", "parts", "plots", "cli", "__main__")
LAYERS = (*CORE, *GUESTS, *DOORS)
RANK = {f"gpu_encode.{name}": rank for rank, name in enumerate(LAYERS)}
OURS = sorted(modules())

# The modules that may import a library, when they are loaded or later.
HOMES = {
    "numba": ("cpu_fallback.compiled", "gpu_encode.cuda.runtime"),
    "llvmlite": ("cpu_fallback.compiled",),
    "cupy": ("gpu_encode.cuda.runtime",),
    # Categories that are intervals or periods are shown as pandas objects; Dask shuffles pandas frames.
    "pandas": (
        "gpu_encode.tables.frames",
        "gpu_encode.cli",
        "gpu_encode.tables.categories.intervals",
        "gpu_encode.scale.dask.exchange",
    ),
    "polars": ("gpu_encode.tables.frames", "gpu_encode.cli", "gpu_encode.serve.export"),
    "narwhals": ("gpu_encode.tables.frames", "gpu_encode.cli"),
    "cudf": ("gpu_encode.tables.frames", "gpu_encode.cli"),
    "dask": ("gpu_encode.scale.dask", "gpu_encode.cli"),
    # Arrow arrays hold the categories, in memory and in files.
    "pyarrow": (
        "gpu_encode.tables.frames",
        "gpu_encode.cli",
        "gpu_encode.storage",
        "gpu_encode.scale.files",
        "gpu_encode.scale.dask.exchange",
        "gpu_encode.scale.dask.partitions",
        "gpu_encode.scale.dask.shuffle",
        "gpu_encode.scale.engines",
        "gpu_encode.serve.export",
        "gpu_encode.tables.categories",
        "gpu_encode.warm_up",
    ),
    "pyspark": (
        "gpu_encode.scale.engines.spark",
        "gpu_encode.scale.engines.spark_daemon",
        "gpu_encode.scale.engines.spark_tables",
        "gpu_encode.scale.engines.spark_estimator",
    ),
    "ray": ("gpu_encode.scale.engines.ray", "gpu_encode.scale.engines.ray_preprocessor"),
    "fsspec": ("gpu_encode.scale.files.stores",),
    "matplotlib": ("gpu_encode.study.plots",),
    "sqlglot": ("gpu_encode.serve.export.sql",),
    "onnx": ("gpu_encode.serve.export",),
    "skl2onnx": ("gpu_encode.serve.export.onnx_pipelines",),
    "rich": ("gpu_encode.cli", "gpu_encode.words.progress"),
    # Numba pickles machine code, and Dask everything that its tasks get; models are never pickled.
    "pickle": ("cpu_fallback.compiled.kernel_files", "gpu_encode.scale.dask.exchange"),
}
HEAVY = ("numba", "cupy", "cudf", "dask", "distributed", "pandas", "polars", "pyarrow", "narwhals", "sklearn", "scipy")


def unit(module):
    """Return the module or package that a module of gpu_encode belongs to."""
    return ".".join(module.split(".")[:2])


def test_every_module_has_a_layer():
    units = {unit(module) for module in OURS if within(module, "gpu_encode") and module != "gpu_encode"}
    assert units == set(RANK), "LAYERS must say where each module belongs"


def test_imports_go_down_and_guests_never_import_one_another():
    offenders = []
    for module in [module for module in OURS if "." in module and within(module, "gpu_encode")]:
        own = unit(module)
        for target in {unit(imported.module) for imported in imports_of(module)} & set(RANK) - {own}:
            between_guests = {own, target} <= {f"gpu_encode.{name}" for name in GUESTS}
            if RANK[target] > RANK[own] or between_guests:
                offenders.append(f"{module} imports {target}")
    assert offenders == []


def importers(library, of=PACKAGES, without=(), times=(True, False)):
    """Return the modules of `of`, except those of `without`, that import a library, at once or when they need it."""
    outside = [name for name in OURS if within(name, *of) and not within(name, *without)]
    uses = {name: [each for each in imports_of(name) if within(each.module, library)] for name in outside}
    return [name for name, imports in uses.items() if any(each.at_once in times for each in imports)]


def test_the_backend_knows_nothing_above_the_seam():
    assert importers("gpu_encode", of=["cpu_fallback"]) == []


def test_the_numpy_backend_does_not_know_the_compiled_one():
    assert importers("cpu_fallback.compiled", of=["cpu_fallback"], without=["cpu_fallback.compiled"]) == []


def test_the_backend_is_reached_through_the_seam_alone():
    # The lowest layer: types that cross the seam, exact numbers in tables, formulas as backends know them, properties.
    names = ("types", "cached", "row_numbers", "exact", "elementary", "fused_rules", "decay")
    ground = {f"cpu_fallback.{name}" for name in names}
    allowed = {
        "gpu_encode.seam.ops": {"cpu_fallback.memory"},
        # The folder of compiled kernels, and whether it exists, is known without loading them.
        "gpu_encode.seam.compilation": {"cpu_fallback.kernel_folder"},
        "gpu_encode.warm_up": {"cpu_fallback.kernel_folder"},
        # Free memory is returned to the system if there is a memory limit.
        "gpu_encode.scale.files.memory": {"cpu_fallback.memory_pool"},
        # All numbers in environment variables are read in the same way.
        "gpu_encode.scale.files.text": {"cpu_fallback.settings"},
    }
    for module in OURS:
        # The GPU backend uses scalar functions of the compiled backend as they are.
        if within(module, "gpu_encode") and not within(module, "gpu_encode.cuda"):
            reached = {each.module for each in imports_of(module) if within(each.module, "cpu_fallback")}
            assert reached <= ground | allowed.get(module, set()), module


def test_the_cuda_backend_knows_the_seam_and_the_other_backends_alone():
    known = ("cpu_fallback", "gpu_encode.cuda", "gpu_encode.words.errors", "gpu_encode.seam.ops")
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
    # A package is loaded before the modules that it imports: that is no detour.
    for module, needed in graph.items():
        graph[module] = {each for each in needed if not within(module, each)}
    assert list(TopologicalSorter(graph).static_order())


def test_libraries_stay_at_home():
    abroad = {library: importers(library, without=homes) for library, homes in HOMES.items()}
    assert {library: names for library, names in abroad.items() if names} == {}


def test_heavy_libraries_are_imported_where_they_are_used():
    libraries = ("numba", "cupy", "cudf", "dask", "pandas", "polars", "pyspark", "ray")
    # Classes of an engine's own kind are loaded by the names of `gpu_encode.engines` alone.
    engines = ("spark_estimator", "spark_daemon", "ray_preprocessor")
    homes = (
        "cpu_fallback.compiled",
        "gpu_encode.cuda.runtime",
        *(f"gpu_encode.scale.engines.{name}" for name in engines),
    )
    at_once = {library: importers(library, without=homes, times=[True]) for library in libraries}
    assert {library: names for library, names in at_once.items() if names} == {}


def loaded_by(code):
    """Run Python code in a fresh interpreter; return the heavy libraries that it loaded."""
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
    many = "import os; os.environ['GPU_ENCODE_COMPILE'] = 'now'\nfrom gpu_encode.seam import ops\nops.resolve({rows})"
    assert "numba" not in loaded_by(many.format(rows="ops.LOADING_ROWS[ops.COMPILED] - 1"))
    assert "numba" in loaded_by(many.format(rows="ops.LOADING_ROWS[ops.COMPILED]"))
