"""The doctor shows what is installed, what clashes and what to install, and never fails."""

import builtins
import ctypes
import json
import sys
from typing import Any

import pytest

from gpu_encode.cli import doctor, main

NOTHING = dict.fromkeys(doctor.PACKAGES)


def test_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["works"]["numpy on the CPU"] == "yes"
    assert report["works"]["numba on the CPU"] == "yes"
    assert report["packages"]["numpy"]
    assert report["python"].startswith(".".join(map(str, sys.version_info[:3])))


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ({}, None),
        ({"numpy": "2.5.0", "numba": "0.68.1"}, None),
        ({"numpy": "2.4.6", "numba-cuda": "0.30.1", "cudf": "26.10.0", "numba": "0.64.0"}, None),
        ({"numpy": "2.5.0", "numba-cuda": "0.31.0"}, None),
        ({"numpy": "2.5.0", "numba-cuda": "0.30.1"}, "numba-cuda up to 0.30 fails on NumPy 2.5"),
        ({"numpy": "2.5.1", "cudf": "26.10.0"}, "cuDF up to 26.10 fails on NumPy 2.5"),
        ({"numba": "0.65.0rc1", "cudf": "26.10.0"}, "cuDF refuses numba 0.65 and later"),
    ],
)
def test_combinations(versions: dict[str, str], says: str | None) -> None:
    problems = doctor.problems({**NOTHING, **versions})
    assert [problem.partition(" (")[0] for problem in problems] == ([] if says is None else [says])


def test_a_problem_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "installed_version", lambda names: {"numpy": "2.5.0", "cudf": "26.10"}.get(names[-1]))
    monkeypatch.setattr(doctor, "encodes", lambda backend: "no: ImportError: numba [is] broken")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "problem: cuDF up to 26.10 fails on NumPy 2.5" in said
    assert "numba [is] broken" in said
    assert "worth installing: for data frames: pip install pandas" in said


def test_a_broken_backend_is_reported_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def broken(name: str, *rest: Any) -> Any:
        if name == "gpu_encode.seam.ops":
            raise ImportError("numba needs NumPy 2.4 or less")
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert doctor.encodes("compiled") == "no: ImportError: numba needs NumPy 2.4 or less"


class Driver:
    """A driver with one device."""

    def __init__(self, error: int = 0) -> None:
        self.error = error

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13020
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return self.error

    def cuDeviceGet(self, device: Any, number: int) -> int:
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = b"NVIDIA H200"
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: Any) -> int:
        memory._obj.value = 139 * 2**30
        return 0


def test_devices_are_asked_of_the_driver_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    assert doctor.cuda_devices() == (["GPU 0: NVIDIA H200, 139 GiB"], 13020)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(error=100))
    assert doctor.cuda_devices() == ([], 13020)
    monkeypatch.setattr(Driver, "cuInit", lambda self, flags: 100)
    assert doctor.cuda_devices() == ([], None)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert doctor.cuda_devices() == ([], None)


@pytest.mark.parametrize(
    ("devices", "cupy", "state"),
    [
        ([], "14", "no: no NVIDIA device and driver found"),
        (["GPU 0: x"], None, "no: cupy and numba-cuda not installed"),
        (["GPU 0: x"], "14", "tried"),
    ],
)
def test_cuda_state(devices: list[str], cupy: str | None, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "encodes", lambda backend: {"cuda": "tried"}[backend])
    assert doctor.cuda_state({**NOTHING, "cupy": cupy, "numba-cuda": cupy}, devices) == state


def test_a_backend_that_cannot_run_says_what_it_needs() -> None:
    assert doctor.encodes("cuda-simulator").startswith("no: RuntimeError: The backend 'cuda-simulator' cannot run here")


@pytest.mark.parametrize(("driver", "has_cuda_13"), [(13000, True), (None, True), (12080, False)])
def test_a_driver_that_fits_the_libraries(driver: int | None, has_cuda_13: bool) -> None:
    assert doctor.driver_problems(driver, has_cuda_13) == []


def test_advice_names_the_extra_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    versions = {**NOTHING, "pandas": "3.1"}
    assert "'.[cu13]'" in doctor.worth_installing(versions, ["GPU 0: x"], 13020)[0]
    assert "'.[cu12]'" in doctor.worth_installing(versions, ["GPU 0: x"], 12080)[0]
    assert doctor.worth_installing(versions, [], None) == []
