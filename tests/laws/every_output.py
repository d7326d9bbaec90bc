"""Records every output on real tables, and compares it with a record of another version, bit by bit.

``python -m tests.laws.every_output --data FOLDER --write FILE.npz`` runs all cases on the Parquet files of a folder
(those that `real_tables.SOURCES` names) and writes what came out; ``--compare FILE.npz`` runs them and lists what
differs.  ``--save-models FOLDER`` and ``--load-models FOLDER`` do the same with encoders that are saved and loaded.
``--only TEXT`` narrows the cases to those with the text in their name.  Public names alone are used, so the same script
runs with an older version in front of it on the path.
"""

import argparse
import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import sklearn.model_selection

import gpu_encode
from gpu_encode import (
    GLMM,
    CatBoostEncoder,
    CountEncoder,
    EmpiricalBayes,
    GradientEncoder,
    Greedy,
    GroupKFold,
    HashingEncoder,
    Holdout,
    ImpactEncoder,
    JamesStein,
    KFold,
    LeaveOneOut,
    MergeableStatistic,
    MEstimate,
    OneHotEncoder,
    Ordered,
    OrdinalEncoder,
    PartialPooling,
    Sigmoid,
    StatisticEncoder,
    TargetEncoder,
    TimeFolds,
    WeightOfEvidenceEncoder,
    encode_dataset,
    interactions,
    transform_dataset,
    tune,
)
from gpu_encode.cli import main as run_command
from gpu_encode.ops import use_backend
from tests.laws.real_tables import Rows, names_in, read_rows
from tests.laws.recorded import SEPARATOR, Case, differences, read_record, run_cases, write_record

KINDS = ("binary", "continuous", "multiclass")
SMOOTHINGS: dict[str, Any] = {
    "none": None,
    "auto": "auto",
    "number": 2.5,
    "m-estimate": MEstimate(20.0),
    "sigmoid": Sigmoid(),
    "steep sigmoid": Sigmoid(3.0, 0.5),
    "total": EmpiricalBayes("total"),
    "between": EmpiricalBayes("between"),
    "james-stein": JamesStein(),
    "independent": JamesStein("independent"),
    "pooling": PartialPooling(),
    "glmm": GLMM(),
}
SCHEMES: dict[str, Callable[[int], Any]] = {
    "greedy": lambda _: Greedy(),
    "none": lambda _: None,
    "int": lambda _: 3,
    "k-fold": lambda _: KFold(4, random_state=4),
    "contiguous": lambda _: KFold(3, order="contiguous"),
    "interleaved": lambda _: KFold(2, order="interleaved"),
    "stratified": lambda _: KFold(4, stratify=True),
    "blow-up": lambda _: KFold(3, blow_up=True),
    "groups": lambda _: GroupKFold(3, groups="group"),
    "time folds": lambda _: TimeFolds(3, time="time"),
    "time folds, gap": lambda _: TimeFolds(4, time="time", gap=1),
    "holdout": lambda _: Holdout(0.4, random_state=2),
    "leave-one-out": lambda _: LeaveOneOut(),
    "ordered": lambda _: Ordered(random_state=6),
    "ordered, three": lambda _: Ordered(3),
    "ordered, apart": lambda _: Ordered(2, average=False, burn_in=7),
    "ordered, as rows stand": lambda _: Ordered(shuffle=False),
    "ordered, time": lambda _: Ordered(time="time"),
    "ordered, time, burn-in": lambda _: Ordered(time="time", burn_in=0.1),
    "column": lambda _: "fold",
    "array": lambda n: np.arange(n) % 5 % 3,
    "scikit-learn": lambda _: sklearn.model_selection.KFold(3, shuffle=True, random_state=1),
    "stratified scikit-learn": lambda _: sklearn.model_selection.StratifiedKFold(3),
    "splits": lambda n: [(np.arange(0, n, 2), np.arange(1, n, 2)), (np.arange(1, n, 2), np.arange(0, n, 2))],
}
LEARNED = (
    "categories_", "encodings_", "target_mean_", "target_type_", "classes_", "information_value_", "drop_idx_",
    "infrequent_categories_",
)  # fmt: skip


def geometric_mean() -> MergeableStatistic:
    return MergeableStatistic("geometric", [lambda x: np.log(1 + x * x)], lambda n, logs: np.exp(logs / n))


def learned(encoder: Any) -> dict[str, Any]:
    """Give what an encoder says of itself after fit."""
    return {name: getattr(encoder, name) for name in LEARNED if hasattr(encoder, name)} | {
        "names": encoder.get_feature_names_out()
    }


def fit_and_transform(rows: Rows, make: Callable[[], Any], kind: str | None, full: bool = True, **fit: Any) -> Any:
    """Give training rows and new rows encoded; in full what was learned as well, and training rows as new ones."""
    encoder, y = make(), target_of(rows, kind)
    frame, new = rows.frame, rows.new_frame
    output = {"train": encoder.fit_transform(frame, y, **fit), "new": encoder.transform(new)}
    if full:
        apart = make().fit(frame, y, **fit)
        output |= {"learned": learned(encoder), "apart": apart.transform(frame), "learned apart": learned(apart)}
    return output


def target_of(rows: Rows, kind: str | None) -> Any:
    """Give a target by its kind; gradients are those of the log loss at 0.3."""
    if kind == "gradients":
        return np.column_stack([0.3 - rows.targets["binary"], np.full(rows.table.num_rows, 0.21)])
    if kind == "shares":
        return np.abs(rows.targets["continuous"]) / (1 + np.abs(rows.targets["continuous"]).max())
    if kind == "several":
        return pd.DataFrame(rows.targets)
    return None if kind is None else rows.targets[kind]


def scheme_cases(rows: Rows, kind: str) -> Iterator[Case]:
    """Cross every scheme with every smoothing."""
    for (scheme, cv), (smoothing, smooth) in itertools.product(SCHEMES.items(), SMOOTHINGS.items()):
        columns = rows.keys[:1] if smoothing == "glmm" else rows.keys[:2]
        make = partial(TargetEncoder, columns=columns, cv=cv(rows.table.num_rows), smooth=smooth, target_type=kind)
        yield f"{rows.name} schemes {scheme}/{smoothing}/{kind}", partial(fit_and_transform, rows, make, kind, False)


def target_encoders(rows: Rows) -> dict[str, tuple[Callable[[], Any], str]]:
    """Give target encoders with every other parameter."""
    keys, joint = [*rows.keys, *rows.source.joint], rows.source.joint
    above = next(name for name in rows.keys if name not in joint[0])
    make = partial(TargetEncoder, columns=keys)
    few = partial(TargetEncoder, columns=keys, cv=KFold(3))
    cases: dict[str, tuple[Callable[[], Any], str]] = {f"default, {kind}": (make, kind) for kind in KINDS}
    cases |= {
        "interactions": (partial(TargetEncoder, columns=interactions(rows.keys, 3)), "binary"),
        "category mean": (partial(make, prior="category_mean", handle_missing="nan", handle_unknown="nan"), "binary"),
        "numbers as priors": (
            partial(make, prior={rows.keys[0]: 0.25}, handle_unknown=-7, handle_missing="prior", min_count=3),
            "continuous",
        ),
        "unknown refused": (partial(make, handle_unknown="error"), "binary"),
        "missing refused": (partial(make, handle_missing="error"), "binary"),
        "float32": (partial(make, dtype="float32", indicators=["missing", "unseen"]), "continuous"),
        "drop": (partial(make, drop="first", target_type="multiclass"), "multiclass"),
        "roots": (partial(make, scale="sqrt"), "binary"),
        "log1p": (partial(make, scale="log1p", cv=LeaveOneOut()), "shares"),
        "power": (partial(make, scale=0.7, cv=Ordered(2)), "shares"),
        "log-odds": (partial(make, scale="logit"), "binary"),
        "several": (partial(make, target_type=["binary", "continuous", "multiclass"], indicators=True), "several"),
        "all columns": (TargetEncoder, "binary"),
        "level above a joint key": (
            partial(TargetEncoder, columns=joint[:1], hierarchy={joint[0]: above}, smooth=5.0),
            "binary",
        ),
    }
    for policy in ("prior", "category"):
        cases[f"min frequency, {policy}"] = (partial(few, min_frequency=0.01, handle_infrequent=policy), "binary")
        cases[f"most categories, {policy}"] = (
            partial(few, max_categories=6, handle_infrequent=policy, indicators=True),
            "continuous",
        )
    for name, cv in (("folds", 3), ("leave-one-out", LeaveOneOut()), ("ordered", Ordered(2)), ("blow-up", None)):
        scheme = KFold(2, blow_up=True) if cv is None else cv
        given = {"columns": list(rows.source.hierarchy), "hierarchy": rows.source.hierarchy, "cv": scheme}
        for smooth in ("auto", "number", "sigmoid", "pooling") if rows.source.hierarchy else ():
            cases[f"hierarchy {name}/{smooth}"] = (
                partial(TargetEncoder, smooth=SMOOTHINGS[smooth], **given), "continuous"
            )  # fmt: skip
        for kind in KINDS:
            cases[f"indicators {name}/{kind}"] = (
                partial(make, cv=scheme, indicators=True, min_count=2, handle_missing="prior"), kind
            )  # fmt: skip
    return cases


def statistic_encoders(rows: Rows) -> dict[str, tuple[Callable[[], Any], str | None]]:
    """Give encoders of statistics of the target and of columns."""
    keys, numbers = [*rows.keys, *rows.source.joint], rows.source.numbers
    sums = ["count", "sum", "mean", "var", "std", "sem", "skew"]
    orders = ["min", "max", "median", "mode", "nunique", ("quantile", 0.9), ("quantile", 0.123), ("share", 1.5)]
    make = partial(StatisticEncoder, columns=keys)
    cases: dict[str, tuple[Callable[[], Any], str | None]] = {}
    schemes = {"folds": 3, "auto": "auto", "leave-one-out": LeaveOneOut(), "time": TimeFolds(time="time")}
    for name, cv in schemes.items():
        cases[f"orders {name}"] = (partial(make, orders, cv=cv), "continuous")
        cases[f"sums {name}"] = (partial(make, sums, cv=cv), "continuous")
    return cases | {
        "sums ordered": (partial(make, sums, cv=Ordered(2), ddof=0), "continuous"),
        "sums of labels": (partial(make, sums[:6], target_type="auto"), "multiclass"),
        "sums of columns": (partial(StatisticEncoder, sums, values=numbers, columns=keys), None),
        "orders of columns": (partial(StatisticEncoder, orders, values=numbers, columns=keys, cv=KFold(3)), None),
        "pairs": (
            partial(
                StatisticEncoder,
                {(rows.keys[0], numbers[0]): ["mean", "median"], (rows.source.joint[0], numbers[-1]): ["sum"]},
            ),
            None,
        ),
        "mergeable": (partial(make, ["mean", geometric_mean()]), "continuous"),
        "scaled": (partial(make, ["count", "std"], scale="log1p", indicators=True, dtype="float32"), "continuous"),
        "rare": (
            partial(make, ["mean", "std"], cv=KFold(3), max_categories=5, handle_infrequent="category"),
            "continuous",
        ),
        "zeros": (
            partial(make, orders, cv=2, min_count=3, handle_unknown=0.0, handle_missing="nan"),
            "continuous",
        ),
    }


def other_encoders(rows: Rows) -> dict[str, tuple[Callable[[], Any], str | None]]:
    """Give the rest of the family."""
    keys = [*rows.keys, *rows.source.joint]
    ordinal, one_hot = partial(OrdinalEncoder, columns=keys), partial(OneHotEncoder, columns=keys)
    use = {"handle_unknown": "use_encoded_value", "unknown_value": -5}
    return {
        "count": (partial(CountEncoder, columns=keys), None),
        "frequency": (partial(CountEncoder, "frequency", columns=keys, indicators=True, handle_unknown="nan"), None),
        "log": (partial(CountEncoder, "log", columns=keys, min_count=3, dtype="float32"), None),
        "count rare": (partial(CountEncoder, columns=keys, max_categories=4, handle_infrequent="category"), None),
        "ordinal": (partial(ordinal, **use), None),
        "ordinal refusing": (ordinal, None),
        "ordinal frequency": (
            partial(ordinal, order="frequency", min_frequency=3, dtype="int32", encoded_missing_value=-1, **use), None
        ),
        "ordinal random": (partial(ordinal, order="random", n_draws=3, random_state=3, **use), None),
        "ordinal target": (partial(ordinal, order="target", **use), "continuous"),
        "ordinal target classes": (partial(ordinal, order="target", cv=KFold(3), **use), "multiclass"),
        "ordinal target few": (
            partial(ordinal, order="target", cv=KFold(3, blow_up=True), max_categories=5, **use), "binary"
        ),
        "one-hot": (partial(one_hot, handle_unknown="ignore"), None),
        "one-hot refusing": (one_hot, None),
        "one-hot dense": (partial(one_hot, sparse_output=False, handle_unknown="ignore", drop="if_binary"), None),
        "one-hot infrequent": (
            partial(one_hot, max_categories=5, handle_unknown="infrequent_if_exist", dtype="float32"), None
        ),
        "one-hot rare": (
            partial(one_hot, min_frequency=0.02, drop="first", handle_unknown="warn", handle_missing="zero"), None
        ),
        "hashing": (partial(HashingEncoder, columns=keys), None),
        "hashing signs": (partial(HashingEncoder, 5, columns=keys, per_column=True, alternate_sign=True, seed=3), None),
        "hashing zero": (partial(HashingEncoder, 16, columns=keys, handle_missing="zero", dtype="float32"), None),
        "evidence": (partial(WeightOfEvidenceEncoder, columns=keys), "binary"),
        "evidence classes": (
            partial(WeightOfEvidenceEncoder, KFold(2), 0.5, columns=keys, indicators=True), "multiclass"
        ),
        "evidence leave-one-out": (
            partial(WeightOfEvidenceEncoder, LeaveOneOut(), 2.0, columns=keys, min_count=2), "binary"
        ),
        "evidence ordered": (partial(WeightOfEvidenceEncoder, Ordered(2), columns=keys), "binary"),
        "evidence rare": (
            partial(WeightOfEvidenceEncoder, columns=keys, min_frequency=0.01, handle_infrequent="category"), "binary"
        ),
        "impact": (partial(ImpactEncoder, columns=keys, target_type="continuous"), "continuous"),
        "impact logit": (
            partial(ImpactEncoder, ["impact", "logit", "prevalence"], columns=keys, cv=LeaveOneOut()), "binary"
        ),
        "impact ordered": (partial(ImpactEncoder, columns=keys, cv=Ordered(), smooth=3.0), "continuous"),
        "impact classes": (partial(ImpactEncoder, ["impact"], columns=keys, cv=KFold(3)), "multiclass"),
        "catboost": (partial(CatBoostEncoder, columns=keys), "binary"),
        "catboost has time": (partial(CatBoostEncoder, columns=keys, shuffle=False, scale="sqrt"), "binary"),
        "catboost borders": (partial(CatBoostEncoder, "borders", borders=3, columns=keys), "continuous"),
        "catboost mean of buckets": (
            partial(CatBoostEncoder, borders=[1.0, 20.0], columns=keys, cv=LeaveOneOut()), "continuous"
        ),
        "catboost buckets": (
            partial(CatBoostEncoder, "buckets", [0.5], 2.0, columns=keys, cv=KFold(3)), "multiclass"
        ),
        "catboost counter": (partial(CatBoostEncoder, "counter", columns=keys, max_categories=5), None),
        "catboost frequency": (partial(CatBoostEncoder, "frequency", columns=keys, cv=Ordered(2)), None),
        "gradient": (partial(GradientEncoder, columns=keys), "gradients"),
        "gradient order": (partial(GradientEncoder, "order", 1.0, KFold(3), columns=keys, min_count=3), "gradients"),
        "gradient leave-one-out": (partial(GradientEncoder, columns=keys, cv=LeaveOneOut()), "gradients"),
        "gradient ordered": (partial(GradientEncoder, columns=keys, cv=Ordered(2, average=False)), "gradients"),
    }  # fmt: skip


def family(rows: Rows) -> dict[str, dict[str, tuple[Callable[[], Any], Any]]]:
    """Give every encoder, and the kind of target that it reads."""
    return {"target": target_encoders(rows), "statistics": statistic_encoders(rows), "other": other_encoders(rows)}


def encoder_cases(rows: Rows) -> Iterator[Case]:
    """Run every encoder without and with weights."""
    turns = itertools.cycle((True, False, False))
    for group, encoders in family(rows).items():
        for name, (make, kind) in encoders.items():
            case, seen = f"{rows.name} {group} {name}", rows_for(name, rows)
            yield case, partial(fit_and_transform, seen, make, kind)
            # Whole weights and others by turns.
            weighting = "counts" if next(turns) else "weights"
            weight = getattr(rows, weighting)
            yield f"{case}, {weighting}", partial(fit_and_transform, seen, make, kind, False, sample_weight=weight)


def rows_for(encoder: str, rows: Rows) -> Rows:
    """Give the rows as an encoder takes them: sparse matrices have no place for columns that pass through."""
    return rows.encoded_only if encoder.startswith("one-hot") else rows


def inverted(rows: Rows, make: Callable[[], Any]) -> Any:
    """Give rows back by their codes."""
    encoder = make()
    return encoder.inverse_transform(encoder.fit_transform(rows.frame[rows.keys]))


def in_pieces(rows: Rows, make: Callable[[], Any], kind: str | None, weighted: bool = False) -> Any:
    """Fit on three tables, of three libraries."""
    n = rows.table.num_rows
    bounds = [(0, n // 4), (n // 4, n // 2), (n // 2, n)]
    as_kind = (lambda t: t.to_pandas(), pl.from_arrow, lambda t: t)
    pieces = [make_kind(rows.table.slice(a, b - a)) for make_kind, (a, b) in zip(as_kind, bounds, strict=True)]
    y = target_of(rows, kind)
    vectors = None if y is None else [y[a:b] for a, b in bounds]
    fit = {"sample_weight": [rows.weights[a:b] for a, b in bounds]} if weighted else {}
    encoder = make()
    return {"train": encoder.fit_transform(pieces, vectors, **fit), "new": encoder.transform([rows.new, rows.new])}


def in_steps(rows: Rows, make: Callable[[], Any], kind: str | None, merged: bool = False) -> Any:
    """Fit in two steps, or merge two fitted encoders."""
    frame, y = rows.frame, target_of(rows, kind)
    half = len(frame) // 3
    halves = [(frame[:half], None if y is None else y[:half]), (frame[half:], None if y is None else y[half:])]
    if merged:
        first, second = (make().fit(*part) for part in halves)
        encoder = first.merge(second)
    else:
        encoder = make().partial_fit(*halves[0]).partial_fit(*halves[1])
    return {"new": encoder.transform(rows.new_frame), "learned": learned(encoder)}


def with_frames(rows: Rows, kind: str) -> Any:
    """Encode tables of several libraries, and arrays."""
    y = rows.targets[kind]
    named = partial(TargetEncoder, columns=[*rows.keys, *rows.source.joint], cv=KFold(3))
    frame = rows.frame
    categorical = frame.assign(**{name: frame[name].astype("category") for name in rows.keys})
    tables = {"arrow": rows.table, "polars": pl.from_arrow(rows.table), "categorical": categorical}
    output: dict[str, Any] = {name: named().fit_transform(table, y) for name, table in tables.items()}
    values = frame[rows.source.keys].astype(object).to_numpy()
    output["objects"] = TargetEncoder().fit_transform(values, y)
    output["positions"] = TargetEncoder(columns=[0, (1, 2)]).fit_transform(values, y)
    output["codes"] = TargetEncoder().fit_transform(np.arange(len(y) // 2 * 2).reshape(-1, 2) % 50, y[: len(y) // 2])
    return output


def with_dask(rows: Rows, cv: Any) -> Any:
    """Encode a Dask frame of three partitions."""
    import dask.dataframe

    frame = rows.frame.assign(y=rows.targets["continuous"])
    partitions = dask.dataframe.from_pandas(frame, npartitions=3)
    encoder = TargetEncoder(columns=rows.keys, cv=cv)
    X = partitions.drop(columns="y")
    train = encoder.fit_transform(X, partitions["y"]).compute(scheduler="synchronous")
    return {"train": train, "learned": learned(encoder)}


def tuned(rows: Rows, kind: str, **choices: Any) -> Any:
    """Give the scores of smoothings and schemes."""
    encoder = TargetEncoder(columns=[*rows.keys, *rows.source.joint], target_type=kind)
    scores = pd.DataFrame(tune(encoder, rows.frame, rows.targets[kind], **choices).as_dicts())
    return scores.to_dict("list") | {"numbers": scores.select_dtypes("number").to_numpy()}


def way_cases(rows: Rows) -> Iterator[Case]:
    """Encode in pieces, in steps, merged, from other libraries, tuned, and back again."""
    keys = [*rows.keys, *rows.source.joint]
    some: dict[str, tuple[Callable[[], Any], str | None]] = {
        "target": (partial(TargetEncoder, columns=keys, cv=3), "continuous"),
        "classes": (partial(TargetEncoder, columns=keys, cv=3), "multiclass"),
        "leave-one-out": (partial(TargetEncoder, columns=keys, cv=LeaveOneOut()), "binary"),
        "ordered": (partial(TargetEncoder, columns=keys, cv=Ordered(2)), "continuous"),
        "ordered, time": (partial(TargetEncoder, columns=keys, cv=Ordered(time="time")), "continuous"),
        "groups": (partial(TargetEncoder, columns=keys, cv=GroupKFold(3, groups="group")), "binary"),
        "statistics": (partial(StatisticEncoder, ["mean", "median", "skew"], columns=keys), "continuous"),
        **other_encoders(rows),
    }
    for number, (name, (make, kind)) in enumerate(some.items(), start=len(rows.name)):
        seen, odd = rows_for(name, rows), bool(number % 2)
        yield f"{rows.name} pieces {name}{', weights' * odd}", partial(in_pieces, seen, make, kind, odd)
        yield f"{rows.name} {'merge' if odd else 'partial_fit'} {name}", partial(in_steps, seen, make, kind, odd)
    for kind in KINDS:
        yield f"{rows.name} frames {kind}", partial(with_frames, rows, kind)
        yield f"{rows.name} tune {kind}", partial(tuned, rows, kind)
        schemes = [KFold(3), KFold(5, order="contiguous"), 4]
        yield f"{rows.name} tune {kind}, schemes", partial(tuned, rows, kind, schemes=schemes, per_column=True)
        weighted = partial(tuned, rows, kind, sample_weight=rows.weights, smoothings=list(SMOOTHINGS.values())[:-1])
        yield f"{rows.name} tune {kind}, weights", weighted
    few = partial(OneHotEncoder, max_categories=5, drop="first")
    for name, encoder in (("ordinal", OrdinalEncoder), ("one-hot", OneHotEncoder), ("few", few)):
        yield f"{rows.name} inverse {name}", partial(inverted, rows, encoder)
    for name, cv in (("folds", 3), ("leave-one-out", LeaveOneOut()), ("ordered", Ordered()), ("greedy", Greedy())):
        yield f"{rows.name} dask {name}", partial(with_dask, rows, cv)


def tight_limit(n_columns: int) -> int:
    """Give a limit that leaves room for chunks of some thousand rows beside what this process holds."""
    held = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return max(held, 450 << 20) + (n_columns * 4 + 24 << 20)


def through_files(rows: Rows, make: Callable[[], Any], kind: str | None, tight: bool, **options: Any) -> Any:
    """Encode a Parquet file into another, and new rows with the encoder that was fitted."""
    encoder = make()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = rows.table if kind is None else rows.table.append_column("y", pa.array(rows.targets[kind]))
        if "weight" in options:
            table = table.append_column(options["weight"], pa.array(rows.weights))
        pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=10_000)
        pyarrow.parquet.write_table(rows.new, folder / "new.parquet")
        limit = tight_limit(table.num_columns) if tight else None
        target = None if kind is None else "y"
        encode_dataset(
            folder / "rows.parquet", folder / "out.parquet", encoder, target=target, memory_limit=limit, **options
        )
        transform_dataset(folder / "new.parquet", folder / "out_new.parquet", encoder, memory_limit=limit)
        output = {path: pyarrow.parquet.read_table(folder / path) for path in ("out.parquet", "out_new.parquet")}
    return output | {"learned": learned(encoder)}


def file_cases(rows: Rows) -> Iterator[Case]:
    """Encode files, with and without a small limit of memory."""
    keys = [*rows.keys, *rows.source.joint]
    encoders: dict[str, tuple[Callable[[], Any], str | None]] = {
        f"{name}/{kind}": (partial(TargetEncoder, columns=keys, cv=SCHEMES[name](rows.table.num_rows)), kind)
        for name, kind in (
            ("int", "binary"), ("stratified", "multiclass"), ("blow-up", "continuous"), ("groups", "continuous"),
            ("time folds", "binary"), ("holdout", "binary"), ("leave-one-out", "continuous"),
            ("ordered, three", "continuous"), ("ordered, time", "binary"), ("column", "continuous"),
            ("ordered, apart", "multiclass"), ("greedy", "continuous"),
        )
    }  # fmt: skip
    others = other_encoders(rows)
    chosen = ("count", "ordinal target", "hashing", "evidence", "impact", "catboost", "gradient", "one-hot dense")
    encoders |= {name: others[name] for name in chosen if name != "gradient"}
    encoders["statistics"] = (partial(StatisticEncoder, ["mean", "median"], columns=keys), "continuous")
    for name, (make, kind) in encoders.items():
        for tight in (False, True):
            case = f"{rows.name} files {name}{', tight' * tight}"
            yield case, partial(through_files, rows, make, kind, tight)
    weighted = partial(through_files, rows, encoders["int/binary"][0], "binary", True)
    yield f"{rows.name} files weights", partial(weighted, weight="w", keep_target=False)


COMMANDS = {
    "target": "--target y",
    "smoothings": "--target y --smooth sigmoid:k=5,f=2 --folds 3 --indicators",
    "leave-one-out": "--target y --scheme loo --smooth m=3 --dtype float32",
    "ordered": "--target y --scheme ordered --permutations 2 --seed 5",
    "ordered, time": "--target y --scheme ordered --time time",
    "groups": "--target y --groups group --drop-target",
    "weights": "--target y --weight w --prior category_mean",
    "count": "--encoder count --kind frequency",
    "one-hot": "--encoder one-hot --handle-unknown ignore --max-categories 4",
    "statistic": "--encoder statistic --target y --statistics mean,median,quantile:0.9",
    "evidence": "--encoder weight-of-evidence --target y --target-type binary",
    "catboost": "--encoder catboost --target y --priors 0.5",
    "hashing": "--encoder hashing --n-components 4",
    "ordinal": "--encoder ordinal --handle-unknown use_encoded_value --set unknown_value=-1",
}


def through_commands(rows: Rows, words: str, suffix: str, tight: bool) -> Any:
    """Encode files by the command line; give the values of the output, and what the commands return."""
    columns = ",".join([*rows.keys, *("+".join(joint) for joint in rows.source.joint)])
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(name)
        table = rows.table.append_column("y", pa.array(rows.targets["binary"]))
        if "--weight" in words:
            table = table.append_column("w", pa.array(rows.weights))
        pyarrow.parquet.write_table(table, folder / "rows.parquet")
        pyarrow.parquet.write_table(rows.new, folder / "new.parquet")
        more = ["--memory-limit", str(tight_limit(table.num_columns))] if tight else []
        model = str(folder / "a.model")
        paths = [str(folder / f"{name}{suffix}") for name in ("out", "out_new")]
        with contextlib.redirect_stdout(io.StringIO()):
            first = run_command(
                ["fit-transform", str(folder / "rows.parquet"), paths[0], "--columns", columns, "--model", model,
                 *words.split(), *more]
            )  # fmt: skip
            second = run_command(["transform", str(folder / "new.parquet"), paths[1], "--model", model, *more])
        return {"status": [first, second], "train": values_in(paths[0]), "new": values_in(paths[1])}


def values_in(path: str) -> Any:
    """Give the columns of a file, if it is there: numbers as they are, any other values as Python objects."""
    if not Path(path).exists():
        return "nothing"
    if path.endswith(".csv"):
        return Path(path).read_text()
    table = pyarrow.parquet.read_table(path)
    return {name: table[name].to_pylist() if is_text(table[name]) else table[name] for name in table.column_names}


def is_text(column: Any) -> bool:
    """Tell text, whatever Arrow's type for it."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def command_cases(rows: Rows) -> Iterator[Case]:
    """Run the command line with several encoders and file formats."""
    for name, words in COMMANDS.items():
        yield f"{rows.name} command {name}", partial(through_commands, rows, words, ".parquet", False)
        yield f"{rows.name} command {name}, tight", partial(through_commands, rows, words, ".parquet", True)
        yield f"{rows.name} command {name}, csv", partial(through_commands, rows, words, ".csv", False)


def on_backend(name: str, run: Callable[[], Any]) -> Any:
    """Run a case on one backend."""
    with use_backend(name):
        return run()


def all_cases(folder: Path) -> Iterator[Case]:
    """Give the cases, each on some of the tables.

    Files in chunks come first, while the process is small, and the compiled backend last: once it is loaded, it is
    chosen for small tables, too.
    """
    names = list(names_in(folder))
    for number, name in enumerate(names):
        if number == 0:
            for case, run in list(file_cases(read_rows(folder, name, 20_000)))[::3]:
                yield f"chunks {case}", run
        rows = read_rows(folder, name, 1_000)
        yield from command_cases(rows) if number in (0, 3) else ()
        yield from file_cases(rows) if number in (1, 5) else ()
    for number, name in enumerate(names):
        rows = read_rows(folder, name, 1_000)
        yield from list(scheme_cases(rows, KINDS[number % 3]))[number // 3 % 3 :: 3]
        yield from list(encoder_cases(rows))[number % 3 :: 3]
        yield from list(way_cases(rows))[number % 4 :: 4]
    for number, name in enumerate(names):
        kind = KINDS[(number + 1) % 3]
        rows, more = read_rows(folder, name, 2_000), read_rows(folder, name, 60_000)
        for case, run in [*scheme_cases(rows, kind), *encoder_cases(rows), *way_cases(rows)][number::30]:
            yield f"compiled {case}", partial(on_backend, "compiled", run)
        for case, run in list(scheme_cases(more, kind))[number::100]:
            yield f"60,000 rows {case}", run


def model_cases(folder: Path, models: Path, save: bool) -> Iterator[Case]:
    """Encode new rows with models of every encoder, saved here or by another version."""
    for name in names_in(folder):
        rows = read_rows(folder, name, 1_000)
        for group, encoders in family(rows).items():
            for encoder, (make, kind) in encoders.items():
                path = models / f"{name}, {group}, {encoder.replace('/', ', ')}.model"
                yield path.stem, partial(with_model, rows_for(encoder, rows), make, kind, path, save)


def with_model(rows: Rows, make: Callable[[], Any], kind: str | None, path: Path, save: bool) -> Any:
    """Transform new rows with a saved model, which is made first if asked for."""
    if save:
        make().fit(rows.frame, target_of(rows, kind)).save(path)
    encoder = gpu_encode.load(path)
    output = {"new": encoder.transform(rows.new_frame), "learned": learned(encoder)}
    # What a model keeps of its sums shows when it learns more.
    if hasattr(encoder, "partial_fit"):
        with contextlib.suppress(ValueError, TypeError):
            encoder.partial_fit(rows.frame[:100], first_rows(target_of(rows, kind), 100))
            output["more"] = encoder.transform(rows.new_frame)
    return output


def first_rows(y: Any, n_rows: int) -> Any:
    return None if y is None else y[:n_rows]


def report(cases: Iterator[Case], only: str, write: Path | None, compare: Path | None) -> int:
    """Run the cases, and write what came out or compare it; give the number of differences."""
    begun = time.perf_counter()
    record = run_cases((name, run) for name, run in cases if only in name)
    n_cases = len({name.split(SEPARATOR)[0] for name in record})
    raised = sum(name.endswith(" raises") for name in record)
    seconds = time.perf_counter() - begun
    say(f"{n_cases:,} cases ({raised} raise), {len(record):,} outputs, {seconds:.0f} seconds")
    if write is not None:
        write_record(write, record)
    if compare is None:
        return 0
    expected = {name: entry for name, entry in read_record(compare).items() if only in name}
    lines = differences(expected, record)
    say("\n".join([*lines, f"{len(lines)} of {len(expected):,} outputs differ"]))
    return len(lines)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(words: list[str]) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description="Record every output on real tables, or compare it with a record.")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder of Parquet files")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this text in their name")
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument("--write", type=Path, metavar="FILE", help="run all cases and write what came out")
    doing.add_argument("--compare", type=Path, metavar="FILE", help="run all cases and list what differs")
    doing.add_argument("--save-models", type=Path, metavar="FOLDER", help="fit and save models, and what they give")
    doing.add_argument("--load-models", type=Path, metavar="FOLDER", help="load them and list what differs")
    options = parser.parse_args(words)
    say(f"gpu_encode of {Path(gpu_encode.__file__).parent}")
    models = options.save_models or options.load_models
    if models is None:
        return min(1, report(all_cases(options.data), options.only, options.write, options.compare))
    models.mkdir(parents=True, exist_ok=True)
    cases = model_cases(options.data, models, save=options.save_models is not None)
    outputs = models / "outputs.npz"
    save, load = (outputs, None) if options.save_models else (None, outputs)
    return min(1, report(cases, options.only, save, load))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
