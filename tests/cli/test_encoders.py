"""Every encoder on files gives the results of the library, in one piece and in chunks; mistakes give one line."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_encode
import gpu_encode as ge
from gpu_encode.cli import main
from gpu_encode.cli.arguments import FIT_TRANSFORM, parse
from gpu_encode.cli.encoders import ELSEWHERE, ENCODERS, encoder_parameters, parameters_of
from gpu_encode.cli.inspect_model import plain
from gpu_encode.cli.messages import UsageError
from gpu_encode.encoders.codes import CodesEncoder
from gpu_encode.encoders.summed import SummedEncoder
from gpu_encode.formulas.statistic_names import NAMES, OF_DATES, OF_TEXT
from tests.scale.files.encoded import assert_same_table, read_rows

Run = Callable[[str], None]
Refused = Callable[[str], str]

KEYS = ["city", ("device", "zip")]
# Words of the command, the target that they name, and the encoder that they stand for.
FAMILY = [
    ("--target sold --smooth 'MEstimate(3)' --max-categories 5 --set handle_infrequent=category --set scale=sqrt",
     "sold",
     ge.TargetEncoder(smooth=ge.MEstimate(3), max_categories=5, handle_infrequent="category", scale="sqrt")),
    ("--encoder count --kind log --min-frequency 0.01 --handle-unknown nan", None,
     ge.CountEncoder("log", min_frequency=0.01, handle_unknown="nan")),
    ("--encoder count --min-frequency 3 --handle-missing zero --indicators --dtype float32", None,
     ge.CountEncoder(min_frequency=3, handle_missing="zero", indicators=True, dtype="float32")),
    ("--encoder ordinal --dtype int32 --order frequency --set encoded_missing_value=-1", None,
     ge.OrdinalEncoder(dtype="int32", order="frequency", encoded_missing_value=-1)),
    ("--encoder ordinal --order random --seed 4 --set n_draws=2", None,
     ge.OrdinalEncoder(order="random", random_state=4, n_draws=2)),
    ("--encoder ordinal --order target --target price --handle-unknown use_encoded_value --set unknown_value=NaN",
     "price", ge.OrdinalEncoder(order="target", handle_unknown="use_encoded_value", unknown_value=np.nan)),
    ("--encoder one-hot --max-categories 3 --drop first --handle-unknown infrequent_if_exist", None,
     ge.OneHotEncoder(max_categories=3, drop="first", handle_unknown="infrequent_if_exist", sparse_output=False)),
    ("""--encoder one-hot --handle-unknown ignore
     --drop '{"city": "Bonn", ("device", "zip"): ("phone", "01001")}'""", None,
     ge.OneHotEncoder(drop={"city": "Bonn", ("device", "zip"): ("phone", "01001")}, handle_unknown="ignore",
                      sparse_output=False)),
    ("--target kind --drop old --missing-target keep", "kind",
     ge.TargetEncoder(drop="old", missing_target="keep")),
    ("--encoder hashing --n-components 5 --seed 3 --set per_column=true --set alternate-sign=True", None,
     ge.HashingEncoder(5, seed=3, per_column=True, alternate_sign=True)),
    ("""--encoder weight-of-evidence --target sold --regularization '{"city": 0.5, ("device", "zip"): 0.0}'
     --cv '{("device", "zip"): GroupKFold(3, groups="shop"), "city": LeaveOneOut()}'""", "sold",
     ge.WeightOfEvidenceEncoder({("device", "zip"): ge.GroupKFold(3, groups="shop"), "city": ge.LeaveOneOut()},
                                {"city": 0.5, ("device", "zip"): 0.0})),
    ("""--encoder statistic --target price --cv 3
     --statistics '["mean", "std", "median", ("quantile", 0.9), ("share", 0.5)]'""", "price",
     ge.StatisticEncoder(["mean", "std", "median", ("quantile", 0.9), ("share", 0.5)], cv=3)),
    ("--encoder statistic --values price,amount --statistics sum,var --set ddof=0", None,
     ge.StatisticEncoder(["sum", "var"], values=["price", "amount"], ddof=0)),
    ("--encoder impact --target sold --parts impact,logit --smooth none --cv 'GroupKFold(groups=\"shop\")'", "sold",
     ge.ImpactEncoder(["impact", "logit"], smooth=0.0, cv=gpu_encode.GroupKFold(groups="shop"))),
    ("--encoder catboost --target sold --priors 0.5,1 --set weight=2 --seed 7", "sold",
     ge.CatBoostEncoder(priors=[0.5, 1], weight=2, random_state=7)),
    ("--encoder catboost --target price --statistic borders --borders 0.2,0.7 --cv 'Ordered(time=\"day\")'", "price",
     ge.CatBoostEncoder("borders", borders=[0.2, 0.7], cv=ge.Ordered(time="day"))),
    ("""--encoder catboost --statistic frequency --cv kfold --priors '{"city": [0.5], ("device", "zip"): [0, 2.0]}'""",
     None, ge.CatBoostEncoder("frequency", {"city": [0.5], ("device", "zip"): [0, 2.0]}, cv=ge.KFold())),
    ("--encoder gradient --target price,weight --regularization 2 --set output=order", ["price", "weight"],
     ge.GradientEncoder("order", 2)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "target", "encoder"), FAMILY, ids=[words for words, *_ in FAMILY])
def test_the_family_on_files(pieces: Path, run: Run, orders: pa.Table, words: str, target: object, encoder) -> None:
    encoder.set_params(columns=KEYS)
    aside = [name for name in orders.column_names if name in ([target] if isinstance(target, str) else target or [])]
    rows = orders.drop_columns(aside)
    y = orders[target] if isinstance(target, str) else orders.select(target) if target else None

    def beside_target(encodings: pa.Table) -> pa.Table:
        names = encodings.column_names + aside
        return pa.table(encodings.columns + orders.select(aside).columns, names)

    expected = beside_target(encoder.fit_transform(rows, y))
    run(f"fit-transform orders.parquet codes.parquet --model whole.model --columns city,device+zip {words}")
    assert_same_table(read_rows("codes.parquet"), expected)
    assert repr(gpu_encode.load("whole.model")) == repr(encoder)
    run(f"fit-transform in codes --memory-limit 5GiB --model pieces.model --columns city,device+zip {words}")
    assert_same_table(read_rows("codes"), expected)
    new = beside_target(encoder.transform(rows))
    run("transform orders.parquet new.parquet --model pieces.model")
    assert_same_table(read_rows("new.parquet"), new)
    run("transform in new --model whole.model")
    assert_same_table(read_rows("new"), new)


@pytest.mark.parametrize(("words", "target", "encoder"), FAMILY, ids=[words for words, *_ in FAMILY])
def test_inspect_shows_each(run: Run, words: str, target: str, encoder, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"fit-transform orders.parquet codes.parquet --model orders.model --columns city,device+zip {words}")
    run("inspect orders.model")
    assert "device_x_zip" in capsys.readouterr().out
    run("inspect orders.model --json --top 2")
    report = json.loads(capsys.readouterr().out)
    assert report["encoder"] == type(encoder).__name__
    assert [column["name"] for column in report["columns"]] == ["city", "device_x_zip"]
    kept = gpu_encode.load("orders.model")
    if isinstance(kept, ge.HashingEncoder):
        assert [column["top"] for column in report["columns"]] == [[], []]
        return
    all_encodings = iter(kept.encodings_)
    for number, column in enumerate(report["columns"]):
        values = plain(kept.categories_[number])
        encodings = [next(all_encodings) for _ in column["encodings"]]
        for row in column["top"]:
            expected = [output[values.index(row["category"])] for output in encodings]
            assert np.array_equal(np.array(row["encodings"], float), np.array(expected, float), equal_nan=True)


def test_a_sparse_model_made_in_python_encodes_files(run: Run, orders: pa.Table) -> None:
    encoder = ge.OneHotEncoder(columns=["city"]).fit(orders.select(["city"]))
    encoder.save("sparse.model")
    pyarrow.parquet.write_table(orders.select(["city"]), "city.parquet")
    run("transform city.parquet new.parquet --model sparse.model")
    expected = encoder.set_params(sparse_output=False).transform(orders.select(["city"]))
    assert read_rows("new.parquet").equals(expected)


def test_rows_without_a_target_are_kept_where_none_is_read(
    pieces: Path, run: Run, orders: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    holes = pa.array([None, *orders["price"].to_pylist()[1:]])
    pyarrow.parquet.write_table(orders.set_column(9, "price", holes), "holes.parquet")
    run("fit-transform holes.parquet codes.parquet --encoder count --columns city --target price")
    assert "--encoder count learns from no target here: price only passes through" in capsys.readouterr().err
    assert read_rows("codes.parquet")["price"].to_pylist() == holes.to_pylist()
    run("fit-transform holes.parquet codes --encoder count --columns city --target price")
    assert read_rows("codes").equals(read_rows("codes.parquet"))


def test_columns_of_values_are_not_chosen_and_need_not_be_there_again(run: Run, orders: pa.Table) -> None:
    words = pa.array(orders["price"].to_pylist()).cast(pa.decimal128(9, 3))
    pyarrow.parquet.write_table(orders.set_column(9, "a,b", words), "orders.parquet")
    run("fit-transform orders.parquet codes.parquet --encoder statistic --values a,b --model orders.model")
    assert {"city_a,b_mean", "a,b"} <= set(read_rows("codes.parquet").column_names)
    pyarrow.parquet.write_table(orders.drop_columns(["price"]), "new.parquet")
    run("transform new.parquet codes.parquet --model orders.model")


def test_the_help_names_every_statistic_and_what_it_is_of() -> None:
    said = {option: line for options in FIT_TRANSFORM.values() for option, _, line, *_ in options}
    assert set(NAMES) <= {*re.findall("[a-z_]+", said["--statistics"])}
    _, of_text, of_dates = said["--statistics"].split(";")
    assert set(OF_TEXT) <= {*re.findall("[a-z_]+", of_text)}
    assert set(OF_DATES) - set(OF_TEXT) <= {*re.findall("[a-z_]+", of_dates)}
    assert "numbers, text or dates" in said["--values"]


def choices(line: str) -> dict:
    return encoder_parameters(parse(["fit-transform", "in.csv", "out.csv", *shlex.split(line)]))


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("--encoder count", {}),
        ("--encoder one-hot", {"sparse_output": False}),
        ("--encoder hashing", {}),
        ("--encoder statistic --seed 2", {"random_state": 2}),
        ("--encoder catboost --borders 3", {"borders": 3}),
        ("--encoder count --set categories=[[1,null]] --set handle-infrequent=category",
         {"categories": [[1, None]], "handle_infrequent": "category"}),
        ("--encoder count --set handle_unknown=0.5", {"handle_unknown": 0.5}),
        ("--encoder count --set 'kind=\"log\"'", {"kind": "log"}),
        ("--encoder impact --smooth none --cv 2", {"smooth": 0.0, "cv": 2}),
        ("--encoder count --indicators", {"indicators": True}),
    ],
)  # fmt: skip
def test_what_was_given_and_nothing_else(line: str, given: dict) -> None:
    assert choices(line) == given


@pytest.mark.parametrize("name", ENCODERS)
def test_every_parameter_can_be_set_or_has_an_option(name: str) -> None:
    for parameter in parameters_of(name):
        words = f"--encoder {name} --set {parameter}=1"
        if parameter in ELSEWHERE:
            with pytest.raises(UsageError, match=f"--set {parameter}: (use --.* instead|files have columns)"):
                choices(words)
        elif parameter in ("drop", "values") or isinstance(parameters_of(name)[parameter], tuple):
            assert choices(words)[parameter] in ("1", ["1"], [1])
        else:
            assert choices(words)[parameter] == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--encoder cuont", "did you mean 'count'?"),
        ("", "--encoder target learns from a target here: name its column with --target COL"),
        ("--encoder ordinal --order target", "--encoder ordinal learns from a target here: name its column with"),
        ("--encoder count --drop-missing-target", "--drop-missing-target needs --target COL"),
        ("--encoder count --smooth 3", "--smooth is for --encoder cluster or impact or target, not count"),
        ("--encoder hashing --cv fold", "--cv is for --encoder catboost or"),
        ("--encoder one-hot --seed 3", "--seed is for --encoder catboost or"),
        ("--encoder statistic --statistic mean", "--statistic is for --encoder catboost, not statistic; did you mean"),
        ("--encoder ordinal --cv 3", "--cv has no effect: --encoder ordinal learns from no target here; leave"),
        ("--encoder count --set knd=log", "CountEncoder has no parameter of that name; did you mean 'kind'?"),
        ("--encoder hashing --set qqqqq=1", "no parameter of that name (it has n_components, alternate_sign, per_"),
        ("--encoder count --set kind", "'kind' is not of the form NAME=EXPRESSION, such as 'categories=[[1, 2, 3]]'"),
        ("--encoder count --set kind=log --set kind=log", "--set: kind is given already by --set; give it once"),
        ("--encoder count --kind log --set kind=log", "--set: kind is given already by --kind; give it once"),
        ("--encoder count --set categories=[[1,", "--set: [[1, is no expression: "),
        ("--encoder count --kind mode", "The 'kind' parameter of CountEncoder must be one of"),
        ("--encoder count --handle-unknown erorr", "Got 'erorr' instead. Did you mean 'error'?"),
        ("--target sold --prior men", "Got 'men' instead. Did you mean 'mean'?"),
        ("--target sold --target-type binry", "Got 'binry' instead. Did you mean 'binary'?"),
        ("--target sold --device cuba", "Got 'cuba' instead. Did you mean 'cuda'?"),
        ("--encoder count --handle-unknown prior", "must be one of 'zero', 'nan', 'error', a number"),
        ("--encoder hashing --n-components few", "'n_components' parameter of HashingEncoder must be"),
        (
            """--encoder statistic --set "statistics={('shop', 'price'): ['mean']}\"""",
            "--set: a dict of keys is for Python only; use --columns",
        ),
        ("--encoder statistic --values prise", "--values: there is no column 'prise'; did you mean 'price'?"),
        ("--encoder statistic --values shop --columns shop", "'shop' is one of --values: it cannot be encoded too"),
        ("--encoder statistic --values price --target price", "the target or weight: it cannot be one of --values"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_change_nothing(refused: Refused, line: str, message: str) -> None:
    assert message in refused(f"fit-transform orders.parquet codes {line}")


def test_mistakes_in_parameters_are_said_before_files_are_looked_at(refused: Refused) -> None:
    assert "parameter of CountEncoder" in refused("fit-transform absent.parquet codes.csv --encoder count --kind mode")


def test_every_encoder_that_takes_files_has_a_name() -> None:
    encoders = {name for name in gpu_encode.__all__ if name.endswith("Encoder")}
    in_memory = {name for name in encoders if issubclass(getattr(gpu_encode, name), CodesEncoder)}
    in_memory -= {name for name in encoders if issubclass(getattr(gpu_encode, name), SummedEncoder)}
    assert set(ENCODERS.values()) == encoders - in_memory


def test_the_help_names_every_encoder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit-transform", "--help-all"]) == 0
    said = "".join(capsys.readouterr().out.split())
    assert all(name in said for name in ENCODERS)
    assert "sem,skew,kurt,min" in said
    assert """(missing:--set'indicators=["missing"]'instead)""" in said


@pytest.mark.parametrize("command", ["fit-transform", "leak-report", "plan"])
def test_the_short_help_says_how_much_it_leaves_out(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    def told(option: str) -> list[str]:
        assert main([command, option]) == 0
        return capsys.readouterr().out.splitlines()

    short, whole = told("--help"), told("--help-all")
    assert told("-h") == short
    named = [{line.split()[0].strip(",") for line in lines if line.startswith("  -")} for lines in (short, whole)]
    assert named[0] < named[1]
    assert {"--target", "--columns", "--cv", "--smooth"} <= named[0]
    assert f"gpu-encode {command} --help-all tells {len(named[1] - named[0])} more options." in short
    assert len(short) < 62 < len(whole)
    assert short[0].startswith(f"usage: gpu-encode {command} [OPTIONS] INPUT")
