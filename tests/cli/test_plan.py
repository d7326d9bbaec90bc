"""`gpu-encode plan` gives for rows in files the numbers of `encoder.plan` in Python."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import TargetEncoder, interactions
from gpu_encode.cli import plan as plan_command

pytestmark = pytest.mark.host


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_the_plan_is_that_of_python(run, orders, capsys):
    run("plan orders.parquet --target sold --columns shop,city+zip --cv 4 --device-memory 1GB --json")
    encoder = TargetEncoder(columns=["shop", ("city", "zip")], cv=4)
    table = orders.drop_columns(["sold"])
    expected = encoder.plan(table, orders["sold"].to_numpy(), device_memory="1GB").to_dict()
    assert told(capsys) == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("--target sold --columns shop", 13 * 5 * 2),
        ("--target kind --columns shop", 13 * 5 * 3),
        ("--target amount --columns shop", 13 * 5),
        ("--target sold --target-type continuous --columns shop", 13 * 5),
        ("--target sold --columns shop --cv fold", 13 * 5 * 2),
        ("--target sold --columns shop --cv 'KFold(3, by=\"day\")'", 13 * 3 * 2),
        ("--target sold --columns shop --cv 'GroupKFold(3, groups=\"day\")'", 13 * 3 * 2),
        ('--target sold --columns shop --set \'hierarchy={"shop": ["city"]}\'', 13 * 4 * 5 * 2),
        ("--encoder count --columns shop", 13),
        ("--encoder statistic --values price --columns shop", 13),
    ],
)
def test_cells(run, capsys, line, cells):
    run(f"plan orders.parquet {line} --json")
    assert told(capsys)["cells"] == cells


def test_more_rows_with_the_same_values(run, capsys):
    run("plan orders.parquet --target sold --interactions city,device,zip --interaction-order 2 --rows 1000000 --json")
    found = told(capsys)
    assert [key["name"] for key in found["keys"]] == [
        key if isinstance(key, str) else "_x_".join(key) for key in interactions(["city", "device", "zip"], order=2)
    ]
    assert [key["categories"] for key in found["keys"]] == [4, 3, 41, 4 * 3, 4 * 41, 3 * 41]
    assert found["output_bytes"] == 6 * 8 * 1_000_000


def test_files_are_read_in_chunks(run, pieces, orders, monkeypatch, capsys):
    dictionary = orders.set_column(0, "city", orders["city"].dictionary_encode())
    pyarrow.parquet.write_table(dictionary, "dictionary.parquet")
    monkeypatch.setattr(plan_command, "CHUNK_ROWS", 16)
    found = []
    for source in ("orders.parquet", "in", "dictionary.parquet"):
        run(f"plan {source} --target sold --columns city,member,zip --device-memory 1GB --json")
        found.append(told(capsys))
    assert found[0] == found[1] == found[2]


def test_it_says_what_does_not_fit(run, capsys):
    run("plan orders.parquet --target sold --columns shop --rows 100000000 --device-memory 3GB")
    said = capsys.readouterr().out
    assert "100,000,000" in said
    assert "no; in 2 parts of rows" in said


def test_refusals(refused):
    assert "has no plan" in refused("plan orders.parquet --encoder spectral --columns shop,city")
    assert "one column, not 2" in refused("plan orders.parquet --target sold,price --columns shop")
    assert "name its column with --target" in refused("plan orders.parquet --columns shop")
    assert "device_memory must be" in refused("plan orders.parquet --target sold --columns shop --device-memory much")
    assert "Did you mean '80GiB'?" in refused("plan orders.parquet --target sold --columns shop --device-memory 80")
    assert "'rows'" in refused("plan orders.parquet --target sold --columns shop --rows 0")
    assert "no column 'shp'" in refused("plan orders.parquet --target sold --columns shp")


def test_a_column_of_nulls_has_a_category(run, orders, capsys):
    pyarrow.parquet.write_table(orders.append_column("none", pa.nulls(200, pa.string())), "orders.parquet")
    run("plan orders.parquet --target sold --columns none --json")
    assert told(capsys)["keys"][0]["categories"] == 2
