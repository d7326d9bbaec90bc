"""Names and values of strangers steer no terminal and forge no line, at whatever door they come out."""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from gpu_encode.cli import main
from gpu_encode.serve.accel.calls import Line, Report
from gpu_encode.study.text_tables import lay_out
from gpu_encode.words.notices import warn
from gpu_encode.words.terminal import in_html, one_line, printable, printable_lines
from tests.storage.altered import changed

pytestmark = pytest.mark.host

C0 = [chr(code) for code in range(1, 0x20)]
C1 = [chr(code) for code in range(0x7F, 0xA0)]
BIDI = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
LINES = ["\u2028", "\u2029"]
INVISIBLE = ["\u00ad", "\u200b", "\ufeff", "\U000e0041"]
CONTROLS = [*C0, *C1, *BIDI, *LINES, *INVISIBLE]
# All of them in one name, and beside it a name that would forge a line.
HOSTILE = "".join(f"{character}z" for character in CONTROLS if character not in "\n\r")
FORGED = "x\nFORGED\rFORGED"
PLAIN = ["a b", "naïve", "日本", "\u00a0", "\u3000", "\U0001f600", "\\x1b", "a\u0301", "עברית", ""]


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_leaves_marks_is_kept(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("character", [*CONTROLS, "\x00", "\ud800"], ids=ascii)
def test_every_control_character_is_an_escape(character: str) -> None:
    assert printable(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"
    assert printable(character) == repr(character)[1:-1]
    assert in_html(f"<{character}>") == f"&lt;{printable(character)}&gt;"
    assert printable_lines(f"one\n{character}") == f"one\n{printable(character)}".replace("\\n", "\n")
    assert "\n" not in one_line(ValueError(f"one\n{character}x"))


def table(name: str) -> pd.DataFrame:
    return pd.DataFrame({name: [f"{name}1", f"{name}2", f"{name}3"] * 20, "y": [f"no{name}", f"yes{name}"] * 30})


@pytest.fixture(params=[HOSTILE, FORGED], ids=["controls", "forged line"])
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name of a column, with files whose columns, categories and classes have it."""
    monkeypatch.chdir(tmp_path)
    given: str = request.param
    rows = table(given)
    rows.to_parquet("rows.parquet")
    rows.rename(columns={given: "other"}).to_parquet("others.parquet")
    encoder = ge.TargetEncoder(columns=[given], smooth=1.0).fit(rows[[given]], rows["y"])
    encoder.save("model")
    ge.HashingEncoder(columns=[given]).fit(rows[[given]]).save("hashed")
    ge.StatisticEncoder(["mode"], columns=[given], values=["y"]).fit(rows).save("modes")
    forged = changed(Path("model").read_bytes(), lambda document: document.update(estimator=given))
    Path("forged").write_bytes(forged)
    Path(f"model{given.replace('/', '')}").write_bytes(forged)
    return given


def of_command(*words: str) -> Callable[[str], str]:
    """Give all that a command writes; the word NAME is the name."""

    def run(name: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([word.replace("NAME", name) for word in words])
        return out.getvalue() + err.getvalue()

    return run


def of_error(call: Callable[[str, pd.DataFrame], Any]) -> Callable[[str], str]:
    """Give the errors and warnings of a call."""

    def run(name: str) -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call(name, table(name))
                said = ""
            except (ValueError, TypeError, KeyError, OSError, AttributeError) as error:
                said = str(error)
        told = said + "".join(str(one.message) for one in caught)
        assert told
        return told

    return run


def loaded() -> Any:
    return ge.load("model")


def leaks_of(name: str) -> Any:
    return ge.leak_report(ge.TargetEncoder(), table(name)[[name]], table(name)["y"], n_shuffles=3, n_flips=2)


FIT = ["fit-transform", "rows.parquet", "out.parquet", "--target", "y", "--columns", "NAME", "--overwrite"]
REPORT = ["leak-report", "rows.parquet", "--target", "y", "--columns", "NAME", "--shuffles", "3", "--flips", "2"]
DOORS: dict[str, Callable[[str], str]] = {
    "inspect": of_command("inspect", "model"),
    "inspect, JSON": of_command("inspect", "model", "--json"),
    "inspect, column": of_command("inspect", "model", "--column", "NAME-"),
    "inspect, hashed": of_command("inspect", "hashed"),
    "inspect, modes": of_command("inspect", "modes"),
    "inspect, forged": of_command("inspect", "forged"),
    "inspect, file": of_command("inspect", "modelNAME"),
    "inspect, no file": of_command("inspect", "absentNAME"),
    "inspect, traceback": of_command("inspect", "absentNAME", "--debug"),
    "an option": of_command("inspect", "model", "--top", "NAME"),
    "no such option": of_command("inspect", "model", "--NAME"),
    "no such command": of_command("NAME"),
    "drift": of_command("drift", "model", "rows.parquet"),
    "drift, JSON": of_command("drift", "model", "rows.parquet", "--json"),
    "drift, other columns": of_command("drift", "model", "others.parquet"),
    "transform, other columns": of_command("transform", "model", "others.parquet", "new.parquet"),
    "transform": of_command("transform", "model", "rows.parquet", "new.parquet", "--overwrite"),
    "fit-transform": of_command(*FIT),
    "fit-transform, no target": of_command(*FIT, "--target", "NAME-"),
    "fit-transform, a kind": of_command(*FIT, "--target-type", "continuous"),
    "plan": of_command("plan", "rows.parquet", "--target", "y", "--columns", "NAME"),
    "leak report": of_command(*REPORT),
    "leak report, JSON": of_command(*REPORT, "--json"),
    "export": of_command("export", "model", "rows.sql", "--to", "sql", "--table", "t", "--keep", "NAME-"),
    "warning": of_error(lambda name, _: warn(f"{name} is odd")),
    "unseen": of_error(lambda name, rows: loaded().transform(rows[[name]] + "new")),
    "refused": of_error(
        lambda name, rows: (
            ge.TargetEncoder(handle_unknown="error").fit(rows[[name]], rows["y"]).transform(rows[[name]] + "new")
        )
    ),
    "missing": of_error(
        lambda name, rows: ge.TargetEncoder(handle_missing="error").fit(rows[[name]].where(rows.index > 2), rows["y"])
    ),
    "mixed": of_error(lambda name, rows: ge.TargetEncoder().fit(pd.DataFrame({name: ["a", 1] * 30}), rows["y"])),
    "infinite": of_error(lambda name, rows: ge.TargetEncoder().fit(pd.DataFrame({name: [np.inf] * 60}), rows["y"])),
    "another kind": of_error(lambda name, _: loaded().transform(pd.DataFrame({name: [1, 2]}))),
    "no such column": of_error(lambda name, rows: ge.TargetEncoder(columns=[name + "-"]).fit(rows, rows["y"])),
    "a class": of_error(
        lambda name, rows: ge.TargetEncoder(target_type="binary").fit(rows[[name]], [*rows["y"][:59], name])
    ),
    "a dropped class": of_error(
        lambda name, rows: ge.TargetEncoder(target_type="multiclass", drop=name).fit(rows[[name]], rows["y"])
    ),
    "text as numbers": of_error(
        lambda name, rows: ge.TargetEncoder(target_type="continuous").fit(rows[[name]], rows["y"])
    ),
    "an option of Python": of_error(
        lambda name, rows: ge.TargetEncoder(handle_unknown=name).fit(rows[[name]], rows["y"])
    ),
    "no file": of_error(lambda name, _: ge.load(f"absent{name}")),
    "no folder": of_error(lambda name, _: loaded().save(f"absent{name}/model")),
    "a forged file": of_error(lambda name, _: ge.load(f"model{name}")),
    "repr": lambda name: repr(loaded()),
    "HTML": lambda name: loaded()._repr_html_(),
    "report of leaks": lambda name: repr(leaks_of(name)),
    "page of leaks": lambda name: leaks_of(name).to_html(),
    "plan of memory": lambda name: repr(ge.TargetEncoder().plan(table(name)[[name]], table(name)["y"])),
    "report of calls": lambda name: str(Report((Line(name, "scikit-learn", name),))),
    "lines of a table": lambda name: "\n".join(lay_out([("key", "score"), (name, "1")])),
}


PAGES = ("HTML", "page of leaks")


@pytest.mark.parametrize("door", DOORS)
def test_no_door_lets_a_control_character_out(door: str, name: str) -> None:
    logging.disable(logging.CRITICAL)
    said = DOORS[door](name)
    logging.disable(logging.NOTSET)
    raw = sorted({character for character in CONTROLS if character != "\n" and character in said})
    assert raw == [], f"{raw} in {said[:300]!r}"
    if door in PAGES:
        return  # a line break is a space there
    assert not [line for line in said.split("\n") if line.strip(" │┃|").startswith("FORGED")], said


def test_json_for_machines_keeps_every_name(name: str) -> None:
    told = json.loads(DOORS["inspect, JSON"](name))
    assert told["columns"][0]["name"] == name


def test_the_doors_are_those_of_the_command_line() -> None:
    from gpu_encode.cli.arguments import COMMANDS

    without_names = {"doctor", "warm-up", "demo", "benchmark"}
    assert {door.split(",")[0].replace(" ", "-") for door in DOORS} >= {one[0] for one in COMMANDS} - without_names
