"""Categories on disk give the bits of tables in memory, for training rows and new rows, and all spilled files go."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gpu_encode import (
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    Ordered,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
    encode_dataset,
    transform_dataset,
)
from gpu_encode.scale.files import disk_tables
from gpu_encode.scale.files.memory import Room
from gpu_encode.scale.files.spilling import SpillTables
from tests.scale.files.encoded import assert_same_table, encode, in_memory, names_in, write_pieces

pytestmark = pytest.mark.host
COLUMNS = ["city", ("device", "zip"), "day"]
SCHEMES = {
    "random": KFold(3),
    "contiguous": KFold(3, order="contiguous"),
    "stratified": KFold(3, stratify=True),
    "by value": KFold(3, by="zip"),
    "blown up": KFold(2, blow_up=True),
    "groups": GroupKFold(3, groups="shop"),
    "time": TimeFolds(3, time="hour"),
    "holdout": Holdout(0.4),
    "each left out": LeaveOneOut(),
    "a column": "fold",
}


@pytest.fixture(autouse=True)
def few_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_tables, "FEWEST_BUCKETS", 3)
    # Pieces of two or three chunks are written together.
    monkeypatch.setattr(disk_tables, "MOST_WAITING", 9000)
    monkeypatch.setattr(disk_tables, "GATHERED", 9)
    monkeypatch.setattr(disk_tables, "FEWEST_ENCODED", 4)
    monkeypatch.setattr(disk_tables, "ENCODED", 4)


def on_disk(source: Any, destination: Path, encoder: Any, target: Any, **choices: Any) -> Any:
    """Encode with tables on disk."""
    return encode(source, destination, encoder, target, **{"chunk_rows": 150, "tables": "disk"} | choices)


def check(source: Path, folder: Path, table: pa.Table, encoder: Any, target: Any, **choices: Any) -> None:
    """Compare training rows and new rows with those of one table."""
    model, output = folder / "model", folder / "codes.parquet"
    summary = on_disk(source, output, encoder, target, model=model, **choices)
    assert summary.bytes_spilled > 0
    assert not hasattr(encoder, "_model")
    fitted, expected = in_memory(encoder, table, target, choices.get("weight"))
    assert_same_table(pq.read_table(output), expected)
    new = table.select(list(fitted.feature_names_in_)).slice(0, 60)
    new = new.set_column(new.column_names.index("city"), "city", pa.array([*(["Rome", None] * 3), *["Bonn"] * 54]))
    pq.write_table(new, folder / "new.parquet")
    told = transform_dataset(folder / "new.parquet", folder / "new-codes.parquet", model)
    assert_same_table(pq.read_table(folder / "new-codes.parquet"), fitted.transform(new))
    unseen = {"city": 3} if encoder.handle_missing in {"category", "prior"} else None
    assert told.unseen == unseen
    assert names_in(folder) == sorted(["codes.parquet", "model", "new-codes.parquet", "new.parquet", "orders.parquet"])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes(tmp_path: Path, rows: Path, orders: pa.Table, scheme: str) -> None:
    columns = ["city", ("device", "shop"), "day"] if scheme == "by value" else COLUMNS
    check(rows, tmp_path, orders, TargetEncoder(columns=columns, cv=SCHEMES[scheme]), "sold")


CASES: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "weights": ({}, "price", {"weight": "weight"}),
    "classes": ({}, "kind", {}),
    "classes left out": ({"cv": LeaveOneOut()}, "kind", {}),
    "several": ({"target_type": ["binary", "continuous"]}, ["sold", "price"], {"keep_target": True}),
    "missing has a prior": ({"handle_missing": "prior"}, "sold", {}),
    "short floats": ({"dtype": "float32", "smooth": Sigmoid(), "min_count": 9}, "sold", {}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_targets_and_rules(tmp_path: Path, rows: Path, orders: pa.Table, case: str) -> None:
    parameters, target, choices = CASES[case]
    check(rows, tmp_path, orders, TargetEncoder(**{"columns": COLUMNS, "cv": KFold(3)} | parameters), target, **choices)


GROWING: dict[str, tuple[dict[str, Any], Any, str | None]] = {
    "folds": ({"cv": KFold(300, order="contiguous")}, lambda n: np.arange(n) % 2, None),
    "classes": ({"target_type": "multiclass"}, lambda n: np.arange(n) * 300 // n, None),
    "weights": ({}, lambda n: np.arange(n) % 2, "weight"),
    "reals": ({"target_type": "continuous"}, lambda n: np.where(np.arange(n) < n // 2, 1.0, 0.25), None),
}


@pytest.mark.parametrize("kind", GROWING)
def test_later_chunks_may_need_wider_types(tmp_path: Path, kind: str) -> None:
    """Of the first rows, folds, classes and weights are small whole numbers."""
    parameters, target, weight = GROWING[kind]
    n = 2000
    weights = {"weight": np.where(np.arange(n) < n // 2, 1.0, 1 / 3)} if weight else {}
    table = pa.table({"key": np.arange(n) % 40, "y": target(n), **weights})
    pq.write_table(table, tmp_path / "in.parquet")
    encoder = TargetEncoder(**{"columns": ["key"], "cv": KFold(3)} | parameters)
    on_disk(tmp_path / "in.parquet", tmp_path / "codes.parquet", encoder, "y", chunk_rows=500, weight=weight)
    assert_same_table(pq.read_table(tmp_path / "codes.parquet"), in_memory(encoder, table, "y", weight)[1])


def test_no_sums_are_spilled_however_many_targets_and_folds(tmp_path: Path) -> None:
    n, targets = 6000, [f"y{number}" for number in range(6)]
    draw = np.random.default_rng(0)
    table = pa.table({"key": np.arange(n) % 2000} | {name: draw.normal(size=n) for name in targets})
    pq.write_table(table, tmp_path / "in.parquet")
    encoder = TargetEncoder(columns=["key"], cv=KFold(9), target_type="continuous")
    summary = on_disk(tmp_path / "in.parquet", tmp_path / "codes.parquet", encoder, targets, chunk_rows=1000)
    assert_same_table(pq.read_table(tmp_path / "codes.parquet"), in_memory(encoder, table, targets)[1])
    # A row has its number, fold, value and targets, and one encoding for each target.
    assert summary.bytes_spilled < 2 * table.nbytes + n * 60


@pytest.mark.parametrize("share", [1, 1 << 60], ids=["all rows at once", "some rows at a time"])
def test_rows_of_a_bucket_are_summed_as_memory_has_room(
    tmp_path: Path, rows: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    monkeypatch.setattr(disk_tables, "SHARE", share)
    for target in ("price", "kind"):
        encoder = TargetEncoder(columns=COLUMNS, cv=KFold(3))
        on_disk(rows, tmp_path / "codes.parquet", encoder, target, weight="weight", overwrite=True)
        expected = in_memory(encoder, orders, target, "weight")[1]
        assert_same_table(pq.read_table(tmp_path / "codes.parquet"), expected)


def test_text_and_folders_of_parts(tmp_path: Path, orders: pa.Table) -> None:
    table = orders.select(["zip", "shop", "sold"])
    pa.csv.write_csv(table, tmp_path / "in.csv")
    encoder = TargetEncoder(columns=["zip"], cv=KFold(3))
    on_disk(tmp_path / "in.csv", tmp_path / "codes.csv", encoder, "sold", text=["zip"], model=tmp_path / "model")
    fitted, expected = in_memory(encoder, table, "sold")
    assert pa.csv.read_csv(tmp_path / "codes.csv")["zip"].equals(expected["zip"])
    transform_dataset(tmp_path / "in.csv", tmp_path / "new.csv", str(tmp_path / "model"))
    assert pa.csv.read_csv(tmp_path / "new.csv")["zip"].equals(fitted.transform(table.drop_columns(["sold"]))["zip"])
    source = write_pieces(tmp_path / "in", table, 112)
    on_disk(source, tmp_path / "codes", encoder, "sold", keep_target=False)
    found = pa.concat_tables([pq.read_table(tmp_path / "codes" / f"{number}.parquet") for number in range(4)])
    assert_same_table(found, expected.drop_columns(["sold"]))


def test_one_category_of_most_rows_and_numbers_of_all_kinds(tmp_path: Path) -> None:
    n = 3000
    number = np.where(np.arange(n) % 9 == 0, np.arange(n), 7)
    floats = [[None, np.nan, 0.0, -0.0, 1.5][row % 5] for row in range(n)]
    table = pa.table({"key": number, "float": pa.array(floats, from_pandas=False), "y": np.arange(n) % 2})
    pq.write_table(table, tmp_path / "in.parquet")
    encoder = TargetEncoder(columns=["key", ("key", "float"), "float"], cv=KFold(3))
    on_disk(tmp_path / "in.parquet", tmp_path / "codes.parquet", encoder, "y", chunk_rows=256)
    assert_same_table(pq.read_table(tmp_path / "codes.parquet"), in_memory(encoder, table, "y")[1])


def test_short_chunks_share_their_pieces(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little memory chunks are short, and a file would get a piece of a few rows from each."""
    written, writing = list[int](), SpillTables._write

    def write(file: Any, table: Any) -> None:
        written.append(len(table))
        writing(file, table)

    monkeypatch.setattr(SpillTables, "_write", staticmethod(write))
    pieces = {}
    for most in (0, 1 << 20):
        monkeypatch.setattr(disk_tables, "MOST_WAITING", most)
        for chunk_rows in (30, 300):
            written.clear()
            encoder = TargetEncoder(columns=["city"], cv=KFold(3))
            on_disk(rows, tmp_path / f"{most}-{chunk_rows}.parquet", encoder, "sold", chunk_rows=chunk_rows)
            pieces[most, chunk_rows] = len(written) - -(-pq.read_metadata(rows).num_rows // chunk_rows)
    codes = [pq.read_table(path) for path in tmp_path.glob("*-*.parquet")]
    assert all(found.equals(codes[0]) for found in codes)
    assert pieces[0, 30] > 5 * pieces[0, 300]
    # Six files of lines and rows; encodings have a piece for each chunk that is written.
    assert pieces[1 << 20, 30] == pieces[1 << 20, 300] == 6


def test_the_disk_is_taken_where_memory_has_no_room(
    tmp_path: Path, rows: Path, orders: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Room, "needed", lambda *_: 1 << 63)
    encoder = TargetEncoder(columns=COLUMNS, cv=KFold(3))
    with pytest.warns(UserWarning, match=r"the encoder is not fitted. To encode new rows later, give a path as model="):
        summary = encode_dataset(rows, tmp_path / "codes.parquet", encoder, target="sold", weight="weight")
    # A whole number of MiB.
    assert summary.enough_memory % (1 << 20) == 0
    assert f"from memory_limit={summary.enough_memory >> 20}MiB on, they stay in memory" in repr(summary)
    expected = in_memory(encoder, orders, "sold", "weight")[1]
    assert_same_table(pq.read_table(tmp_path / "codes.parquet"), expected)
    for parameters, note in (({"tables": "memory"}, []), ({}, ["Tables on disk do not help: .*JamesStein.*"])):
        smooth = JamesStein() if note else "auto"
        with pytest.raises(ValueError, match="the sums and encodings of the categories do not fit") as caught:
            encode(
                rows, tmp_path / "x.parquet", encoder.set_params(smooth=smooth), "sold", chunk_rows=100, **parameters
            )
        assert getattr(caught.value, "__notes__", [])[:1] == [] or "JamesStein" in caught.value.__notes__[0]
        assert bool(note) == any("JamesStein" in words for words in getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize(
    ("parameters", "target", "words"),
    [
        ({"cv": Ordered()}, "sold", "Ordered"),
        ({"cv": Ordered(time="hour")}, "sold", "Ordered"),
        ({"smooth": JamesStein()}, "sold", "JamesStein"),
        ({"cv": LeaveOneOut()}, "price", "LeaveOneOut"),
        ({"indicators": True}, "sold", "indicators"),
        ({"cv": [(np.arange(200), np.arange(200, 448))]}, "sold", "all rows at once"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_takes_more_than_sums(tmp_path: Path, rows: Path, parameters: Any, target: str, words: str) -> None:
    with pytest.raises(ValueError, match=rf'tables="disk": .*{words}.* Or pass tables="memory"\.'):
        on_disk(rows, tmp_path / "codes.parquet", TargetEncoder(**{"columns": ["city"]} | parameters), target)
    assert names_in(tmp_path) == ["orders.parquet"]


def test_new_rows_that_are_refused_and_columns_that_lack(tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["zip", "day"], cv=KFold(3), handle_unknown="error")
    on_disk(rows, tmp_path / "codes.parquet", encoder, "sold", model=tmp_path / "model")
    new = orders.drop_columns(["sold"])
    zips = ["nowhere" if row in (300, 400) else word for row, word in enumerate(orders["zip"].to_pylist())]
    new = new.set_column(new.column_names.index("zip"), "zip", pa.array(zips))
    source = write_pieces(tmp_path / "new", new, 200)
    with pytest.raises(ValueError, match=r"'zip'.* in row 300 \(row 100 of .*1\.parquet.*\).*'nowhere'"):
        transform_dataset(source, tmp_path / "new-codes", tmp_path / "model")
    pq.write_table(new.drop_columns(["zip"]), tmp_path / "lacks.parquet")
    with pytest.raises(ValueError, match="zip"):
        transform_dataset(tmp_path / "lacks.parquet", tmp_path / "new-codes", tmp_path / "model")
    lines = tmp_path / "model" / "encodings" / "part-0.parquet"
    pq.write_table(pq.read_table(lines).slice(1), lines)
    with pytest.raises(ValueError, match="lines of encodings with checksum"):
        transform_dataset(source, tmp_path / "new-codes", tmp_path / "model")
    assert names_in(tmp_path) == ["codes.parquet", "lacks.parquet", "model", "new", "orders.parquet"]


@pytest.mark.parametrize("path", ["a file", "a model", "no folder"])
def test_paths_where_no_model_can_be(tmp_path: Path, rows: Path, path: str) -> None:
    model = tmp_path / "absent" / "model" if path == "no folder" else tmp_path / "model"
    if path == "a file":
        model.mkdir()
        (model / "mine").write_text("x")
    if path == "a model":
        model.write_text("x")
    encoder = TargetEncoder(columns=["city"])
    with pytest.raises(OSError, match=r"is there already|there is no folder"):
        encode_dataset(rows, tmp_path / "codes", encoder, target="sold", model=model, overwrite=path == "a file")
    assert "codes" not in names_in(tmp_path)


def test_a_model_in_memory_is_a_file(tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["city"])
    encode(rows, tmp_path / "codes.parquet", encoder, "sold", model=tmp_path / "model", tables="memory")
    pq.write_table(orders.drop_columns(["sold"]), tmp_path / "new.parquet")
    transform_dataset(tmp_path / "new.parquet", tmp_path / "new-codes.parquet", tmp_path / "model")
    expected = encoder.transform(orders.drop_columns(["sold"]))
    assert_same_table(pq.read_table(tmp_path / "new-codes.parquet"), expected)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stage", ["profiling", "measuring", "placing", "encoding"])
def test_an_interrupted_run(tmp_path: Path, rows: Path, orders: pa.Table, stage: str) -> None:
    def stop(now: str, done: int, _: int) -> None:
        if now == stage and done >= 300:
            raise Stopped

    encoder, codes, model = TargetEncoder(columns=COLUMNS, cv=KFold(3)), tmp_path / "codes", tmp_path / "model"
    with pytest.raises(Stopped):
        on_disk(rows, codes, encoder, "sold", progress=stop, model=model)
    work = [".codes.gpu-encode"] if stage == "encoding" else []
    assert names_in(tmp_path) == [*work, "orders.parquet"]
    for _ in range(2):
        summary = on_disk(rows, codes, encoder, "sold", resume=True, model=model, overwrite=True)
    assert summary.files == 3
    assert names_in(tmp_path) == ["codes", "model", "orders.parquet"]
    found = pa.concat_tables([pq.read_table(codes / name) for name in names_in(codes)])
    assert_same_table(found, in_memory(encoder, orders, "sold")[1])


def test_a_full_disk(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(SpillTables, "_write", full)
    with pytest.raises(OSError, match=r"the disk is full .* was not written"):
        on_disk(rows, tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), "sold", model=tmp_path / "model")
    assert names_in(tmp_path) == ["orders.parquet"]


def test_rows_that_change_between_passes(tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adding = disk_tables.CategoryFiles.add

    def add(self: Any, entry: int, lines: Any, first_row: int, views: Any) -> None:
        if first_row != 150:
            adding(self, entry, lines, first_row, views)

    monkeypatch.setattr(disk_tables.CategoryFiles, "add", add)
    with pytest.raises(ValueError, match="The source has rows"):
        on_disk(rows, tmp_path / "codes.parquet", TargetEncoder(columns=["city"]), "sold")


def test_buckets_by_categories_and_room() -> None:
    from gpu_encode.scale.files import memory

    held = max(memory.resident_bytes(), memory.LOADED)
    few = disk_tables.number_of_buckets(1000, 100, held + (1 << 28))
    many = disk_tables.number_of_buckets(10_000_000, 100, held + (1 << 28))
    assert few == 3
    assert 40 < many < 120
    assert disk_tables.number_of_buckets(1e12, 100, held) == disk_tables.MOST_BUCKETS
