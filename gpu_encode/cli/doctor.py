"""``gpu-encode doctor``: show what was found on this machine, what works, and what to install for more."""

import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import gpu_encode
from gpu_encode.seam import compilation
from gpu_encode.seam.devices import has_gpu, simulated
from gpu_encode.words.terminal import one_line, printable

# For each package, the distributions that provide it.
PACKAGES = {
    "numpy": ["numpy"],
    "numba": ["numba"],
    "narwhals": ["narwhals"],
    "pyarrow": ["pyarrow"],
    "scikit-learn": ["scikit-learn"],
    "pandas": ["pandas"],
    "polars": ["polars"],
    "dask": ["dask"],
    "cupy": ["cupy-cuda13x", "cupy-cuda12x", "cupy"],
    "numba-cuda": ["numba-cuda"],
    "cudf": ["cudf-cu13", "cudf-cu12", "cudf"],
}

Version = tuple[int, ...]


# Two packages, whether two of their versions clash, what fails then, and what helps.
CONFLICTS: list[tuple[str, str, Callable[[Version, Version], bool], str, str]] = [
    ("numpy", "numba-cuda", lambda numpy, cuda: numpy >= (2, 5) and cuda < (0, 31),
     "numba-cuda up to 0.30 fails on NumPy 2.5", "pip install 'numpy<2.5'"),
    ("numpy", "cudf", lambda numpy, cudf: numpy >= (2, 5) and cudf < (26, 11),
     "cuDF up to 26.10 fails on NumPy 2.5", "pip install 'numpy<2.5'"),
    ("numba", "cudf", lambda numba, _: numba >= (0, 65),
     "cuDF refuses numba 0.65 and later", "pip install 'numba<0.65'"),
]  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit status is 1 if not even the CPU works."""
    report = examine()
    if options.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        show(report)
    return 0 if report["works"]["numpy on the CPU"] == "yes" else 1


def examine() -> dict[str, Any]:
    """Return everything that was found.

    Examples
    --------
    >>> sorted(examine())
    ['devices', 'kernels', 'packages', 'problems', 'python', 'version', 'works', 'worth_installing']
    """
    versions = {name: installed_version(distributions) for name, distributions in PACKAGES.items()}
    devices, driver = cuda_devices()
    cpu = f"CPU: {platform.machine()}, {os.cpu_count() or 1} cores"
    return {
        "version": installed_version(["gpu-encode"]),
        "python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
        "packages": versions,
        "devices": [cpu, *devices],
        "kernels": str(compilation.folder()),
        "works": {
            "numpy on the CPU": encodes("numpy"),
            "numba on the CPU": compiled_state(),
            "CUDA": cuda_state(versions, devices),
        },
        "problems": [*problems(versions), *driver_problems(driver, installed_version(["cupy-cuda13x"]) is not None)],
        "worth_installing": worth_installing(versions, devices, driver),
    }


def versions_at_work() -> str:
    """Return one line with versions, and the backend that would compute a large call.

    Examples
    --------
    >>> versions_at_work().split(", ")[0].split()[0]
    'gpu-encode'
    """
    if has_gpu():
        backend = ", ".join(cuda_devices()[0]) or "the simulator of a GPU"
    elif compilation.is_ready():
        backend = "compiled kernels on the CPU"
    else:
        backend = "NumPy on the CPU (kernels are not compiled yet)"
    libraries = [f"{name} {installed_version([name]) or 'not installed'}" for name in ("numpy", "numba")]
    named = [f"gpu-encode {gpu_encode.__version__}", f"Python {platform.python_version()}", *libraries]
    return f"{', '.join(named)}, backend: {backend}"


def installed_version(distributions: list[str]) -> str | None:
    """Return the version of the first of these distributions that is installed.

    Examples
    --------
    >>> installed_version(["no-such-distribution"]) is None
    True
    """
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def problems(versions: Mapping[str, str | None]) -> list[str]:
    """Return the known bad combinations among `versions`, each with a remedy.

    Examples
    --------
    >>> problems({"numpy": "2.5.0", "numba-cuda": "0.30.1"})
    ["numba-cuda up to 0.30 fails on NumPy 2.5 (numpy 2.5.0, numba-cuda 0.30.1): pip install 'numpy<2.5'"]
    """
    messages = []
    for first, second, clash, says, cure in CONFLICTS:
        one, other = versions.get(first), versions.get(second)
        if one and other and clash(numbers(one), numbers(other)):
            messages.append(f"{says} ({first} {one}, {second} {other}): {cure}")
    return messages


def driver_problems(driver: int | None, has_cuda_13: bool) -> list[str]:
    """Return conflicts between the driver and the CUDA libraries, with a remedy.

    Examples
    --------
    >>> driver_problems(12080, True)
    ["CuPy is for CUDA 13, the driver for 12.8: pip install '.[cu12]' in the checkout, in a new environment"]
    """
    if driver is None or driver >= 13000 or not has_cuda_13:
        return []
    version = f"{driver // 1000}.{driver % 1000 // 10}"
    return [
        f"CuPy is for CUDA 13, the driver for {version}: pip install '.[cu12]' in the checkout, in a new environment"
    ]


def numbers(version: str) -> Version:
    """Return the leading numbers of a version.

    Examples
    --------
    >>> numbers("26.10.1rc2")
    (26, 10, 1)
    """
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in leading.group().split(".")) if leading else ()


def cuda_devices() -> tuple[list[str], int | None]:
    """Return the NVIDIA devices and the CUDA version of the driver (13020 for 13.2); only the driver is used."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count, version = ctypes.c_int(), ctypes.c_int()
        if driver.cuInit(0) or driver.cuDriverGetVersion(ctypes.byref(version)):
            return [], None
        if driver.cuDeviceGetCount(ctypes.byref(count)):
            return [], version.value
        return [cuda_device(driver, number) for number in range(count.value)], version.value
    except (OSError, AttributeError):
        return [], None


def cuda_device(driver: Any, number: int) -> str:
    """Return the name and memory of one device."""
    device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), number)
    driver.cuDeviceGetName(name, 256, device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    return f"GPU {number}: {name.value.decode(errors='replace')}, {memory.value / 2**30:.0f} GiB"


def encodes(backend: str) -> str:
    """Encode a few rows on one backend; return "yes", or the error."""
    try:
        import numpy as np

        from gpu_encode import TargetEncoder
        from gpu_encode.seam.ops import use_backend

        rows = np.array([["a"], ["b"]] * 8, dtype=object)
        with use_backend(backend):
            encodings = TargetEncoder(smooth=None, cv=2).fit_transform(rows, np.array([0.0, 1.0] * 8))
    except Exception as error:  # any error is part of the report
        return f"no: {type(error).__name__}: {one_line(error)}"
    return "yes" if set(np.unique(encodings)) == {0.0, 1.0} else f"no: wrong encodings {np.unique(encodings)}"


def compiled_state() -> str:
    """Return whether kernels run on the CPU, without waiting for a compiler."""
    if compilation.is_ready():
        return encodes("compiled")
    try:
        from gpu_encode.seam.ops import COMPILED, load

        load(COMPILED)
    except Exception as error:  # any error is part of the report
        return f"no: {type(error).__name__}: {one_line(error)}"
    return "not compiled yet: `gpu-encode warm-up` does it, or the first large call, in the background"


def cuda_state(versions: Mapping[str, str | None], devices: list[str]) -> str:
    """Return whether work can run on a GPU, and if not, the first reason."""
    if simulated():
        return f"{encodes('cuda-simulator')}, in the simulator (NUMBA_ENABLE_CUDASIM is set)"
    if not devices:
        return "no: no NVIDIA device and driver found"
    missing = [name for name in ("cupy", "numba-cuda") if versions[name] is None]
    return f"no: {' and '.join(missing)} not installed" if missing else encodes("cuda")


def worth_installing(versions: Mapping[str, str | None], devices: list[str], driver: int | None) -> list[str]:
    """Return packages that would be useful on this machine, and how to install them."""
    advice = []
    extra = "cu13" if (driver or 0) >= 13000 else "cu12"
    if devices:
        if versions["cupy"] is None or versions["numba-cuda"] is None:
            advice.append(f"to compute on the GPU: pip install '.[{extra}]' in the checkout")
        if versions["cudf"] is None:
            advice.append(
                "for cuDF frames: pip install '.[rapids]' --extra-index-url https://pypi.nvidia.com in the checkout"
            )
    if versions["pandas"] is None and versions["polars"] is None:
        advice.append("for data frames: pip install pandas, or pip install polars")
    return advice


def show(report: Mapping[str, Any]) -> None:
    """Print the report as text."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table(title=f"gpu-encode {report['version'] or '(not installed)'}", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Python", report["python"], end_section=True)
    for device in report["devices"]:
        table.add_row(*device.split(": ", 1))
    table.add_section()
    for name, version in report["packages"].items():
        table.add_row(name, version or "[dim]not installed[/dim]")
    table.add_section()
    for name, state in report["works"].items():
        table.add_row(name, f"[green]{state}[/green]" if state == "yes" else escape(printable(state)))
    table.add_row("kernels", escape(printable(report["kernels"])))
    console.print(table)
    for problem in report["problems"]:
        console.print(f"[red]problem:[/red] {escape(printable(problem))}", soft_wrap=True)
    for advice in report["worth_installing"]:
        console.print(f"[yellow]worth installing:[/yellow] {escape(printable(advice))}", soft_wrap=True)
    if not report["problems"] and not report["worth_installing"]:
        console.print("Nothing is missing for what this machine has.")
