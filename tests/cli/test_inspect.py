"""`gpu-encode inspect` shows the content of a model, as text and as JSON."""

import json
from collections.abc import Callable

import pandas as pd
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


def test_json_has_real_types(run: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    smooth = '{"city": MEstimate(10.0), ("device", "zip"): None}'
    run(f"{FIT} sold --columns city,device+zip --cv 'KFold(3)' --seed 7 --smooth '{smooth}'")
    report = inspect_model("--top 3", capsys)
    assert list(report) == ["encoder", "target_type", "classes", "target_mean", "parameters", "origin", "columns"]
    parameters = report["parameters"]
    assert parameters["smooth"] == {"city": {"class": "MEstimate", "parameters": {"m": 10.0}}, "device_x_zip": None}
    assert parameters["cv"]["class"] == "KFold"
    assert parameters["cv"]["parameters"]["n_splits"] == 3
    assert parameters["cv"]["parameters"]["random_state"] == 7
    assert (parameters["min_count"], parameters["shuffle"], parameters["hierarchy"]) == (0, True, None)
    assert [type(parameters[name]) for name in ("device", "indicators")] == [str, bool]
    for column in report["columns"]:
        assert list(column) == ["name", "encodings", "categories", "top"]
        assert [*map(type, column.values())] == [str, list, int, list]
        for row in column["top"]:
            assert list(row) == ["category", "weight", "encodings"]
            assert isinstance(row["category"], (list, str, type(None)))
            assert [*map(type, (row["weight"], *row["encodings"]))] == [float] * (1 + len(column["encodings"]))
    assert {len(row["category"]) for row in report["columns"][1]["top"]} == {2}


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


def test_millions_of_rows_are_told_to_the_last_one(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    encoder = gpu_encode.TargetEncoder(columns=["shop"])
    encoder.fit(pd.DataFrame({"shop": ["a", "b"]}), [0, 1], sample_weight=[1_234_567, 2]).save(tmp_path / "one.model")
    assert main(["inspect", str(tmp_path / "one.model")]) == 0
    assert "1,234,567 " in capsys.readouterr().out.partition("category")[2]


def test_an_unknown_column_is_a_mistake(run: Callable[[str], None], refused: Callable[[str], str]) -> None:
    run(f"{FIT} sold --columns city")
    assert ".: is a folder, and no model" in refused("inspect .").replace(". is", ".: is")
    assert "--column: there is no column 'sity'; did you mean 'city'?" in refused("inspect orders.model --column sity")


def test_spans_are_texts_that_options_take(capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    days = pd.DataFrame({"city": list("aabb"), "day": pd.date_range("2026-01-01", periods=4)})
    cv = {"city": gpu_encode.Ordered(time="day", half_life=pd.Timedelta("36h"))}
    gpu_encode.TargetEncoder(columns=["city"], cv=cv).fit(days, [0, 1, 1, 0]).save("orders.model")
    assert inspect_model("", capsys)["parameters"]["cv"]["city"]["parameters"]["half_life"] == "36h"
    assert main(["inspect", "orders.model"]) == 0
    assert "half_life='36h'" in capsys.readouterr().out


def test_many_classes_are_shown_in_part(capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({"city": ["a", "b"] * 10})
    gpu_encode.TargetEncoder(target_type="multiclass").fit(rows, list(range(20))).save("orders.model")
    assert main(["inspect", "orders.model"]) == 0
    said = capsys.readouterr().out
    assert "0, 1, 2, 3, 4, ... (20 in all)" in said
    assert "5 of 20 columns of encodings (--json has all)" in " ".join(said.split())
    assert len(inspect_model("", capsys)["columns"][0]["encodings"]) == 20
