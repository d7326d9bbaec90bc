"""The device of a call: that of the data, or for data on the host the faster one."""

from typing import ClassVar

import numpy as np
import pytest

from gpu_encode import TargetEncoder
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.seam import devices

pytestmark = pytest.mark.host

FEW, MANY = np.zeros((3, 1)), np.zeros((devices.FEWEST_ROWS, 1), np.int8)


class OnGpu:
    """An object that claims to lie on a GPU."""

    __cuda_array_interface__: ClassVar = {"shape": (3, 1)}


@pytest.fixture
def one_gpu(monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)
    monkeypatch.setattr(devices, "simulated", lambda: False)


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(
    ("X", "wanted", "device"),
    [
        (FEW, "auto", "cpu"),
        (MANY[1:], "auto", "cpu"),
        (MANY, "auto", "cuda"),
        ([FEW, MANY], "auto", "cpu"),
        ([MANY, FEW], "auto", "cuda"),
        (iter([MANY, FEW]), "auto", "cuda"),
        (FEW, "cuda", "cuda"),
        (MANY, "cpu", "cpu"),
    ],
)
def test_host_data_goes_to_a_gpu_from_many_rows_on(X, wanted, device):
    assert Inputs(X).device(wanted) == device


@pytest.mark.usefixtures("one_gpu")
def test_data_of_a_gpu_stays_there_however_small():
    assert devices.choose("auto", FEW, OnGpu(), n_rows=3) == "cuda"
    assert devices.choose("cpu", OnGpu(), n_rows=3) == "cpu"


def test_few_rows_ask_for_no_gpu(monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: pytest.fail("it loads a library"))
    assert TargetEncoder().fit(FEW, [0, 1, 1]).device_ == "cpu"


@pytest.mark.usefixtures("one_gpu")
def test_many_rows_without_a_gpu_are_encoded_on_the_cpu(monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    assert Inputs(MANY).device("auto") == "cpu"
