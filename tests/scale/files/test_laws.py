"""Files in chunks give the bits of one table in memory, for all chunks, schemes, formulas, targets and layouts."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from gpu_encode import (
    CatBoostEncoder,
    GroupKFold,
    KFold,
    Ordered,
    Prefixes,
    StatisticEncoder,
    TargetEncoder,
    transform_dataset,
)
from gpu_encode.scale.files import encoding, memory
from gpu_encode.scale.files import source as source_files
from gpu_encode.scale.files.memory import Room
from gpu_encode.scale.files.source import Roles, Size
from gpu_encode.scale.parts import sums as sums_of_parts
from gpu_encode.scale.parts.sums import AddedRows
from tests.bits import assert_same_encoder
from tests.cases import SMOOTHINGS, STRATIFIED, schemes
from tests.scale.files.conftest import N_ROWS, read_folder
from tests.scale.files.encoded import assert_same_table, encode, in_memory, write_pieces

SCHEMES = schemes(groups="shop", time="hour") | {"stratified": STRATIFIED["stratified"]}
COLUMNS = ["city", ("device", "shop"), "day"]


def repeated_text(n_rows: int, kind: pa.DataType, later: int) -> pa.Table:
    """Draw texts that repeat, empty and missing ones among them; from a row on, each 100 rows bring new ones."""
    draw = np.random.default_rng(later)
    new = np.maximum(0, np.arange(n_rows) - later) // 100
    cities = [
        [None, "", "\u00fc" * 9][number] if number < 3 else f"a long name of the city {number + 7 * step:03d}"
        for number, step in zip(draw.integers(0, 12, n_rows), new, strict=True)
    ]
    shops = [f"shop in the street {number:03d}" for number in draw.integers(0, 4, n_rows) + new]
    zips, missing = draw.integers(0, 20, n_rows) + 3 * new, draw.random(n_rows) < 0.05
    return pa.table(
        {
            "city": pa.array(cities, kind),
            "shop": pa.array(shops, kind),
            "zip": pa.array(zips, mask=missing),
            "day": draw.integers(0, 9, n_rows),
            "price": draw.normal(size=n_rows).round(2),
            "sold": draw.integers(0, 2, n_rows),
        }
    )


def check(
    source: Any, folder: Path, table: pa.Table, encoder: Any, target: Any, chunk_rows: int | None, **choices: Any
) -> None:
    """Encode a source in chunks, and compare with the same rows in memory."""
    ours = clone(encoder)
    destination = folder / f"codes-{chunk_rows}.parquet"
    encode(source, destination, ours, target, chunk_rows=chunk_rows, **choices)
    fitted, expected = in_memory(encoder, table, target, **choices)
    assert_same_table(pyarrow.parquet.read_table(destination), expected)
    assert_same_encoder(ours, fitted)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("target", "chunk_rows"), [("sold", N_ROWS), ("price", 17)])
def test_every_scheme(tmp_path: Path, rows: Path, orders: pa.Table, scheme: str, target: str, chunk_rows: int) -> None:
    if scheme == "stratified":
        target = "kind"
    columns = ["city", ("device", "zip"), "day"] if scheme in {"groups", "by-value"} else COLUMNS
    check(rows, tmp_path, orders, TargetEncoder(columns=columns, cv=SCHEMES[scheme]), target, chunk_rows)


@pytest.mark.parametrize("scheme", ["number", "stratified", "leave-one-out", "ordered-rows", "ordered-time", "ordered"])
def test_chunks_of_a_size_of_their_own_in_every_pass(
    tmp_path: Path, rows: Path, orders: pa.Table, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_columns(_: int, needed: memory.PassBytes, *__: object) -> Size:
        return Size(7 * (1 + int(needed.row_bytes) // 8), n_bytes=int(60 * needed.row_bytes), batch_rows=9)

    monkeypatch.setattr(memory, "chunk_size", by_columns)
    encoder = TargetEncoder(columns=["city", ("device", "zip")], cv=SCHEMES[scheme])
    check(rows, tmp_path, orders, encoder, "sold", None)


@pytest.mark.parametrize("smooth", SMOOTHINGS)
@pytest.mark.parametrize(("target", "weight"), [("sold", "weight"), ("price", "weight"), ("kind", None)])
def test_every_formula(
    tmp_path: Path, rows: Path, orders: pa.Table, smooth: str, target: str, weight: str | None
) -> None:
    encoder = TargetEncoder(columns=COLUMNS, smooth=SMOOTHINGS[smooth], cv=4)
    check(rows, tmp_path, orders, encoder, target, 50, weight=weight)


@pytest.mark.parametrize(
    "choices",
    [
        {"columns": None},
        {"columns": ["zip"], "hierarchy": {"zip": Prefixes(4, 3)}},
        {"columns": ["device"], "hierarchy": {"device": ["city"]}},
        {"columns": ["city"], "indicators": True, "dtype": "float32", "handle_missing": "prior"},
        {"columns": ["city", "shop"], "prior": {"city": 0.25}, "min_count": 3, "handle_unknown": "nan"},
        {"columns": ["city"], "categories": [["Bonn", "Lima"]], "prior": "category_mean"},
        {"columns": [0, (1, 2)]},
        {"columns": ["city", "shop"], "prior": "category_mean", "indicators": True, "cv": SCHEMES["ordered-rows"]},
        {"columns": ["city", "shop"], "prior": "category_mean", "indicators": True, "cv": SCHEMES["ordered"]},
    ],
)
def test_every_option(tmp_path: Path, rows: Path, orders: pa.Table, choices: dict[str, Any]) -> None:
    check(rows, tmp_path, orders, TargetEncoder(**choices), "sold", 61)


@pytest.mark.parametrize(
    "encoder",
    [
        TargetEncoder(cv=StratifiedKFold(3, shuffle=True, random_state=1)),
        TargetEncoder(cv=[(np.arange(N_ROWS) % 4 != fold, np.arange(N_ROWS) % 4 == fold) for fold in range(4)]),
        StatisticEncoder(["mean", "std"], values=["amount", "shop"], cv=Ordered()),
        CatBoostEncoder("buckets", borders=3),
    ],
    ids=["splitter", "splits", "order-of-values", "quantiles"],
)
def test_what_takes_all_rows_at_once(tmp_path: Path, rows: Path, orders: pa.Table, encoder: Any) -> None:
    encoder.set_params(columns=["city", ("device", "zip")])
    check(rows, tmp_path, orders, encoder, "sold", 64, weight="weight")
    many = pa.concat_tables([orders] * 1000)
    pyarrow.parquet.write_table(many, tmp_path / "many.parquet")
    limit = max(memory.resident_bytes(), memory.LOADED) + (100 << 20)
    with pytest.raises(ValueError, match=r"need all rows at once, and memory_limit is .* Give at least"):
        encode(tmp_path / "many.parquet", tmp_path / "codes", encoder, "sold", memory_limit=limit)


def test_all_rows_at_once_are_refused_by_the_bytes_that_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What earlier tests left in memory has no part in it.
    monkeypatch.setattr(memory, "resident_bytes", lambda: memory.LOADED)
    notes = pa.array(["a"] * 6000 + ["b" * 50_000, "c" * 50_000] * 1500)
    pyarrow.parquet.write_table(
        pa.table({"city": np.arange(9000) % 7, "note": notes, "sold": np.arange(9000) % 2}), tmp_path / "rows.parquet"
    )
    encoder = TargetEncoder(columns=["city"], cv=StratifiedKFold(3))
    limit = memory.LOADED + (150 << 20)
    with pytest.raises(ValueError, match=r"need all rows at once.* Give at least") as caught:
        encode(tmp_path / "rows.parquet", tmp_path / "codes.parquet", encoder, "sold", memory_limit=limit)
    enough = int(str(caught.value).partition("at least ")[2].split()[0].replace(",", ""))
    assert limit + (300 << 20) < enough << 20 < limit + (700 << 20)
    encode(tmp_path / "rows.parquet", tmp_path / "codes.parquet", encoder, "sold", memory_limit=enough << 20)


def test_several_targets(tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["city"], target_type=["binary", "continuous"])
    check(rows, tmp_path, orders, encoder, ["sold", "price"], 100)


def test_groups_beside_the_features(tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    check(rows, tmp_path, orders, TargetEncoder(columns=["city"], cv=GroupKFold(3)), "sold", 100, groups="shop")


@pytest.mark.parametrize("encoded", [["city"], ["city", "land"]])
def test_a_folder_of_partitions(tmp_path: Path, partitioned: Path, orders: pa.Table, encoded: list[str]) -> None:
    pieces = []
    for path in sorted(partitioned.rglob("*.parquet"), key=lambda path: path.relative_to(partitioned).as_posix()):
        piece = pyarrow.parquet.read_table(path, partitioning=None)
        year, land = (part.partition("=")[2] for part in path.relative_to(partitioned).parts[:2])
        piece = piece.append_column("year", pa.repeat(pa.scalar(int(year), pa.int32()), len(piece)))
        pieces.append(piece.append_column("land", pa.repeat(land, len(piece))))
    table = pa.concat_tables(pieces)
    assert len(table) == N_ROWS
    encoder = TargetEncoder(columns=encoded, cv=3)
    fitted, expected = in_memory(encoder, table, "sold")
    for chunk_rows in (N_ROWS, 64):
        ours = clone(encoder)
        place = tmp_path / f"codes-{chunk_rows}"
        summary = encode(partitioned, place, ours, "sold", chunk_rows=chunk_rows)
        told = [name for name in ("year", "land") if name not in encoded]
        assert_same_table(read_folder(place), expected.drop_columns(told))
        assert_same_encoder(ours, fitted)
        assert summary.files == 5
        assert [path.relative_to(place) for path in sorted(place.rglob("*.parquet"))] == [
            path.relative_to(partitioned) for path in sorted(partitioned.rglob("*.parquet"))
        ]
    # In one file nothing else tells them.
    encode(partitioned, tmp_path / "one.parquet", clone(encoder), "sold")
    assert_same_table(pyarrow.parquet.read_table(tmp_path / "one.parquet"), expected)


def test_a_target_that_folders_name(tmp_path: Path, partitioned: Path) -> None:
    encode(partitioned, tmp_path / "codes", TargetEncoder(columns=["city"]), "year", chunk_rows=64)
    output = read_folder(tmp_path / "codes")
    assert "year" not in output.column_names
    assert len(output) == N_ROWS


def test_one_file_becomes_parts_of_one_chunk(tmp_path: Path, rows: Path, orders: pa.Table) -> None:
    encoder = TargetEncoder(columns=["city"])
    summary = encode(rows, tmp_path / "codes", encoder, "sold", chunk_rows=100)
    output = sorted((tmp_path / "codes").iterdir())
    assert [path.name for path in output] == [f"part-{number:05d}.parquet" for number in range(5)]
    assert [pyarrow.parquet.read_metadata(path).num_rows for path in output] == [100, 100, 100, 100, 48]
    assert_same_table(read_folder(tmp_path / "codes"), in_memory(encoder, orders, "sold")[1])
    assert (summary.rows, summary.chunks, summary.files) == (N_ROWS, 5, 5)
    assert summary.columns == len(orders.column_names)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("target", ["sold", "price"])
@pytest.mark.parametrize("chunk_rows", [300, 700, None])
def test_text_that_repeats(
    tmp_path: Path, kind: pa.DataType, target: str, chunk_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = repeated_text(3000, kind, later=1200)
    source = write_pieces(tmp_path / "in", table, 1100, row_group_size=400)
    encoder = TargetEncoder(columns=["city", "zip", ("city", "shop")], handle_missing="category", smooth=3.0)
    monkeypatch.setattr(source_files, "FEWEST_NUMBERED", 1000)
    seen, added, part, new = set(), list[int](), Roles.part, AddedRows.add_new
    monkeypatch.setattr(Roles, "part", lambda self, chunk: seen.update(chunk.table.schema.types) or part(self, chunk))
    monkeypatch.setattr(AddedRows, "add_new", lambda self, *given: added.append(len(given[1])) or new(self, *given))
    check(source, tmp_path, table, encoder, target, chunk_rows)
    assert any(map(pa.types.is_dictionary, seen))
    assert bool(added) == (chunk_rows is not None)
    # New rows are read as dictionaries, too.
    fitted, _ = in_memory(encoder, table, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        transform_dataset(source, tmp_path / "new.parquet", fitted)
    expected = fitted.transform(table)
    assert_same_table(pyarrow.parquet.read_table(tmp_path / "new.parquet").select(expected.column_names), expected)


@pytest.mark.parametrize(("missing", "share"), [("category", 0), ("prior", 1 / 4), ("nan", 100)])
@pytest.mark.parametrize("scheme", [KFold(3), KFold(3, stratify=True), GroupKFold(3, groups="day")])
def test_rows_of_known_categories_are_added_in_place(
    tmp_path: Path, scheme: Any, missing: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = repeated_text(3000, pa.string(), later=900)
    source = write_pieces(tmp_path / "in", table, 1100)
    rows, new = list[int](), AddedRows.add_new
    monkeypatch.setattr(AddedRows, "add_new", lambda self, *given: rows.append(len(given[1])) or new(self, *given))
    monkeypatch.setattr(Room, "rows_of_piece", lambda *_: 10)
    monkeypatch.setattr(Room, "rows_to_look_up", lambda *_: 170)
    # New categories are put among the others at once, at times, or after all rows.
    monkeypatch.setattr(sums_of_parts, "NEW_SHARE", share)
    monkeypatch.setattr(encoding, "FEWEST_ROWS", 4)
    encoder = TargetEncoder(columns=["zip", ("city", "shop")], handle_missing=missing, cv=scheme)
    check(source, tmp_path, table, encoder, "sold", 500)
    assert max(rows) == 10
