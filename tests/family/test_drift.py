"""Drift of new rows, compared with plain loops: every encoder, every kind of table, in parts and in files."""

import json
import math
import subprocess
import sys
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_encode as ge
from gpu_encode.fitting.model import weights_of
from gpu_encode.formulas.stability import index_by_chance, stability_index
from gpu_encode.serve.export import from_arrow, to_arrow
from tests.family.members import MEMBERS, ROWS

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
NEW = ROWS[20:].assign(
    city=ROWS["city"][20:].where(np.arange(len(ROWS) - 20) % 9 != 3, "never"),
    zip=ROWS["zip"][20:].where(np.arange(len(ROWS) - 20) % 8 != 5, 77_777),
)


def values_of(frame, columns):
    """Give the value of a key in each row; None if a part is missing."""
    rows = frame[list(columns)].astype(object).where(frame[list(columns)].notna(), None)
    return [tuple(row) for row in rows.itertuples(index=False)]


def expected_drift(fitted, new, columns):
    """Compare two frames in plain loops."""
    before, now = values_of(fitted, columns), values_of(new, columns)
    known = {*before}
    cells = [Counter(before), Counter(value if value in known or value == (None,) else "unknown" for value in now)]
    psi = []
    for cell in {*cells[0], *cells[1]}:
        p, q = ((count[cell] or 0.5) / count.total() for count in cells)
        psi.append((q - p) * math.log(q / p))
    n_cells = len({*cells[0], *cells[1]})
    return {
        "key": "_x_".join(columns),
        "rows": len(new),
        "unknown": cells[1]["unknown"] / len(new),
        "missing": sum(None in value for value in now) / len(new),
        "psi": math.fsum(psi),
        "psi_by_chance": (n_cells - 1) * (1 / len(before) + 1 / len(new)),
    }


@pytest.mark.parametrize("columns", [("city",), ("zip",), ("zip", "city"), ("price", "city", "held")])
def test_plain_loops(columns):
    encoder = ge.TargetEncoder(columns=[columns], smooth=1.0).fit(ROWS, ROWS["held"])
    assert encoder.drift(NEW) == [expected_drift(ROWS, NEW, columns)]
    same = encoder.drift(ROWS)[0]
    assert (same["unknown"], same["psi"]) == (0.0, 0.0)


@pytest.mark.parametrize("name", [name for name in MEMBERS if "hashing" not in name])
def test_every_member_of_the_family(name):
    make, y = MEMBERS[name]
    encoder = make().fit(ROWS, y)
    model = encoder._counted()
    for number, (found, entry) in enumerate(zip(encoder.drift(NEW), model.selection.entries, strict=True)):
        columns = [ROWS.columns[position] for position in entry.members]
        expected = expected_drift(ROWS, NEW, columns)
        assert found["key"] == expected["key"]
        # Other encoders have learned from some of the rows, or weight rows by age.
        if model.rules[0].missing == "category" and (weights_of(model, number).sum() == len(ROWS)):
            assert found == expected


def test_values_behind_others_are_not_needed():
    encoder = ge.CooccurrenceEncoder(pairs=(["city"], ["rank"])).fit(ROWS[["city", "rank"]])
    assert encoder.drift(NEW[["city"]]) == [expected_drift(ROWS, NEW, ("city",))]


def test_a_missing_value_that_is_no_category():
    encoder = ge.TargetEncoder(columns=["city", ("zip", "city")], handle_missing="nan").fit(ROWS, ROWS["held"])
    found = encoder.drift(NEW)
    assert found[0] == expected_drift(ROWS, NEW, ("city",))
    # All rows with a missing part of a joint key form one cell.
    lacking = NEW["city"].isna().mean()
    assert [row["missing"] for row in found] == [lacking, lacking]


def test_weights_are_what_is_compared():
    X, weights = pd.DataFrame({"x": ["a", "b", "b"]}), [6, 1, 1]
    encoder = ge.TargetEncoder(smooth=1.0).fit(X, [0, 1, 1], sample_weight=weights)
    repeated = ge.TargetEncoder(smooth=1.0).fit(X.loc[[0] * 6 + [1, 2]], [0] * 6 + [1, 1])
    assert encoder.drift(X) == repeated.drift(X)


def test_levels_above_do_not_make_a_value_known():
    encoder = ge.TargetEncoder(columns=["city"], hierarchy={"city": "held"}, smooth=1.0).fit(ROWS, ROWS["held"])
    assert encoder.drift(NEW)[0]["unknown"] == expected_drift(ROWS, NEW, ("held", "city"))["unknown"]


def test_policies_refuse_nothing():
    encoder = ge.TargetEncoder(columns=["city"], handle_unknown="error", handle_missing="error")
    encoder.fit(ROWS[ROWS["city"].notna()], ROWS["held"][ROWS["city"].notna()])
    (row,) = encoder.drift(NEW)
    assert row["unknown"] == (NEW["city"] == "never").mean()
    assert row["missing"] == NEW["city"].isna().mean()


def in_parts(rows):
    """Yield rows as tables one by one; each table is freed before the next."""
    for start in range(0, len(rows), 7):
        yield rows[start : start + 7]


def test_tables_of_every_kind_and_in_parts():
    encoder = ge.CountEncoder(columns=["city", ("zip", "city")]).fit(ROWS)
    expected = encoder.drift(NEW)
    for kind in (pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.to_numpy(object)):
        assert encoder.drift(kind(NEW)) == expected
    assert encoder.drift(in_parts(NEW)) == expected
    assert encoder.drift([NEW[:30], pl.from_pandas(NEW[30:])]) == expected


def test_dask_counts_partitions_where_they_lie():
    dd = pytest.importorskip("dask.dataframe")
    encoder = ge.CountEncoder(columns=["city", ("zip", "city")]).fit(ROWS)
    assert encoder.drift(dd.from_pandas(NEW, npartitions=4)) == encoder.drift(NEW)


def test_files_and_the_command_line(tmp_path):
    encoder = ge.CountEncoder(columns=["city", ("zip", "city")]).fit(ROWS)
    encoder.save(tmp_path / "some.model")
    for place, part in enumerate(in_parts(NEW)):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), tmp_path / f"{place:02}.parquet")
    files = [str(path) for path in sorted(tmp_path.glob("*.parquet"))]
    expected = encoder.drift(NEW)
    assert ge.drift_dataset(files, encoder) == expected
    assert ge.drift_dataset(pl.scan_parquet(files), encoder) == expected
    command = [sys.executable, "-m", "gpu_encode", "drift", tmp_path / "some.model", *files]
    told = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) == expected
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "zip_x_city" in shown
    assert f"{expected[0]['unknown']:.2%}" in shown


def test_what_cannot_be_compared():
    encoder = ge.CountEncoder(columns=["city"]).fit(ROWS)
    with pytest.raises(ValueError, match="but was given no rows"):
        encoder.drift(iter([]))
    with pytest.raises(ValueError, match="city"):
        encoder.drift(NEW[["zip"]])
    for none in (ge.HashingEncoder(columns=["city"]).fit(ROWS), from_arrow(to_arrow(encoder))):
        with pytest.raises(TypeError, match="Encoder keeps no counts"):
            none.drift(NEW)


def test_the_index_is_what_it_is_said_to_be():
    expected, found = np.array([3.0, 0.0, 0.0, 5.0]), np.array([0.0, 2.0, 0.0, 6.0])
    shares = [
        (Decimal(3) / 8, Decimal("0.5") / 8),
        (Decimal("0.5") / 8, Decimal(2) / 8),
        (Decimal(5) / 8, Decimal(6) / 8),
    ]
    psi = sum((q - p) * (q / p).ln() for p, q in shares)
    assert stability_index(expected, found) == pytest.approx(float(psi), rel=1e-15)
    assert index_by_chance(expected, found) == 2 * (1 / 8 + 1 / 8)


def test_chance_alone_is_what_it_is_said_to_be():
    draw, cells = np.random.default_rng(8), 40
    found = [
        stability_index(*(draw.multinomial(4_000, np.full(cells, 1 / cells)).astype(float) for _ in range(2)))
        for _ in range(200)
    ]
    by_chance = index_by_chance(np.full(cells, 100.0), np.full(cells, 100.0))
    # The standard error of chi-squared with 39 degrees of freedom, over 200 draws.
    assert abs(np.mean(found) - by_chance) < 4 * by_chance * np.sqrt(2 / 39 / 200)
