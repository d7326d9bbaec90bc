"""What the two commands write is what the library gives, whatever the format; files appear together or not at all."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import gpu_encode
from gpu_encode.cli import main, tables
from gpu_encode.cli.tables import Writer, opened

Run = Callable[[str], None]
Refused = Callable[[str], str]

FIT = "fit-transform orders.parquet codes.parquet --model orders.model --target"


def read(name: str) -> pa.Table:
    with opened(Path(name)) as rows:
        return rows.all()


def test_codes_are_those_of_the_library(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} sold --columns city,device+zip --folds 4 --seed 9 --smooth m=5")
    encoder = gpu_encode.TargetEncoder(
        columns=["city", ("device", "zip")],
        cv=gpu_encode.KFold(4, random_state=9),
        smooth=gpu_encode.MEstimate(5),
        random_state=9,
    )
    rows = orders.drop_columns(["sold"])
    expected = encoder.fit_transform(rows, orders["sold"]).append_column("sold", orders["sold"])
    assert read("codes.parquet").equals(expected)
    run("transform orders.parquet new.parquet --model orders.model")
    assert read("new.parquet").equals(encoder.transform(rows).append_column("sold", orders["sold"]))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".feather"])
def test_every_format_gives_the_same_codes(run: Run, orders: pa.Table, suffix: str) -> None:
    with Writer(Path(f"orders{suffix}")) as writer:
        writer.write(orders)
    options = "--target price --columns city,device,member --text zip"
    run(f"{FIT.removesuffix('--target')} {options}")
    run(f"fit-transform orders{suffix} codes{suffix} --model other.model {options}")
    assert read(f"codes{suffix}").drop_columns(["zip"]).equals(read("codes.parquet").drop_columns(["zip"]))
    run(f"transform orders{suffix} new{suffix} --model orders.model")
    run("transform orders.parquet new.parquet --model other.model")
    assert read(f"new{suffix}").drop_columns(["zip"]).equals(read("new.parquet").drop_columns(["zip"]))


@pytest.mark.parametrize(
    "options",
    [
        "sold",
        "price --smooth none --scheme greedy",
        "sold --smooth 3 --scheme holdout --fraction 0.5",
        "sold --smooth sigmoid:k=5,f=2 --scheme loo",
        "price --smooth eb:between --scheme ordered --permutations 3 --no-average",
        "price --smooth eb:total --scheme ordered --time day --burn-in 5",
        "sold --smooth james-stein --scheme time --time day --folds 3 --gap 1",
        "sold --smooth partial-pooling --groups shop --folds 4",
        "sold --fold-column fold --columns city --prior 0.25",
        "kind --stratify --drop first",
        "sold --blow-up --folds 2 --order contiguous",
        "price --weight weight --prior category_mean --min-count 3 --indicators",
        "sold --interactions city,device,member --interaction-order 2",
        "sold --columns zip --hierarchy zip=prefix:4,3 --smooth m=2",
        "sold --columns zip,shop --hierarchy shop=bits:2,1 --smooth m=2 --prior zip=0.1 --prior shop=0.2",
        "sold --columns device --hierarchy device=city --smooth m=2",
        "sold,price --target-type binary,continuous",
        "sold --handle-unknown nan --handle-missing prior --dtype float32 --device cpu",
    ],
)
def test_every_choice_works_and_its_model_encodes_new_rows(run: Run, orders: pa.Table, options: str) -> None:
    run(f"{FIT} {options}")
    codes = read("codes.parquet")
    assert codes.num_rows == orders.num_rows
    assert "amount" in codes.column_names
    run("transform orders.parquet new.parquet --model orders.model")
    new = read("new.parquet")
    assert new.num_rows == orders.num_rows
    if not {"--no-average", "--blow-up"} & set(options.split()):
        assert new.column_names == codes.column_names
    run("inspect orders.model")


def test_columns_that_were_chosen_are_said(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} sold")
    assert capsys.readouterr() == ("", "gpu-encode: encoding city, device, zip, member, kind\n")
    run(f"{FIT} sold --columns city")
    assert capsys.readouterr() == ("", "")


def test_target_and_weight_come_last_or_are_dropped(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} sold --columns city --weight weight")
    assert read("codes.parquet").column_names[-2:] == ["weight", "sold"]
    assert read("codes.parquet")["weight"].equals(orders["weight"])
    run(f"{FIT} sold --columns city --weight weight --drop-target")
    assert not {"sold", "weight"} & set(read("codes.parquet").column_names)


def test_a_target_that_is_called_like_an_output_is_refused(refused: Refused, orders: pa.Table) -> None:
    pyarrow.parquet.write_table(orders.rename_columns({"sold": "city_unseen"}), "orders.parquet")
    assert "two columns named 'city_unseen'" in refused(f"{FIT} city_unseen --columns city --indicators")


def test_passed_columns_are_untouched(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} sold --columns city")
    codes = read("codes.parquet")
    passed = [name for name in orders.column_names if name not in ("city", "sold")]
    assert codes.column_names == ["city", *passed, "sold"]
    assert codes.select(passed).equals(orders.select(passed))


def test_transform_needs_no_target(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} sold --columns city")
    pyarrow.parquet.write_table(orders.drop_columns(["sold"]), "new.parquet")
    run("transform new.parquet codes.parquet --model orders.model")
    assert "sold" not in read("codes.parquet").column_names


def test_transform_in_pieces_gives_the_same_bits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run(f"{FIT} price")
    run("transform orders.parquet whole.parquet --model orders.model")
    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    run("transform orders.parquet pieces.parquet --model orders.model")
    assert read("pieces.parquet").equals(read("whole.parquet"))


def test_transform_of_no_rows_gives_no_rows(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} price")
    pyarrow.parquet.write_table(orders.slice(0, 0), "none.parquet")
    run("transform none.parquet codes.parquet --model orders.model")
    assert read("codes.parquet").num_rows == 0
    run("transform orders.parquet some.parquet --model orders.model")
    assert read("codes.parquet").schema == read("some.parquet").schema


def test_zeros_in_front_are_kept_from_csv_to_csv(run: Run, orders: pa.Table) -> None:
    with Path("orders.csv").open("w") as stream:
        for row in [{"zip": "zip", "sold": "sold"}, *orders.to_pylist()]:
            stream.write(f"{row['zip']},{row['sold']}\n")
    run("fit-transform orders.csv codes.csv --model zip.model --target sold --columns zip --text zip")
    assert gpu_encode.load("zip.model").categories_[0][0] == min(orders["zip"].to_pylist())
    run("transform orders.csv new.csv --model zip.model")
    assert read("new.csv").num_rows == orders.num_rows


def test_missing_text_is_missing(run: Run, orders: pa.Table) -> None:
    marked = orders.set_column(0, "city", pc.fill_null(orders["city"], "?"))
    pyarrow.parquet.write_table(marked, "marked.parquet")
    run(f"{FIT} sold --columns city")
    run(f"{FIT.replace('orders.parquet codes', 'marked.parquet other')} sold --columns city --missing-text ?")
    assert read("other.parquet").equals(read("codes.parquet"))
    run("transform marked.parquet new.parquet --model orders.model --missing-text ?")


def test_rows_without_a_target_are_left_out_when_asked(run: Run, refused: Refused, orders: pa.Table) -> None:
    prices = pa.array([None, float("nan"), *orders["price"].to_pylist()[2:]])
    pyarrow.parquet.write_table(orders.drop_columns(["price"]).append_column("price", prices), "orders.parquet")
    refused(f"{FIT} price --columns city")
    run(f"{FIT} price --columns city --drop-missing-target")
    assert read("codes.parquet").num_rows == orders.num_rows - 2


def test_greedy_warns_in_one_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} sold --columns city --scheme greedy")
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("gpu-encode: warning: ")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{FIT} slod", "--target: there is no column 'slod'; did you mean 'sold'?"),
        (f"{FIT} sold --columns sity", "--columns: there is no column 'sity'; did you mean 'city'?"),
        (f"{FIT} sold --columns sold", "column 'sold' is the target or weight"),
        (f"{FIT} sold --smooth m=-1", "m"),
        (f"{FIT} sold --folds 1 --columns city", "1"),
        (f"{FIT} kind --target-type continuous --columns city", "continuous"),
        (f"{FIT} sold --foldz 3", "unknown option '--foldz'; did you mean '--folds'?"),
        (f"{FIT} sold --scheme kfolds", "did you mean 'kfold'?"),
        (f"{FIT} sold --folds many", "argument --folds: invalid int value: 'many'"),
        (f"{FIT} sold extra", "unknown extra argument 'extra'"),
        ("fit-transform orders.parquet orders.parquet --target sold", "INPUT and OUTPUT are the same file"),
        (
            "fit-transform orders.parquet codes.csv --target sold --model codes.csv",
            "OUTPUT and --model are the same file",
        ),
        ("fit-transform orders.parquet codes.parquet", "name its column with --target COL"),
        ("fit-transform absent.parquet codes.csv --target sold", "there is no file 'absent.parquet'"),
        ("fit-transform orders.parquet codes.xlsx --target sold", "no known format has the suffix '.xlsx'"),
        ("fit-transform orders.parquet absent/codes.csv --target sold", "there is no folder"),
        ("transform orders.parquet codes.parquet --model absent.model", "there is no model 'absent.model'"),
        ("transform orders.parquet codes.parquet --model orders.parquet", "INPUT and --model are the same file"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(refused: Refused, line: str, says: str) -> None:
    assert says in refused(line)


def test_a_file_that_is_no_model(refused: Refused, folder: Path) -> None:
    (folder / "orders.model").write_bytes(b"not a model")
    refused("transform orders.parquet codes.parquet --model orders.model")
    refused("inspect orders.model")


def test_columns_missing_at_transform(run: Run, refused: Refused, orders: pa.Table) -> None:
    run(f"{FIT} sold --columns city")
    pyarrow.parquet.write_table(orders.drop_columns(["city"]), "new.parquet")
    assert "city" in refused("transform new.parquet other.parquet --model orders.model")


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", ["output", "model"])
@pytest.mark.parametrize("was_there", [True, False])
def test_a_full_disk_leaves_neither_output_nor_model(
    folder: Path, what: str, was_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if was_there:
        (folder / "codes.parquet").write_text("old codes")
        (folder / "orders.model").write_text("old model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    if what == "output":
        monkeypatch.setattr(Writer, "write", full)
    else:
        monkeypatch.setattr(gpu_encode.TargetEncoder, "save", full)
    assert main(f"{FIT} sold --columns city".split()) == 1
    assert "the disk is full" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (SystemExit(143), 143)])
def test_an_interrupt_leaves_nothing(
    folder: Path, error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(gpu_encode.TargetEncoder, "save", interrupted)
    assert main(f"{FIT} sold --columns city".split()) == status
    assert [path.name for path in folder.iterdir()] == ["orders.parquet"]
