"""A new smoothing must be added to several files: if one is forgotten, these tests fail."""

import inspect
import re
from pathlib import Path

import pytest

import gpu_encode
from cpu_fallback import fused_rules
from gpu_encode.formulas.smoothing import Smoothing, resolve

ROOT = Path(__file__).parents[2]
# The formulas that backends compute in one pass, in the order of their numbers.
KINDS = re.search(r"^(PLAIN, .*?) = 0, 1", Path(fused_rules.__file__).read_text(), re.M).group(1).split(", ")
PUBLIC = [
    name
    for name in gpu_encode.__all__
    if inspect.isclass(value := getattr(gpu_encode, name)) and issubclass(value, Smoothing)
]


def test_kernels_in_cuda_number_the_formulas_alike():
    assert [getattr(fused_rules, kind) for kind in KINDS] == [*range(len(KINDS))]
    source = (ROOT / "gpu_encode/cuda/raw/order.cuh").read_text()
    assert re.search(r"enum \{ (PLAIN.*?) \}", source).group(1).split(", ") == KINDS


# The plain mean is the remaining case, and m-estimates have their own kernels.
@pytest.mark.parametrize("kind", KINDS[2:])
@pytest.mark.parametrize("file", ["closed_forms.py", "raw/smoothing.cuh"])
def test_a_gpu_has_each_formula(file, kind):
    # For an unknown number the kernel takes the plain mean.
    assert re.search(rf"\b{kind}\b", (ROOT / "gpu_encode/cuda" / file).read_text())


@pytest.mark.parametrize(
    "path", ["docs/smoothing.md", "docs/command-line.md", "docs/api/smoothing.md", "tests/laws/every_output.py"]
)
def test_public_smoothings_are_named(path):
    text = (ROOT / path).read_text()
    assert [name for name in PUBLIC if not re.search(rf"\b{name}\b", text)] == []


def test_users_are_told_of_all_smoothings():
    with pytest.raises(ValueError, match="smooth") as refused:
        resolve("none")
    for text in (str(refused.value), gpu_encode.TargetEncoder.__doc__):
        assert [name for name in PUBLIC if name not in text] == []
