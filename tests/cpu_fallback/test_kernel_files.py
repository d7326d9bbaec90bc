"""Kernels on disk: whichever process writes them, a process gets the machine code of the requested signature."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cpu_fallback.compiled.kernel_files import KernelFiles

KERNEL = """
from cpu_fallback.compiled.border import kernel

@kernel
def total(numbers):
    result = numbers[0] - numbers[0]
    for number in numbers:
        result += number
    return result
"""
PROCESS = """
import sys
from kernels import total
import numpy as np
print(total(np.arange(5).astype(sys.argv[1])), sum(total.stats.cache_hits.values()))
"""


@pytest.fixture
def files(tmp_path):
    return KernelFiles(tmp_path, "total-4.py311", "stamp")


def test_a_kernel_is_found_under_its_own_key(files):
    files.save(("int64",), b"of integers")
    files.save(("float64",), b"of reals")
    assert files.load(("int64",)) == b"of integers"
    assert files.load(("float64",)) == b"of reals"
    assert files.load(("int32",)) is None


def test_kernels_of_other_sources_are_not_found_and_go(tmp_path):
    before, after = (KernelFiles(tmp_path, "total", stamp) for stamp in ("before", "after"))
    other = KernelFiles(tmp_path, "totals", "before")
    for files in (before, other):
        files.save(("int64",), b"code")
    assert after.load(("int64",)) is None
    after.save(("float64",), b"code")
    assert before.load(("int64",)) is None
    assert other.load(("int64",)) == b"code"


def test_a_file_that_answers_for_another_key_or_is_cut_off_is_compiled_again(files, tmp_path):
    files.save(("int64",), b"code")
    (path,) = tmp_path.iterdir()
    path.rename(files._path(("float64",)))
    assert files.load(("float64",)) is None
    files.save(("int64",), b"code")
    path.write_bytes(path.read_bytes()[:-3])
    assert files.load(("int64",)) is None
    for content in (b"", b"garbage\n", b"cno.such.module\nname\n."):
        path.write_bytes(content)
        assert files.load(("int64",)) is None


def test_a_folder_that_takes_no_file_costs_no_call(tmp_path):
    (tmp_path / "file").touch()
    files = KernelFiles(tmp_path / "file" / "inside", "total", "stamp")
    assert not files.save(("int64",), b"code")
    assert files.load(("int64",)) is None


def test_a_folder_is_made_where_there_is_none(tmp_path):
    files = KernelFiles(tmp_path / "missing", "total", "stamp")
    assert files.load(("int64",)) is None
    assert files.save(("int64",), b"code")
    assert files.load(("int64",)) == b"code"


def test_flushing_forgets_every_signature(files):
    files.save(("int64",), b"code")
    files.flush()
    assert files.load(("int64",)) is None


@pytest.mark.parametrize(("chosen", "says"), [("", 1), ("background", 1), ("now", 0)])
def test_a_call_that_compiles_says_so_once(chosen, says, tmp_path):
    (tmp_path / "kernels.py").write_text(KERNEL)
    environment = {**environment_of(tmp_path), "GPU_ENCODE_COMPILE": chosen}
    said = []
    for _ in range(2):
        command = [sys.executable, "-c", f"{PROCESS}total(np.zeros(2, 'f4')); total(np.zeros(2, 'i2'))", "int64"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        said.append(done.stderr.count("gpu-encode: compiling for this call"))
        assert len(done.stderr.splitlines()) == said[-1]
    assert said == [says, 0]


def environment_of(folder):
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path.cwd()}", "NUMBA_CACHE_DIR": str(folder)}


def test_processes_that_start_together_share_what_they_compile(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNEL)
    environment = environment_of(tmp_path)
    types = ["int64", "float64", "int32"]

    def said():
        running = [
            subprocess.Popen([sys.executable, "-c", PROCESS, kind], env=environment, stdout=subprocess.PIPE, text=True)
            for kind in types
        ]
        return [process.communicate()[0].split() for process in running]

    totals = [str(np.arange(5).astype(kind).sum()) for kind in types]
    assert said() == [[total, "0"] for total in totals]
    assert said() == [[total, "1"] for total in totals]
    # Numba's own files have an index: with such a file, Numba would not ask `KernelFiles`.
    assert {path.suffix for path in tmp_path.rglob("kernels.total-*")} == {".nbc"}


WITH_SEPARATE_PART = """
import sys
from cpu_fallback.compiled.border import kernel, separate
from cpu_fallback.compiled.kernel_files import KernelCache
import numpy as np

@separate
def total(numbers):
    result = numbers[0] - numbers[0]
    for number in numbers:
        result += number
    return result

@kernel
def twice(numbers):
    return 2 * total(numbers)

@kernel
def thrice(numbers):
    return total(numbers) + 2 * total(numbers)

if __name__ == "__main__":
    from parts import thrice, total, twice
    given = np.arange(5).astype(sys.argv[1])
    print(*(float({"twice": twice, "thrice": thrice, "total": total}[name](given)) for name in sys.argv[2:]))
    print(KernelCache.compiled)
"""


def test_kernels_call_one_part_in_a_file_of_its_own(tmp_path):
    (tmp_path / "parts.py").write_text(WITH_SEPARATE_PART)

    def called(*names, kind="int64"):
        """Return results, and how many functions the process compiled, with a name that no other process uses."""
        command = [sys.executable, str(tmp_path / "parts.py"), kind, *names]
        done = subprocess.run(command, env=environment_of(tmp_path), capture_output=True, text=True, check=True)
        results, compiled = done.stdout.splitlines()
        return [float(result) for result in results.split()], int(compiled)

    assert called("twice", "thrice") == ([20.0, 30.0], 3)
    assert called("thrice", "twice") == ([30.0, 20.0], 0)
    assert called("twice", kind="float64") == ([20.0], 2)
    assert called("thrice", kind="float64") == ([30.0], 1)
    # Called by Python, it is a kernel by itself.
    assert called("total", "twice") == ([10.0, 20.0], 1)
    assert called("total", "twice") == ([10.0, 20.0], 0)


@pytest.mark.parametrize(("lost", "compiled"), [("total", 1), ("twice", 1)])
def test_a_lost_file_is_compiled_again(lost, compiled, tmp_path):
    """The other files are used: the name of the part's machine code is the same in every process."""
    (tmp_path / "parts.py").write_text(WITH_SEPARATE_PART)
    command = [sys.executable, str(tmp_path / "parts.py"), "int64", "thrice", "twice"]
    for expected in (3, compiled):
        done = subprocess.run(command, env=environment_of(tmp_path), capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["30.0", "20.0", str(expected)]
        for path in tmp_path.rglob(f"parts.{lost}-*.nbc"):
            path.unlink()
