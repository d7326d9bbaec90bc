"""The kernels that are compiled beforehand are all that the family needs, and the command names their folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_encode import warm_up
from gpu_encode.cli import main
from gpu_encode.seam import compilation

pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="no kernels")]

# A separate process, in which no other test has needed a kernel.
NEEDED = """
import json, sys, warnings
warnings.simplefilter("ignore")
from numba.core.dispatcher import Dispatcher
from gpu_encode import warm_up
from gpu_encode.seam.ops import use_backend

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("cpu_fallback.compiled")]
    kernels = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    # A part is compiled with every kernel that calls it; called by Python, it is a kernel by itself.
    kernels = {getattr(kernel, "as_kernel", kernel) for kernel in kernels} - {None}
    return {(kernel.py_func.__name__, str(types)) for kernel in kernels for types in kernel.signatures}

assert warm_up.compile_all()
before = compiled()
from tests.family.members import MEMBERS, ROWS, WEIGHTS
with use_backend("compiled"):
    for make, y in MEMBERS.values():
        for weights in (None, WEIGHTS):
            encoder = make()
            encoder.fit_transform(ROWS, y, sample_weight=weights)
            encoder.transform(ROWS)
    import gpu_encode
    from tests.family.members import SOLD
    columns = ROWS[["city", "zip"]]
    for name in sorted(gpu_encode.__all__):
        kind = getattr(gpu_encode, name)
        if name.endswith(("Encoder", "Classifier", "Regressor")) and name != "GradientEncoder":
            kind().fit(columns, SOLD)
    gpu_encode.FactorizationEncoder(2, solver="sgd").fit(columns, SOLD)
    gpu_encode.roc_auc_score(SOLD, SOLD * 0.5, sample_weight=WEIGHTS)
print(json.dumps(sorted(compiled() - before)))
"""


@pytest.mark.long
def test_the_family_needs_no_other_kernel():
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run([sys.executable, "-c", NEEDED], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.fixture
def nothing_compiled(monkeypatch, tmp_path):
    """A separate folder for kernels, and a single call that stands for all calls that need kernels."""
    monkeypatch.setattr(compilation.kernel_folder, "folder", lambda: tmp_path)
    monkeypatch.setattr(compilation.kernel_folder, "_complete", [])
    monkeypatch.setattr(warm_up, "calls", lambda: iter([lambda: None] * 3))
    monkeypatch.setenv("GPU_ENCODE_COMPILE", "background")
    return tmp_path


def test_the_command_compiles_once(nothing_compiled, monkeypatch, capsys):
    monkeypatch.setattr(compilation, "is_private", lambda: False)
    assert main(["warm-up"]) == 0
    assert capsys.readouterr().err == f"gpu-encode: all kernels are in {nothing_compiled}\n"
    assert compilation.is_ready()
    assert main(["warm-up"]) == 0
    assert capsys.readouterr().err == f"gpu-encode: nothing to do: all kernels are in {nothing_compiled}\n"


def test_progress_counts_the_calls(nothing_compiled):
    told = []
    assert warm_up.compile_all(lambda *numbers: told.append(numbers))
    assert told == [(0, 3), (1, 3), (2, 3)]


def test_a_disk_that_is_full_is_named(nothing_compiled, monkeypatch, capsys):
    cache = warm_up.load("cpu_fallback.compiled.kernel_files").KernelCache
    monkeypatch.setattr(cache, "lost", 0)
    monkeypatch.setattr(warm_up, "calls", lambda: iter([lambda: setattr(cache, "lost", 1)]))
    assert main(["warm-up"]) == 1
    assert f"{nothing_compiled} takes no more files: free some space" in capsys.readouterr().err
    assert not compilation.is_compiled()


def test_a_folder_that_nobody_else_finds_is_no_place(nothing_compiled, capsys):
    assert main(["warm-up"]) == 1
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().err
