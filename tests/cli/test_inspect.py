"""What a model holds, for people and for programs."""

import json
from collections.abc import Callable

import pytest

import gpu_encode
from gpu_encode.cli import main

FIT = "fit-transform orders.parquet codes.parquet --model orders.model --target"


def inspect_model(line: str, capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main(["inspect", "orders.model", "--json", *line.split()]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_holds_what_the_encoder_holds(run: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} sold --columns city,device+zip")
    report = inspect_model("--top 2", capsys)
    encoder = gpu_encode.load("orders.model")
    assert [one["categories"] for one in report["columns"]] == [len(one) for one in encoder.categories_]
    assert report["target_type"] == "binary"
    assert report["classes"] == [0, 1]
    assert report["target_mean"] == encoder.target_mean_


def test_the_most_frequent_come_first(run: Callable[[str], None], orders, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} sold --columns zip")
    top = inspect_model("", capsys)["columns"][0]["top"]
    counts = [orders["zip"].to_pylist().count(row["category"]) for row in top]
    assert counts == sorted(counts, reverse=True) == [row["weight"] for row in top]


@pytest.mark.parametrize(
    "options", ["sold", "kind", "kind --drop first", "price", "sold,price --target-type binary,continuous"]
)
def test_people_get_tables(run: Callable[[str], None], options: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} {options} --columns city,device+member")
    run("inspect orders.model --column device+member")
    said = capsys.readouterr().out
    assert "device_x_member" in said
    assert "phone" in said
    assert "Bonn" not in said


def test_an_unknown_column_is_a_mistake(run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    run(f"{FIT} sold --columns city")
    assert "--column: there is no column 'sity'; did you mean 'city'?" in refused("inspect orders.model --column sity")
