"""Every backend implements the protocol: the same public names and signatures, in files of the same names."""

import ast
import inspect
from pathlib import Path

import pytest

import cpu_fallback
from gpu_encode.seam.ops import DeviceOps, FusedOps, Ops

ROOT = Path(__file__).parents[2]
ATTRIBUTES = ["TILE", "xp"]


def functions_of(protocol):
    members = vars(protocol).items()
    return sorted(name for name, member in members if inspect.isfunction(member) and not name.startswith("_"))


OPERATIONS = functions_of(Ops)
# Members of a backend beside the operations: fused passes or None, and for a GPU its arrays and text.
BESIDE = {
    "cpu_fallback": [],
    "cpu_fallback/compiled": ["fused"],
    "gpu_encode/cuda": [*functions_of(DeviceOps), "fused", "strings"],
}
# The third backend's names are read from its source: importing it would load libraries that not every machine has.
PACKAGES = {name: ROOT / name for name in ("cpu_fallback", "cpu_fallback/compiled", "gpu_encode/cuda")}


def homes(package, file="__init__.py"):
    """Return the module of each public name of a backend, or of each of its fused passes."""
    tree = ast.parse((PACKAGES[package] / file).read_text())
    return {alias.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def parameters(package, name, file="__init__.py"):
    """Return the names of a function's parameters as the source has them: the positional-only ones, and the others."""
    path = ROOT / (homes(package, file)[name].replace(".", "/") + ".py")
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    arguments = next(node for node in functions if node.name == name).args
    return [parameter.arg for parameter in arguments.posonlyargs], [parameter.arg for parameter in arguments.args]


def protocol_parameters(name, protocol=Ops):
    """Names of the parameters in the protocol, which are by position alone."""
    return list(inspect.signature(getattr(protocol, name)).parameters)[1:], []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_backend_offers_the_operations_and_nothing_else(package):
    assert sorted(homes(package)) == sorted([*OPERATIONS, *ATTRIBUTES, *BESIDE[package]])


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("package", PACKAGES)
def test_signatures_are_those_of_the_protocol(package, name):
    assert parameters(package, name) == protocol_parameters(name)


@pytest.mark.parametrize("name", [*OPERATIONS, *ATTRIBUTES])
def test_an_operation_lives_in_files_of_one_name(name):
    modules = [homes(package)[name] for package in ("cpu_fallback/compiled", "gpu_encode/cuda")]
    # A backend may use the NumPy definition as it is.
    rewritten = {module.rsplit(".", 1)[-1] for module in modules if module != homes("cpu_fallback")[name]}
    assert len(rewritten) <= 1


@pytest.mark.parametrize("name", functions_of(FusedOps))
def test_fused_passes_are_those_of_the_protocol(name):
    # Objects lie on the host, and steps row after row, or merge after merge, are no work for many threads: a GPU has no
    # pass for them.  What a conjunction adds, what sums become with age, and sums of subsets are array expressions
    # there.
    on_cpu = (
        "descend_rows",
        "conjunction_sums",
        "conjunction_gains",
        "score_conjunctions",
        "encodings_by_age",
        "fold_sums",
        "log_odds_moments",
        "merge_pairs",
        "seen_from",
        "sort_codes",
    )
    packages = ["cpu_fallback/compiled", "gpu_encode/cuda"]
    packages = packages[:1] if name in on_cpu else packages
    for package in packages:
        assert parameters(package, name, "fused.py") == protocol_parameters(name, FusedOps)
    assert cpu_fallback.fused is None
