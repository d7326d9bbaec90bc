"""`gpu-encode leak-report`: options become an encoder, and what is found a page or JSON."""

import json
from pathlib import Path

import pytest

from gpu_encode import LeaveOneOut, TargetEncoder, leak_report

pytestmark = pytest.mark.host
QUICK = "leak-report orders.parquet --target sold --columns zip --shuffles 4 --flips 3"


def test_the_report_is_that_of_python(run, orders, capsys):
    run(f"{QUICK} --scheme loo --json")
    found = json.loads(capsys.readouterr().out)
    encoder = TargetEncoder(columns=["zip"], cv=LeaveOneOut())
    expected = leak_report(encoder, orders.drop_columns(["sold"]), orders["sold"], n_shuffles=4, n_flips=3)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert found["columns"][0]["verdict"] == "left out"


def test_a_page_is_written_and_not_over_another(run, refused, folder, capsys):
    run(f"{QUICK} --scheme greedy --weight weight --rows 150 --html report.html")
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
