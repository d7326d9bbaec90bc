"""In chunks the two commands give what they give of one file in memory, and go on after an interruption."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode
from gpu_encode.cli import main
from gpu_encode.cli.arguments import parse
from gpu_encode.cli.streams import is_streamed
from gpu_encode.datasets import encoding

Run = Callable[[str], None]
Refused = Callable[[str], str]

OPTIONS = "--target sold --weight weight --columns city,device+zip --folds 4 --smooth m=5"


@pytest.fixture
def pieces(folder: Path, orders: pa.Table) -> Path:
    """The orders in three files as well."""
    (folder / "in").mkdir()
    for number, start in enumerate((0, 70, 140)):
        pyarrow.parquet.write_table(orders.slice(start, 70), f"in/{number}.parquet", row_group_size=20)
    return folder


def read(name: str) -> pa.Table:
    path = Path(name)
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    return pa.concat_tables([pyarrow.parquet.read_table(each) for each in paths])


@pytest.mark.parametrize("options", [OPTIONS, "--target price --scheme loo", "--target kind --drop-target"])
@pytest.mark.parametrize("words", ["in codes/", "in/*.parquet codes", "in/0.parquet in/1.parquet in/2.parquet codes"])
def test_the_bits_are_those_of_one_file(pieces: Path, run: Run, words: str, options: str) -> None:
    run(f"fit-transform orders.parquet whole.parquet --model whole.model {options}")
    run(f"fit-transform {words} --model codes.model {options}")
    assert read("codes").equals(read("whole.parquet"))
    assert sorted(path.name for path in Path("codes").iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]
    run("transform orders.parquet new.parquet --model whole.model")
    run(f"transform {words.replace('codes', 'new')} --model codes.model")
    assert read("new").equals(read("new.parquet"))


def test_one_file_below_a_limit(folder: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("codes.parquet").write_text("an old file, which is replaced")
    run(f"fit-transform orders.parquet codes.parquet --memory-limit 2GiB --model codes.model {OPTIONS}")
    said = capsys.readouterr().err
    assert "gpu-encode: 200 rows of" in said
    run(f"fit-transform orders.parquet whole.parquet --model whole.model {OPTIONS}")
    assert read("codes.parquet").equals(read("whole.parquet"))
    run("transform orders.parquet new.parquet --memory-limit 2GiB --model codes.model")
    run("transform orders.parquet also.parquet --model whole.model")
    assert read("new.parquet").equals(read("also.parquet"))


def test_text_and_rows_without_a_target(folder: Path, run: Run) -> None:
    cells = [(f"{number:05d}", number % 3 or "", "?" if number % 5 else "Bonn") for number in range(90)]
    lines = ["zip,price,city", *(",".join(map(str, row)) for row in cells)]
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    options = "--target price --target-type continuous --columns zip,city --text zip --missing-text ?"
    options += " --drop-missing-target"
    run(f"fit-transform rows.csv whole.parquet --model whole.model {options}")
    run(f"fit-transform rows.csv codes.parquet --model codes.model --memory-limit 2GiB {options}")
    assert read("codes.parquet").equals(read("whole.parquet"))
    whole, codes = (gpu_encode.load(name) for name in ("whole.model", "codes.model"))
    assert [each.tolist() for each in whole.categories_] == [each.tolist() for each in codes.categories_]


def test_an_interrupted_command_says_how_to_go_on(
    pieces: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    line = f"fit-transform in codes --model codes.model {OPTIONS}"
    with monkeypatch.context() as patched:
        patched.setattr(encoding, "fit", interrupted)
        assert main(line.split()) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "gpu-encode: interrupted"
    assert "(--resume) goes on from it" in said[-1]
    assert not Path("codes").exists()
    assert not Path("codes.model").exists()
    monkeypatch.setattr(encoding, "measure", interrupted)
    run(f"{line} --resume")
    run(f"fit-transform orders.parquet whole.parquet --model whole.model {OPTIONS}")
    assert read("codes").equals(read("whole.parquet"))


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


def test_a_model_that_cannot_be_written_is_refused_before_work(pieces: Path, refused: Refused) -> None:
    assert "absent' to write 'codes.model' to" in refused(
        f"fit-transform in codes --model absent/codes.model {OPTIONS}"
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fit-transform in orders.parquet/ --target sold", "is, or holds, a file of the source"),
        ("fit-transform in in --target sold", "is, or holds, a file of the source"),
        ("fit-transform in in/codes --target sold", "is in the source folder"),
        ("fit-transform in full --target sold", "'full' is there already and not an empty folder"),
        ("fit-transform absent/*.parquet codes --target sold", "as a glob it matches nothing"),
        ("fit-transform in codes --target slod", "--target: there is no column 'slod'; did you mean 'sold'?"),
        ("fit-transform in codes --target sold --memory-limit much", "memory_limit must be a whole number of bytes"),
        ("fit-transform in codes --target sold --memory-limit 3MB", "Give at least"),
        ("fit-transform in codes --target sold --model codes", "OUTPUT and --model are the same file"),
        ("transform in codes --model absent.model", "there is no model 'absent.model'"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(pieces: Path, refused: Refused, line: str, says: str) -> None:
    Path("full").mkdir()
    Path("full/x").write_text("")
    if "orders.parquet/" in line:
        line = line.replace("in orders.parquet/", "orders.parquet orders.parquet --resume")
    assert says in refused(line)


@pytest.mark.parametrize(
    ("words", "streamed"),
    [
        ("rows.csv codes.csv", False),
        ("rows.csv codes", True),
        ("a.csv b.csv codes.csv", True),
        ("*.csv codes.csv", True),
        ("rows.csv codes.csv --resume", True),
        ("rows.csv codes.csv --memory-limit 1GB", True),
        (". codes.csv", True),
    ],
)
def test_when_work_is_done_in_chunks(words: str, streamed: bool) -> None:
    assert is_streamed(parse(["transform", *words.split(), "--model", "m"])) is streamed
