"""`gpu-encode leak-report`: options become an encoder, and the result a page or JSON."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import LeaveOneOut, TargetEncoder, leak_report
from gpu_encode.cli import leak_report as leak_report_command
from gpu_encode.scale.files.source import Source, open_source

pytestmark = pytest.mark.host
QUICK = "leak-report orders.parquet --target sold --columns zip --shuffles 4 --flips 3"


def test_the_report_is_that_of_python(run, orders, capsys):
    run(f"{QUICK} --cv loo --json")
    found = json.loads(capsys.readouterr().out)
    encoder = TargetEncoder(columns=["zip"], cv=LeaveOneOut())
    expected = leak_report(encoder, orders.drop_columns(["sold"]), orders["sold"], n_shuffles=4, n_flips=3)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert found["columns"][0]["verdict"] == "left out"


def test_a_page_is_written_and_not_over_another(run, refused, folder, capsys):
    run(f"{QUICK} --cv greedy --weight weight --rows 150 --html report.html")
    said = capsys.readouterr()
    assert said.out.startswith("TargetEncoder: Leaks in 1 of")
    assert "zip" in (folder / "report.html").read_text()
    assert "give --overwrite" in refused(f"{QUICK} --html report.html")
    run(f"{QUICK} --html report.html --overwrite")
    assert "150 rows" not in (folder / "report.html").read_text()


def test_refusals(refused):
    assert "one column, not 2" in refused("leak-report orders.parquet --target sold,price --columns zip")
    assert "--target" in refused("leak-report orders.parquet")


def test_a_page_is_no_source(refused):
    before = Path("orders.parquet").read_bytes()
    assert "is, or holds, a file of the source" in refused(f"{QUICK} --html orders.parquet --overwrite")
    assert Path("orders.parquet").read_bytes() == before


def test_groups_are_told_beside_any_scheme(run, refused, orders, folder, capsys):
    many = orders.append_column("patient", pa.array(np.arange(len(orders)) // 8))
    pyarrow.parquet.write_table(many, "orders.parquet")
    for scheme, told in (
        (" --cv 3", ("Groups straddle",)),
        (""" --cv 'GroupKFold(3, groups="patient")'""", ()),
        (" --cv group", ()),
    ):
        run(f"{QUICK} --columns device --groups patient{scheme} --json")
        risks = json.loads(capsys.readouterr().out)["risks"]
        assert len(risks) == len(told)
        assert all(risk.startswith(begun) for risk, begun in zip(risks, told, strict=True))
    assert "--groups: there is no column 'patients'" in refused(f"{QUICK} --cv loo --groups patients")


def test_files_are_read_in_chunks_and_a_sample_is_kept(run, orders, monkeypatch, capsys):
    monkeypatch.setattr(leak_report_command, "CHUNK_ROWS", 16)
    monkeypatch.delattr(Source, "load")
    drawn = np.sort(np.random.default_rng(3).choice(len(orders), 50, replace=False, shuffle=False))
    assert leak_report_command.sample(open_source("orders.parquet"), 50, 3).equals(orders.take(drawn))
    assert leak_report_command.sample(open_source("orders.parquet"), 500, 3).equals(orders)
    run(f"{QUICK} --rows 120")
    assert "a sample of 120 of 200 rows: --rows N takes more" in capsys.readouterr().err
