"""Sizes that a user gives have bounds, and functions that take an encoder say what they were given instead of one."""

import errno
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import preprocessing

import gpu_encode as ge
from gpu_encode import export, parts
from gpu_encode.seam import devices

pytestmark = pytest.mark.host
X = pd.DataFrame({"shop": [*"abcb"] * 15, "day": np.arange(60) % 7})
Y = np.arange(60) % 2
HUGE = (2**31, 2**63, 10**400)


def fit(encoder: Any) -> Callable[[int], Any]:
    return lambda size: encoder(size).fit_transform(X, Y)


SIZES: dict[str, Callable[[int], Any]] = {
    "HashingEncoder": fit(ge.HashingEncoder),
    "OrdinalEncoder": fit(lambda size: ge.OrdinalEncoder(order="random", n_draws=size)),
    "Ordered": fit(lambda size: ge.TargetEncoder(cv=ge.Ordered(size, average=False))),
    "an order": fit(lambda size: ge.TargetEncoder(cv=ge.Ordered(size))),
    "KFold": fit(lambda size: ge.TargetEncoder(cv=ge.KFold(size))),
    "KFold by a column": fit(lambda size: ge.TargetEncoder(cv=ge.KFold(size, by="day"))),
    "GroupKFold": fit(lambda size: ge.TargetEncoder(cv=ge.GroupKFold(size, groups="day"))),
    "TimeFolds": fit(lambda size: ge.TargetEncoder(cv=ge.TimeFolds(size, time="day"))),
    "folds": fit(lambda size: ge.TargetEncoder(cv=size)),
    "block": fit(lambda size: ge.TargetEncoder(cv=ge.Ordered(block=size))),
    "GLMM": fit(lambda size: ge.TargetEncoder(smooth=ge.GLMM(size))),
    "Prefixes": fit(lambda size: ge.TargetEncoder(columns=["shop"], hierarchy={"shop": ge.Prefixes(size)})),
    "Bits": fit(lambda size: ge.TargetEncoder(columns=["day"], hierarchy={"day": ge.Bits(8, width=size)})),
    "SpectralEncoder": fit(ge.SpectralEncoder),
    "CooccurrenceEncoder": fit(ge.CooccurrenceEncoder),
    "FactorizationEncoder": fit(ge.FactorizationEncoder),
    "ClusterEncoder": fit(ge.ClusterEncoder),
    "interactions": lambda size: ge.interactions([*range(100)], size),
    "leak_report, shuffles": lambda size: ge.leak_report(ge.TargetEncoder(), X, Y, n_shuffles=size),
    "leak_report, flips": lambda size: ge.leak_report(ge.TargetEncoder(), X, Y, n_flips=size),
    "plan": lambda size: ge.TargetEncoder().plan(rows=9, categories={"a": 3}, classes=size),
    "blend_matrix": lambda size: ge.blend_matrix(Y, X[["day", "day"]], grid=size),
}


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("name", SIZES)
def test_a_size_has_a_bound_that_the_error_says(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=r"at most|more than|must lie below|keys") as caught:
        SIZES[name](size)
    assert re.search(r"\d{2,}", str(caught.value).replace(str(size), ""))


def test_an_output_that_has_no_room_is_refused_before_the_system_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available_bytes", lambda: 1 << 30)
    encoder = ge.HashingEncoder(1 << 16).fit(X)
    with pytest.raises(MemoryError, match=r"The encodings of 6,000 rows in 65,536 columns would take 2\.9 GiB"):
        encoder.transform(pd.concat([X] * 100))


NOT_FITTED_OR_OTHER: dict[str, Any] = {
    "nothing": None,
    "a text": "a.model",
    "a number": 3,
    "a class": ge.TargetEncoder,
    "another library's": preprocessing.OrdinalEncoder(),
    "a dict": {},
}
PART = parts.Part(X, Y)
TAKERS: dict[str, Callable[[Any], Any]] = {
    "choose_interactions": lambda encoder: ge.choose_interactions(encoder, X, Y),
    "cross_val_transform": lambda encoder: ge.cross_val_transform(encoder, X, Y),
    "drift_dataset": lambda encoder: ge.drift_dataset("rows.parquet", encoder),
    "encode_dataset": lambda encoder: ge.encode_dataset("rows.parquet", "out.parquet", encoder, target="y"),
    "transform_dataset": lambda encoder: ge.transform_dataset("rows.parquet", "out.parquet", encoder),
    "leak_report": lambda encoder: ge.leak_report(encoder, X, Y),
    "tune": lambda encoder: ge.tune(encoder, X, Y),
    "to_arrow": export.to_arrow,
    "to_json": export.to_json,
    "to_onnx": export.to_onnx,
    "to_polars": export.to_polars,
    "to_sql": lambda encoder: export.to_sql(encoder, "rows"),
    "to_sql_tables": lambda encoder: export.to_sql_tables(encoder, "tables"),
    "scheme_columns": parts.scheme_columns,
    "profile": lambda encoder: parts.profile(encoder, PART),
    "plan": lambda encoder: parts.plan(encoder, parts.profile(ge.TargetEncoder(), PART)),
    "fit": lambda encoder: parts.fit(encoder, None, None),  # type: ignore[arg-type]
    "VoteClassifier": lambda encoder: ge.VoteClassifier(encoder).fit(X, Y),
    "VoteRegressor": lambda encoder: ge.VoteRegressor(encoder).fit(X, Y),
}
# They take what is no encoder as well: nothing is the default, a pipeline leaks too, a text is the path of a file.
TAKEN = {
    *(("VoteClassifier", "nothing"), ("VoteRegressor", "nothing")),
    *(("leak_report", "another library's"), ("transform_dataset", "a text")),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    X.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", NOT_FITTED_OR_OTHER)
@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.usefixtures("files")
def test_what_is_no_encoder_is_named(name: str, given: str) -> None:
    if (name, given) in TAKEN:
        return
    encoder = NOT_FITTED_OR_OTHER[given]
    kind = re.escape(type(encoder).__name__)
    with pytest.raises(
        (TypeError, ValueError), match=rf"(Got|got|not) .*({kind}|{re.escape(repr(encoder))})|Write \w+\(\)"
    ):
        TAKERS[name](encoder)


def test_every_function_that_takes_an_encoder_is_here() -> None:
    public = {name: getattr(home, name) for home in (ge, export, parts) for name in home.__all__}
    takers = {
        name
        for name, one in public.items()
        if inspect.isfunction(one) and "encoder" in inspect.signature(one).parameters
    }
    assert takers - TAKERS.keys() == set()


ARGUMENTS: dict[str, Callable[[], Any]] = {
    "part": lambda: parts.profile(ge.TargetEncoder(), X),
    "profile": lambda: parts.plan(ge.TargetEncoder(), 3),  # type: ignore[arg-type]
    "encoding_plan": lambda: parts.measure(None, PART),  # type: ignore[arg-type]
    "tables": lambda: parts.encode(None, PART),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_steps_of_parts_name_what_they_were_given(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} of \w+ must be of type \w+. Got \w+ instead"):
        ARGUMENTS[name]()


def refuse(number: int, hidden: bool) -> Callable[..., Any]:
    def fail(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), str(path) if hidden else None)

    return fail


WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a model": ("open", lambda path: ge.TargetEncoder().fit(X, Y).save(path)),
    "a file of rows": ("mkdir", lambda path: ge.encode_dataset("rows.parquet", path, ge.TargetEncoder(), target="y")),
}


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_folder_that_may_not_be_changed(
    writer: str, number: int, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, write = WRITERS[writer]
    real = getattr(Path, method)

    def fail(path: Path, *given: Any, **named: Any) -> Any:
        return refuse(number, True)(path) if path.name.startswith(".") else real(path, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, method, fail)
        with pytest.raises(
            OSError, match=rf"{os.strerror(number)}, so that nothing was written|no permission to write"
        ) as caught:
            write(files / "out.parquet")
    assert repr(str(files / "out.parquet")) in str(caught.value)
    assert not (files / "out.parquet").exists()
