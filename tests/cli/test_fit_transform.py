"""The commands write the results of the library, for one file or several; files appear together or not at all."""

import datetime
import decimal
import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import gpu_encode
from gpu_encode.cli import main
from gpu_encode.scale.files import encoding, memory
from gpu_encode.scale.files.source import Size
from gpu_encode.scale.files.staging import Staging
from gpu_encode.scale.files.writing import RowWriter
from tests.bits import assert_same_bits
from tests.scale.files.encoded import read_rows

Run = Callable[[str], None]
Refused = Callable[[str], str]

FIT = "fit-transform orders.parquet codes.parquet --model orders.model --target"


OPTIONS = "--target sold --weight weight --columns city,device+zip --cv 4 --smooth 5"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let chunks have 24 rows, whatever the limit."""
    monkeypatch.setattr(memory, "chunk_size", lambda *_: Size(24, batch_rows=10))


@pytest.mark.parametrize(
    "options",
    [
        "sold",
        """price --smooth 'EmpiricalBayes("between")' --cv 'Ordered(3, average=False)'""",
        """sold --smooth james-stein --cv 'TimeFolds(3, time="day", gap=1)'""",
        """sold --cv 'TimeFolds(3, time="day", half_life=10)'""",
        """price --cv 'Ordered(time="day", window=5)'""",
        "kind --cv 'KFold(stratify=True)' --drop first",
        "sold --cv 'KFold(2, order=\"contiguous\", blow_up=True)'",
        "price --weight weight --prior category_mean --min-count 3 --indicators --drop-missing-target",
        "sold --interactions city,device,member --interaction-order 2",
        """sold --columns zip --hierarchy '{"zip": Prefixes(4, 3)}' --smooth 2""",
        """sold --columns zip,shop --hierarchy '{"shop": Bits(2, 1)}' --smooth 2 --prior '{"zip": 0.1, "shop": 0.2}'""",
        """sold --columns zip,city+shop --smooth '{("city", "shop"): Sigmoid(5, 2)}'
        --prior '{("city", "shop"): "category_mean", "zip": 0}'""",
        "sold,price --target-type binary,continuous",
        "sold --handle-unknown nan --handle-missing prior --dtype float32 --device cpu",
    ],
)
def test_every_choice_works_and_its_model_encodes_new_rows(run: Run, orders: pa.Table, options: str) -> None:
    run(f"{FIT} {options}")
    run("transform orders.parquet new.parquet --model orders.model")
    encoded, new = read_rows("codes.parquet"), read_rows("new.parquet")
    assert "amount" in encoded.column_names
    assert encoded.num_rows == new.num_rows == orders.num_rows
    if "average=False" not in options and "blow_up" not in options:
        assert new.column_names == encoded.column_names
    run("inspect orders.model")


@pytest.mark.filterwarnings("ignore:.*rows see no rows at all")
@pytest.mark.parametrize("scheme", ["TimeFolds", "Ordered"])
@pytest.mark.parametrize(("parameter", "span"), [("half_life", 10), ("window", 5)])
def test_ages_are_those_of_the_library(run: Run, orders: pa.Table, scheme: str, parameter: str, span: int) -> None:
    run(f"{FIT} price --columns city --cv '{scheme}(time=\"day\", {parameter}={span})'")
    cv = getattr(gpu_encode, scheme)(time="day", **{parameter: span})
    rows, price = orders.select(["city", "day"]), orders["price"]
    expected = gpu_encode.TargetEncoder(columns=["city"], cv=cv).fit_transform(rows, price)["city"]
    assert_same_bits(read_rows("codes.parquet")["city"].to_numpy(), expected.to_numpy())


def test_spans_that_do_not_fit_the_times_are_refused(refused: Refused) -> None:
    line = f"{FIT} sold --cv"
    asks = "asks for the ages of rows. Name the column of their times"
    assert asks in refused(f"{line} 'Ordered(half_life=\"7d\")'")
    assert "does not fit the time column, which holds" in refused(f'{line} \'Ordered(half_life="7d", time="day")\'')
    assert "above 0" in refused(f'{line} \'Ordered(half_life="week", time="day")\'')


def test_chosen_columns_of_one_row_a_category_are_told(
    run: Run, orders: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [f"n{row}" for row in range(len(orders))]
    columns = {
        "order": numbers,
        "gaps": [number if row % 3 else None for row, number in enumerate(numbers)],
        "nearly": [numbers[row - row % 19 % 2] for row in range(len(orders))],
        "half": [numbers[row // 2] for row in range(len(orders))],
    }
    for name, values in columns.items():
        orders = orders.append_column(name, pa.array(values))
    pyarrow.parquet.write_table(orders, "orders.parquet")
    for options, told in (
        ("", True),
        ("--tables disk", True),
        ("--columns city,order", False),
        ("--encoder hashing", False),
    ):
        target = "" if "hashing" in options else "--target sold"
        run(f"fit-transform orders.parquet codes.parquet {target} {options}")
        lines = [line for line in capsys.readouterr().err.splitlines() if "a category of its own" in line]
        assert len(lines) == told
        for line in lines:
            assert "'order' (200 categories, 200 rows), 'gaps' (133 categories, 133 rows). New rows" in line
            assert "--columns" in line
    pyarrow.parquet.write_table(orders[:99], "orders.parquet")
    run("fit-transform orders.parquet codes.parquet --target sold")
    assert "a category of its own" not in capsys.readouterr().err


def test_columns_that_were_chosen_are_said(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FIT} sold")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("gpu-encode: encoding city, device, zip, member, kind\ngpu-encode: in 1 chunk to 1 file")
    run(f"{FIT} sold --columns device")
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"gpu-encode: 200 rows of 12 columns in \d+\.\d s; missing values: none", last)
    run("transform orders.parquet new.parquet --model orders.model")
    assert capsys.readouterr().err.endswith(" s; missing values: none; unseen values: none\n")


@pytest.mark.parametrize("encoder", ["target", "one-hot"])
@pytest.mark.parametrize("chunks", ["one chunk", "many chunks"])
def test_missing_and_unseen_rows_are_said(
    run: Run, orders: pa.Table, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest, encoder, chunks
) -> None:
    if chunks == "many chunks":
        request.getfixturevalue("small_chunks")
    amount = pa.array([float("nan")] * 3 + [None] + [1.0] * 196)
    orders = orders.set_column(4, "amount", amount)
    pyarrow.parquet.write_table(orders, "orders.parquet")
    options = "--target sold" if encoder == "target" else "--handle-unknown ignore"
    run(
        f"fit-transform orders.parquet codes.parquet --model orders.model --encoder {encoder} {options} "
        "--columns city,shop,amount,device"
    )
    missing = orders["city"].null_count
    words = f" s; missing values: city {missing / 2:.1f}% ({missing} rows), amount 2.0% (4 rows)\n"
    said = capsys.readouterr().err
    assert words in said
    assert "unseen" not in said
    shop = pc.if_else(pc.less(orders["shop"], 9), 99, orders["shop"])
    city = pa.array(["Rome", *orders["city"].to_pylist()[1:]])
    new = orders.set_column(6, "shop", shop).set_column(0, "city", city).append_column("late", orders["shop"])
    pyarrow.parquet.write_table(new, "new.parquet")
    run("transform new.parquet codes.parquet --model orders.model")
    said, n_unseen = capsys.readouterr().err, pc.sum(pc.equal(shop, 99)).as_py()
    assert f"; unseen values: city 0.5% (1 row), shop {n_unseen / 2:.1f}% ({n_unseen} rows)\n" in said
    assert (
        f" s; missing values: city {city.null_count / 2:.1f}% ({city.null_count} rows), amount 2.0% (4 rows);" in said
    )
    # Once, of all rows, and not of each chunk.
    assert said.count(f"{n_unseen / 200:.0%} of the rows have values of 'shop' that fit has not seen") == 1


@pytest.mark.usefixtures("small_chunks")
def test_rows_without_a_target_are_kept_or_left_out(
    run: Run, orders: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = pc.less(orders["shop"], 4)
    rows = orders.set_column(9, "price", pc.if_else(lacking, None, orders["price"]))
    pyarrow.parquet.write_table(rows, "orders.parquet")
    options = f"{FIT} price --columns shop --cv fold"
    run(f"{options} --missing-target keep")
    encoder = gpu_encode.TargetEncoder(columns=["shop"], cv="fold", missing_target="keep")
    expected = encoder.fit_transform(rows.drop_columns(["price"]), rows["price"])
    kept = read_rows("codes.parquet")
    assert kept["shop"].equals(expected["shop"])
    run(f"{options} --drop-missing-target")
    assert read_rows("codes.parquet")["shop"].equals(kept["shop"].filter(pc.invert(lacking)))
    assert main([*options.split(), "--overwrite"]) == 2
    assert "(--missing-target keep)" in capsys.readouterr().err


def test_target_and_weight_are_dropped_when_asked(run: Run) -> None:
    run(f"{FIT} sold --columns city --weight weight --drop-target")
    assert not {"sold", "weight"} & set(read_rows("codes.parquet").column_names)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv.gz", ".arrow"])
def test_no_byte_depends_on_the_size_of_chunks(
    run: Run, suffix: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(memory, "group_rows", lambda _: 50)
    fit = f"fit-transform orders.parquet codes{suffix} {OPTIONS} --model orders.model"
    transform = f"transform orders.parquet new{suffix} --model orders.model"
    outputs = []
    # A process that ran other tests may hold more than a GiB already.
    for limit in ("", " --memory-limit 6GiB", " --memory-limit 5GiB"):
        if "5GiB" in limit:
            request.getfixturevalue("small_chunks")
        run(fit + limit)
        run(transform + limit)
        outputs.append([Path(f"{name}{suffix}").read_bytes() for name in ("codes", "new")])
    assert outputs[0] == outputs[1] == outputs[2]
    if suffix == ".parquet":
        metadata = pyarrow.parquet.read_metadata("codes.parquet")
        assert [metadata.row_group(number).num_rows for number in range(4)] == [50] * 4


def test_transform_of_no_rows_gives_no_rows(run: Run, orders: pa.Table) -> None:
    run(f"{FIT} price")
    pyarrow.parquet.write_table(orders.slice(0, 0), "none.parquet")
    run("transform none.parquet codes.parquet --model orders.model")
    assert read_rows("codes.parquet").num_rows == 0
    run("transform orders.parquet some.parquet --model orders.model")
    assert read_rows("codes.parquet").schema == read_rows("some.parquet").schema


def test_zeros_in_front_are_kept_from_csv_to_csv(run: Run, orders: pa.Table) -> None:
    lines = [f"{row['zip']},{row['sold']}" for row in [{"zip": "zip", "sold": "sold"}, *orders.to_pylist()]]
    Path("orders.csv").write_text("\n".join(lines))
    run("fit-transform orders.csv codes.csv --model zip.model --target sold --columns zip --text zip")
    assert gpu_encode.load("zip.model").categories_[0][0] == min(orders["zip"].to_pylist())
    run("transform orders.csv new.csv --model zip.model")
    assert read_rows("new.csv").num_rows == orders.num_rows


def test_missing_text_is_missing(run: Run, orders: pa.Table) -> None:
    marked = orders.set_column(0, "city", pc.fill_null(orders["city"], "?"))
    pyarrow.parquet.write_table(marked, "marked.parquet")
    run(f"{FIT} sold --columns city")
    run(f"{FIT.replace('orders.parquet codes', 'marked.parquet other')} sold --columns city --missing-text ?")
    assert read_rows("other.parquet").equals(read_rows("codes.parquet"))
    run("transform marked.parquet new.parquet --model orders.model --missing-text ?")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{FIT} slod", "--target: there is no column 'slod'; did you mean 'sold'?"),
        (f"{FIT} sold --cv 1 --columns city", "1"),
        (f"{FIT} kind --target-type continuous --columns city", "continuous"),
        (f"{FIT} sold --foldz 3", "unknown option '--foldz' (see"),
        (f"{FIT} sold --smoth 3", "unknown option '--smoth'; did you mean '--smooth'?"),
        (f"{FIT} sold --cv kfolds", "'kfolds' is no scheme and no column; did you mean 'KFold'?"),
        (f"{FIT} sold --seed many", "argument --seed: invalid int value: 'many'"),
        (f"{FIT} sold --folds 3", "unknown option '--folds'"),
        (f"{FIT} sold --columns city --smooth '{{\"sity\": 2}}'", "'sity' is not a column of X. Did you mean 'city'?"),
        (
            f"{FIT} sold --columns city --cv group",
            "--cv group needs the name of a column: --cv 'GroupKFold(groups=\"COL\")'",
        ),
        (f"{FIT} sold extra", "unknown extra argument 'extra'"),
        ("fit-transform orders.parquet orders.parquet --target sold", "is, or holds, a file of the source"),
        ("fit-transform orders.parquet codes.csv --target sold --model codes.csv", "OUTPUT and --model are the same"),
        ("fit-transform absent.parquet codes.csv --target sold", "there is no file or folder 'absent.parquet'"),
        ("fit-transform orders.parquet codes.parqet --target sold", "suffix. Did you mean '.parquet'"),
        ("fit-transform orders.parquet codes --target sold --memory-limit 3MB", "Give at least"),
        ("fit-transform orders.parquet codes --target sold --model absent/codes.model", "to write 'codes.model' to"),
        ("transform orders.parquet codes.parquet --model absent.model", "there is no model 'absent.model'"),
        ("transform orders.parquet codes.parquet --model orders.parquet", "INPUT and --model are the same file"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(pieces: Path, refused: Refused, line: str, says: str) -> None:
    assert says in refused(line)


def test_a_file_that_is_no_model(refused: Refused, folder: Path) -> None:
    (folder / "orders.model").write_bytes(b"not a model")
    refused("transform orders.parquet codes.parquet --model orders.model")
    refused("inspect orders.model")


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", ["output", "model", "last step"])
@pytest.mark.parametrize("was_there", [True, False])
def test_a_full_disk_leaves_neither_output_nor_model(
    folder: Path, what: str, was_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if was_there:
        (folder / "codes.parquet").write_text("old codes")
        (folder / "orders.model").write_text("old model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    owners = {
        "output": (RowWriter, "write"),
        "model": (gpu_encode.TargetEncoder, "save"),
        "last step": (Staging, "publish"),
    }
    monkeypatch.setattr(*owners[what], full)
    assert main(f"{FIT} sold --columns city --overwrite".split()) == 1
    said = capsys.readouterr().err
    assert f"the disk is full (no space left on device, which is '/'): '{folder / 'codes.parquet'}' was not" in said
    assert ("(--resume) continues from there" in said) is (what != "output")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("path", ["codes.parquet", "codes"])
@pytest.mark.usefixtures("pieces")
def test_one_rule_for_what_is_overwritten(run: Run, refused: Refused, path: str) -> None:
    fit = "fit-transform in {} --target sold --columns city"
    run(f"{fit.format('other.parquet')} --model x.model")
    for line in (fit.format(path), f"transform in {path} --model x.model"):
        run(line)
        assert f"the destination '{path}' is there already. Give overwrite=True (--overwrite)" in refused(line)
        run(line)
        assert read_rows(path).num_rows == 200
    said = refused(f"{fit.format('third.parquet')} --model x.model")
    assert said.endswith("the model 'x.model' is there already: give --overwrite to replace it at the end")


@pytest.mark.parametrize("path", ["codes.parquet", "codes"])
@pytest.mark.usefixtures("pieces")
def test_a_finished_run_has_nothing_to_go_on_with(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"fit-transform in {path} --model x.model --target sold --columns city --resume".split()
    assert main(line) == 0
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    capsys.readouterr()
    for words in (line, f"transform in {path} --model x.model --resume".split()):
        assert main(words) == 0
        [said] = capsys.readouterr().err.splitlines()
        assert said.startswith(f"gpu-encode: nothing to do: {path} is there, newer than what it is made of")
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before
    # Rows that have changed since are another matter, and so is a model that is not there.
    Path("x.model").rename("y.model")
    assert main(line) == 2
    Path("y.model").rename("x.model")
    os.utime("in/0.parquet")
    assert main(line) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("/dev/null codes.parquet", "source '/dev/null' is no file or folder. Rows are read several times"),
        ("- codes.parquet", "source '-' is no file or folder. Rows are read several times"),
        ("orders.parquet -", "destination '-' is no file or folder. Output appears whole at the end"),
        ("orders.parquet /dev/null", "destination '/dev/null' is no file or folder. Output appears whole at the end"),
    ],
)
def test_pipes_are_refused(refused: Refused, words: str, says: str) -> None:
    assert says in refused(f"fit-transform {words} --encoder count --columns city")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs names of open files")
def test_the_name_of_a_pipe_is_refused(refused: Refused) -> None:
    # As /dev/stdout, it is a link that leads to no name.
    ends = os.pipe()
    message = refused(f"fit-transform orders.parquet /dev/fd/{ends[1]} --encoder count --columns city")
    assert f"destination '/dev/fd/{ends[1]}' is no file or folder" in message
    for end in ends:
        os.close(end)


def test_files_that_were_there_are_replaced_and_keep_their_mode(folder: Path, run: Run) -> None:
    for name in ("codes.parquet", "orders.model"):
        Path(name).write_text("old")
        Path(name).chmod(0o640)
    run(f"{FIT} sold --columns city")
    assert [stat.S_IMODE(Path(name).stat().st_mode) for name in ("codes.parquet", "orders.model")] == [0o640] * 2
    assert read_rows("codes.parquet").num_rows == 200


@pytest.mark.parametrize("words", ["in codes/", "in/*.parquet codes", "in/0.parquet in/1.parquet in/2.parquet codes"])
@pytest.mark.usefixtures("pieces")
def test_several_files_have_the_bits_of_one(run: Run, words: str) -> None:
    run(f"fit-transform orders.parquet whole.parquet --model whole.model {OPTIONS}")
    run(f"fit-transform {words} --model codes.model {OPTIONS}")
    assert read_rows("codes").equals(read_rows("whole.parquet"))
    assert sorted(path.name for path in Path("codes").iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]
    run("transform orders.parquet new.parquet --model whole.model")
    run(f"transform {words.replace('codes', 'new')} --model codes.model")
    assert read_rows("new").equals(read_rows("new.parquet"))


@pytest.mark.usefixtures("small_chunks")
def test_an_interrupted_command_says_how_to_go_on(
    pieces: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    line = f"fit-transform in codes --model codes.model {OPTIONS}"
    with monkeypatch.context() as patched:
        # Sums are saved as in a run of more than a minute.
        patched.setattr(encoding, "SAVE_AFTER", 0)
        patched.setattr(encoding, "fit", interrupted)
        assert main(line.split()) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "gpu-encode: interrupted"
    assert "(--resume) continues from there" in said[-1]
    assert not Path("codes").exists()
    assert not Path("codes.model").exists()
    run(f"fit-transform orders.parquet whole.parquet --model whole.model {OPTIONS}")
    monkeypatch.setattr(encoding, "measure", interrupted)
    run(f"{line} --resume")
    assert read_rows("codes").equals(read_rows("whole.parquet"))


def test_a_model_in_the_making_is_not_seen_while_rows_are_read(
    pieces: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that is killed cannot take away what it made.
    def names() -> list[str]:
        return sorted(path.name for path in pieces.iterdir())

    seen, fit = [], encoding.fit
    monkeypatch.setattr(encoding, "fit", lambda *given: seen.append(names()) or fit(*given))
    before = names()
    run(f"fit-transform in codes --model codes.model {OPTIONS}")
    assert seen == [sorted([".codes.gpu-encode", *before])]
    assert names() == sorted(["codes", "codes.model", *before])


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".feather", ".arrow"])
@pytest.mark.usefixtures("folder")
def test_columns_that_pass_through_come_back_as_they_were(run: Run, suffix: str) -> None:
    rows = pa.table(
        {
            "city": ["Bonn", None, 'a "b",\tc', "x\ny"],
            "price": [0.1, -1e300, 5e-324, None],
            "number": [1, 2, None, 2**62],
            "member": [True, False, None, True],
            "day": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)],
            "key": ["a", "b", "a", "a"],
        }
    )
    with RowWriter(Path(f"rows{suffix}"), rows.schema) as writer:
        writer.write(rows)
    run(f"fit-transform rows{suffix} codes{suffix} --encoder count --columns key")
    output = read_rows(f"codes{suffix}")
    assert output.drop_columns(["key"]).equals(rows.drop_columns(["key"]))
    assert output["key"].to_pylist() == [3, 1, 3, 3]


@pytest.mark.usefixtures("folder")
def test_what_csv_holds_and_what_it_cannot(run: Run, refused: Refused) -> None:
    pyarrow.parquet.write_table(pa.table({"key": ["a"], "price": [decimal.Decimal("1.50")]}), "rows.parquet")
    run("fit-transform rows.parquet codes.csv --encoder count --columns key")
    assert Path("codes.csv").read_text() == '"key","price"\n1,"1.50"\n'
    pyarrow.parquet.write_table(pa.table({"key": ["a"], "tags": [["a"]]}), "rows.parquet")
    said = refused("fit-transform rows.parquet other.csv --encoder count --columns key")
    assert "column 'tags' holds list<" in said
    assert "which CSV cannot: write Parquet" in said


@pytest.mark.usefixtures("folder")
def test_csv_knows_missing_values_and_text_that_passes_through_keeps_its_words(run: Run) -> None:
    Path("rows.csv").write_text('country,price,key\n"NA",1.5,a\nNA,,NA\n"","",b\n,2,None\nNone,3,b\n')
    run("fit-transform rows.csv codes.parquet --encoder count --columns key")
    output = read_rows("codes.parquet")
    assert output["key"].to_pylist() == [1, 2, 2, 2, 2]
    assert output["country"].to_pylist() == ["NA", "NA", "", None, "None"]
    assert output["price"].to_pylist() == [1.5, None, None, 2.0, 3.0]


@pytest.mark.parametrize("cell", ["{}", "${}.1"], ids=["whole numbers", "text"])
def test_a_quantity_that_would_be_very_many_classes_is_an_error(
    run: Run, refused: Refused, folder: Path, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    for n_classes in (999, 1000):
        lines = (f"c{row % 7},{cell.format(row % n_classes)}\n" for row in range(2000))
        (folder / f"{n_classes}.csv").write_text("city,y\n" + "".join(lines))
    run("fit-transform 999.csv codes.csv --target y")
    assert "multiclass with 999 classes" in capsys.readouterr().err
    said = refused("fit-transform 1000.csv more.csv --target y")
    assert "would be 1000 classes" in said
    assert "--target-type continuous" in said
    assert "--target-type multiclass" in said
    run("fit-transform 1000.csv more.csv --target y --target-type multiclass")
