"""A model tells where it comes from: version, day, rows, and fingerprints that follow from the rows alone."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.model_selection import KFold

import gpu_encode as ge
from gpu_encode.cli import main
from gpu_encode.serve.export import to_arrow, to_json
from tests.family.members import MEMBERS, ROWS, SOLD
from tests.storage.altered import changed

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
COLUMNS = ["city", ("zip", "city")]
OLD = sorted((Path(__file__).parent / "older_models").glob("*/target.model"))


def fit(X=ROWS, y=SOLD, **parameters):
    return ge.TargetEncoder(**{"columns": COLUMNS} | parameters).fit(X, y)


def fingerprints(encoder):
    return encoder.origin_["schema"], encoder.origin_["learned"]


@pytest.mark.parametrize(("make", "y"), [pytest.param(*entry, id=name) for name, entry in MEMBERS.items()])
def test_every_model_tells_its_origin(make, y, tmp_path):
    encoder = make().fit(ROWS, y)
    origin = encoder.origin_
    assert list(origin) == ["library", "day", "rows", "schema", "learned"]
    assert (origin["library"], re.fullmatch(r"\d{4}-\d\d-\d\d", origin["day"]) is None) == (ge.__version__, False)
    assert make().fit(ROWS, y).origin_ == origin
    encoder.save(tmp_path / "one")
    assert json.loads(json.dumps(origin)) == ge.load(tmp_path / "one").origin_ == origin
    ge.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def in_parts():
    encoder = ge.TargetEncoder(columns=COLUMNS)
    for start in range(0, len(ROWS), 17):
        encoder.partial_fit(ROWS[start : start + 17], SOLD[start : start + 17])
    return encoder


def from_files(folder):
    table = pa.Table.from_pandas(ROWS.assign(sold=SOLD), preserve_index=False)
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=10)
    encoder = ge.TargetEncoder(columns=COLUMNS)
    ge.encode_dataset(folder / "rows.parquet", folder / "codes.parquet", encoder, target="sold")
    return encoder


def test_fingerprints_follow_from_the_rows_alone(tmp_path):
    expected = fit().origin_
    assert expected["rows"] == len(ROWS)
    shuffled = np.random.default_rng(3).permutation(len(ROWS))
    for same in (
        fit(ROWS.iloc[shuffled], np.asarray(SOLD)[shuffled]),
        fit([ROWS[:11], ROWS[11:]], SOLD),
        fit(pl.from_pandas(ROWS)),
        fit(pa.Table.from_pandas(ROWS, preserve_index=False)),
        fit(smooth=3.0, cv=2, handle_unknown="nan"),
        in_parts(),
        from_files(tmp_path),
    ):
        assert same.origin_ == expected


def test_other_rows_have_other_fingerprints():
    schema, learned = fingerprints(fit())
    flipped = np.asarray(SOLD).copy()
    flipped[7] = 1 - flipped[7]
    others = {
        "target": (fit(y=flipped), True, False),
        "category": (fit(ROWS.assign(city=["new", *ROWS["city"][1:]])), True, False),
        "one row less": (fit(ROWS[1:], SOLD[1:]), True, False),
        "weights": (ge.TargetEncoder(columns=COLUMNS).fit(ROWS, SOLD, sample_weight=np.arange(len(ROWS))), True, False),
        "name": (fit(ROWS.rename(columns={"price": "cost"})), False, True),
        "order of columns": (fit(ROWS[ROWS.columns[::-1]]), False, None),
        "kind of values": (fit(ROWS.assign(zip=ROWS["zip"].astype(str))), False, False),
        "kind of target": (fit(target_type="continuous"), False, None),
        "keys": (fit(columns=["city"]), False, False),
    }
    for name, (encoder, same_schema, same_learned) in others.items():
        found = fingerprints(encoder)
        assert (found[0] == schema) == same_schema, name
        assert same_learned is None or (found[1] == learned) == same_learned, name


def test_the_day_of_the_fit_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86399")
    encoder = fit()
    assert encoder.origin_["day"] == "1970-01-01"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    encoder.save(tmp_path / "model")
    loaded = ge.load(tmp_path / "model")
    assert loaded.origin_["day"] == "1970-01-01"
    # More rows make another model.
    loaded.partial_fit(ROWS, SOLD)
    assert loaded.origin_["day"] == "1970-01-02"
    assert loaded.origin_["rows"] == 2 * len(ROWS)
    assert fingerprints(loaded)[0] == fingerprints(encoder)[0]
    assert fingerprints(loaded)[1] != fingerprints(encoder)[1]


@pytest.mark.parametrize("epoch", [None, "", "today", "-5", "1e9", "9" * 30])
def test_without_an_epoch_it_is_the_day_in_utc(monkeypatch, epoch):
    if epoch is None:
        monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    else:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    monkeypatch.setattr("gpu_encode.encoders.base.time.time", lambda: 1_790_000_000.5)
    assert fit().origin_["day"] == "2026-09-21"


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.parent.name)
def test_older_models_have_recorded_nothing(path, tmp_path, capsys):
    encoder = ge.load(path)
    assert (encoder.origin_["library"], encoder.origin_["day"]) == (None, None)
    assert encoder.origin_["rows"] > 0
    encoder.save(tmp_path / "again")
    assert ge.load(tmp_path / "again").origin_ == encoder.origin_
    assert main(["inspect", str(path)]) == 0
    assert len(re.findall("not recorded", capsys.readouterr().out)) == 2


def test_an_encoder_of_an_older_pickle_has_recorded_nothing():
    encoder = fit()
    del encoder._origin
    assert encoder.origin_["day"] is None
    assert fingerprints(encoder) == fingerprints(fit())


WRONG = [("library", "0.1\n; DROP TABLE rows"), ("library", 3), ("day", "yesterday"), ("day", "2026-11-29 --"),
         ("schema", "0" * 15), ("learned", "g" * 16), ("rows", "3"), ("rows", -1.0), ("rows", True)]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_forged_origins_are_refused(name, value, tmp_path):
    fit().save(tmp_path / "model")
    content = changed((tmp_path / "model").read_bytes(), lambda document: document["origin"].update({name: value}))
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ValueError, match=f"the field '{name}' holds"):
        ge.load(tmp_path / "model")


def test_inspect_tells_the_origin(tmp_path, capsys):
    encoder = fit()
    encoder.save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["origin"] == encoder.origin_
    assert main(["inspect", str(tmp_path / "model")]) == 0
    shown = capsys.readouterr().out
    assert all(str(fact) in shown for name, fact in encoder.origin_.items() if name != "rows")
    assert f" {len(ROWS)} " in shown


def told_by_exports(encoder, **leaving):
    """Give the origin as each export tells it."""
    yield json.loads(to_json(encoder, **leaving))["origin"]
    for table in to_arrow(encoder, **leaving).values():
        yield json.loads(table.schema.metadata[b"gpu_encode"])["origin"]
    pytest.importorskip("sqlglot")
    from gpu_encode.serve.export import to_sql

    first = to_sql(encoder, "rows", **leaving).splitlines()[0]
    assert first.startswith(f"-- gpu_encode TargetEncoder{'' if leaving else '()'}: library ")
    told = dict(fact.split() for fact in first.partition(": ")[2].split(", "))
    yield told | {"rows": float(told["rows"])}
    pytest.importorskip("onnx")
    from gpu_encode.serve.export import to_onnx

    graph = to_onnx(encoder, passed=False, **leaving)
    yield json.loads(next(one.value for one in graph.metadata_props if one.key == "origin"))


@pytest.mark.parametrize("leaving", [{}, {"min_count": 3}, {"hash_key": b"sixteen bytes and more"}])
def test_exports_tell_the_origin_but_no_fingerprint_of_what_they_hide(leaving):
    encoder = fit(pd.DataFrame(ROWS[["city", "zip"]]))
    expected = {name: fact for name, fact in encoder.origin_.items() if name != "learned" or not leaving}
    told = [*told_by_exports(encoder, **leaving)]
    assert len(told) >= 3
    assert all(one == expected for one in told)


def told_parameters(encoder, **leaving):
    """Give the parameters as each export tells them."""
    yield json.loads(to_json(encoder, **leaving)).get("parameters")
    for table in to_arrow(encoder, **leaving).values():
        yield json.loads(table.schema.metadata[b"gpu_encode"]).get("parameters")
    pytest.importorskip("onnx")
    from gpu_encode.serve.export import to_onnx

    graph = to_onnx(encoder, passed=False, **leaving)
    yield next((json.loads(one.value) for one in graph.metadata_props if one.key == "parameters"), None)


def test_exports_tell_the_parameters(tmp_path):
    X = pd.DataFrame(ROWS[["city", "zip"]])
    scheme = ge.GroupKFold(3, groups="zip")
    encoder = fit(X, columns=["city"], smooth=ge.Sigmoid(5, 2), cv=scheme, random_state=None)
    expected = {"smooth": "Sigmoid(f=2, k=5)", "cv": "GroupKFold(groups='zip', n_splits=3)", "random_state": "None"}
    encoder.save(tmp_path / "model")
    for one in (encoder, ge.load(tmp_path / "model")):
        assert all(told == expected for told in told_parameters(one))
    for leaving in ({"min_count": 3}, {"hash_key": b"sixteen bytes and more"}):
        assert all(told is None for told in told_parameters(encoder, **leaving))
    pytest.importorskip("sqlglot")
    from gpu_encode.serve.export import to_sql

    first = to_sql(encoder, "rows").splitlines()[0]
    assert first.startswith(f"-- gpu_encode TargetEncoder({', '.join(map('='.join, expected.items()))}): library ")


def test_parameters_in_exports_are_short_single_lines_of_no_category():
    class Splitter(KFold):
        def __repr__(self):
            return "a\n; DROP TABLE rows --\r" + object.__repr__(self) + "x" * 1000

    X = pd.DataFrame(ROWS[["city"]])
    encoder = ge.TargetEncoder(categories=[[*X["city"].dropna().unique()]], cv=Splitter(3)).fit(X, SOLD)
    told = json.loads(to_json(encoder))["parameters"]
    assert list(told) == ["cv"]
    assert told["cv"].isprintable()
    assert len(told["cv"]) <= 300
    assert " at 0x" not in told["cv"]
    folds = ge.TargetEncoder(cv=np.arange(len(X)) % 3).fit(X, SOLD)
    assert len(json.loads(to_json(folds))["parameters"]["cv"]) <= 300
