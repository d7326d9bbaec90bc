"""`gpu-encode drift --fail-if` tells a scheduler by its exit status whether new rows are as they should be."""

import json
from collections.abc import Callable

import pandas as pd
import pytest

import gpu_encode
from gpu_encode.cli import main

FIT = "fit-transform orders.parquet codes.parquet --model orders.model --target sold --columns city,device+zip"


@pytest.fixture
def reports(run: Callable[[str], None]) -> list[dict[str, float]]:
    """The report of new rows, which lie in a file."""
    run(FIT)
    new = pd.read_parquet("orders.parquet").assign(city=["Rome"] * 40 + [None] * 20 + ["Bonn"] * 140)
    new.loc[:9, "zip"] = "99999"
    new.to_parquet("new.parquet")
    reports = gpu_encode.load("orders.model").drift(new)
    assert [row["unknown"] for row in reports] == [0.2, 0.05]
    return reports


CASES = [
    # A condition, and what is said of the columns that meet it.
    ("unknown>0.05", {"city": "unknown 0.2 > 0.05"}),
    ("unknown>=0.05", {"city": "unknown 0.2 >= 0.05", "device_x_zip": "unknown 0.05 >= 0.05"}),
    ("unknown > 5 %", {"city": "unknown 0.2 > 0.05"}),
    ("unknown>=5%", {"city": "unknown 0.2 >= 0.05", "device_x_zip": "unknown 0.05 >= 0.05"}),
    ("city:unknown>.05", {"city": "unknown 0.2 > 0.05"}),
    ("device+zip:unknown>0.05", {}),
    ("device+zip:unknown>0.04", {"device_x_zip": "unknown 0.05 > 0.04"}),
    (" device_x_zip : unknown<6e-2", {"device_x_zip": "unknown 0.05 < 0.06"}),
    ("missing>0.1", {}),
    ("missing<=0.1", {"city": "missing 0.1 <= 0.1", "device_x_zip": "missing 0 <= 0.1"}),
    ("missing>0.5*unknown", {}),
    ("missing>=0.5*unknown", {"city": "missing 0.1 >= 0.1"}),
    ("rows<200", {}),
    ("rows<2e2", {}),
    ("rows<201", {"city": "rows 200 < 201", "device_x_zip": "rows 200 < 201"}),
    ("psi>1e9", {}),
]


@pytest.mark.parametrize(("condition", "said"), CASES)
def test_conditions(condition: str, said: dict[str, str], reports: object, capsys: pytest.CaptureFixture) -> None:
    status = main(["drift", "orders.model", "new.parquet", "--json", "--fail-if", condition])
    out, err = capsys.readouterr()
    assert json.loads(out) == reports
    assert err.splitlines() == [f"gpu-encode: {name}: {why}" for name, why in said.items()]
    assert status == (1 if said else 0)


@pytest.mark.parametrize("times", [0.5, 1.5])
def test_psi_is_compared_with_what_chance_gives(
    times: float, reports: list[dict[str, float]], capsys: pytest.CaptureFixture
) -> None:
    status = main(["drift", "orders.model", "new.parquet", "--fail-if", f"psi > {times}*psi_by_chance"])
    met = [row["key"] for row in reports if row["psi"] > times * row["psi_by_chance"]]
    err = capsys.readouterr().err
    assert [line.split(": ")[1] for line in err.splitlines()] == met
    assert status == bool(met)


def test_each_column_has_one_line(reports: object, capsys: pytest.CaptureFixture) -> None:
    conditions = ["unknown>0.01", "city:missing>0.01", "rows<10", "device+zip:psi<0.0000001"]
    command = ["drift", "orders.model", "new.parquet"]
    assert main([*command, *(word for one in conditions for word in ("--fail-if", one))]) == 1
    out, err = capsys.readouterr()
    assert "psi by chance" in out
    assert err.splitlines() == [
        "gpu-encode: city: unknown 0.2 > 0.01, missing 0.1 > 0.01",
        "gpu-encode: device_x_zip: unknown 0.05 > 0.01",
    ]


WRONG = {
    "unknown": "is no condition: write unknown>0.05",
    "": "is no condition",
    "unknown>": "is no condition",
    "unknown=0.05": "is no condition",
    "unknown==0.05": "is no condition",
    "unknown>>1": "is no condition",
    "0<unknown<1": "is no condition",
    "unknwon>0.05": "'unknwon' is no measure (rows, unknown, missing, psi, psi_by_chance); did you mean 'unknown'?",
    "unknown>half": "'half' is no measure",
    "unknown>nan": "'nan' is no measure",
    "unknown>-1": "'-1' is no measure",
    "psi>2*": "'' is no measure",
    "0.05<unknown": "'0.05' is no measure",
    "unknown>5": "is never met: unknown is a number from 0 to 1, and 5% is 0.05",
    "city: missing >= 2 * 80%": "is never met: missing is a number from 0 to 1",
    "missing<0": "is never met: missing is a number from 0 to 1",
    "psi < 0": "is never met: psi is a number from 0 up",
    "ctiy:unknown>0.1": "--fail-if: there is no column 'ctiy'; did you mean 'city'?",
    "price:unknown>0.1": "--fail-if: there is no column 'price'",
}


@pytest.mark.parametrize("condition", WRONG)
def test_wrong_conditions_are_told_before_rows_are_read(
    condition: str, run: Callable[[str], None], refused: Callable[[str], str]
) -> None:
    run(FIT)
    assert WRONG[condition] in refused(f"drift orders.model no.parquet --fail-if '{condition}'")
