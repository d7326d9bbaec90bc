"""Records every output on real tables, and compares it with a record of another version, bit by bit.

``python -m tests.laws.every_output --data FOLDER --write FILE.npz`` runs all cases on the Parquet files of a folder
(`real_tables.toml` names them) and writes the outputs; ``--compare FILE.npz`` runs all cases and lists the outputs that
differ.  ``--save-models FOLDER`` and ``--load-models FOLDER`` do the same with encoders that are saved and loaded.
``--only TEXT`` selects the cases with this text in their name.  Only public names are used, so the same script can run
an older version of the library, if that version comes first on the path.
"""

import argparse
import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import sklearn.model_selection

import gpu_encode
import gpu_encode as ge
from gpu_encode.seam.ops import use_backend
from tests.laws.real_tables import Rows, names_in, read_rows
from tests.laws.recorded import Case, compare_records, read_record, run_cases, write_record

# An encoder, the kind of its target, and its parameters beside the columns.
Entry = tuple[Callable[..., Any], str | None, dict[str, Any]]
KINDS = ("binary", "continuous", "multiclass")
SMOOTHINGS: dict[str, Any] = {
    "none": None,
    "auto": "auto",
    "number": 2.5,
    "m-estimate": ge.MEstimate(20.0),
    "sigmoid": ge.Sigmoid(),
    "steep sigmoid": ge.Sigmoid(3.0, 0.5),
    "total": ge.EmpiricalBayes("total"),
    "between": ge.EmpiricalBayes("between"),
    "james-stein": ge.JamesStein(),
    "independent": ge.JamesStein("independent"),
    "pooling": ge.PartialPooling(),
    "glmm": ge.GLMM(),
}
SCHEMES: dict[str, Any] = {
    "greedy": ge.Greedy(),
    "none": None,
    "int": 3,
    "k-fold": ge.KFold(4, random_state=4),
    "contiguous": ge.KFold(3, order="contiguous"),
    "interleaved": ge.KFold(2, order="interleaved"),
    "stratified": ge.KFold(4, stratify=True),
    "blow-up": ge.KFold(3, blow_up=True),
    "groups": ge.GroupKFold(3, groups="group"),
    "time folds": ge.TimeFolds(3, time="time"),
    "time folds, gap": ge.TimeFolds(4, time="time", gap=1),
    "holdout": ge.Holdout(0.4, random_state=2),
    "leave-one-out": ge.LeaveOneOut(),
    "ordered": ge.Ordered(random_state=6),
    "ordered, three": ge.Ordered(3),
    "ordered, apart": ge.Ordered(2, average=False, burn_in=7),
    "ordered, as rows stand": ge.Ordered(shuffle=False),
    "ordered, time": ge.Ordered(time="time"),
    "ordered, time, burn-in": ge.Ordered(time="time", burn_in=0.1),
    "column": "fold",
    "array": lambda n: np.arange(n) % 5 % 3,
    "scikit-learn": sklearn.model_selection.KFold(3, shuffle=True, random_state=1),
    "stratified scikit-learn": sklearn.model_selection.StratifiedKFold(3),
    "splits": lambda n: [(np.arange(0, n, 2), np.arange(1, n, 2)), (np.arange(1, n, 2), np.arange(0, n, 2))],
}
FEW_SCHEMES = {
    "folds": 3,
    "leave-one-out": ge.LeaveOneOut(),
    "ordered": ge.Ordered(2),
    "blow-up": ge.KFold(2, blow_up=True),
}
LEARNED = (
    *("categories_", "encodings_", "target_mean_", "target_type_", "classes_", "information_value_", "drop_idx_"),
    "infrequent_categories_",
)
GEOMETRIC_MEAN = ge.MergeableStatistic("geometric", [lambda x: np.log(1 + x * x)], lambda n, logs: np.exp(logs / n))
SUMS = ["count", "sum", "mean", "var", "std", "sem", "skew"]
ORDERS = ["min", "max", "median", "mode", "nunique", ("quantile", 0.9), ("quantile", 0.123), ("share", 1.5)]
POOL = {"handle_infrequent": "category"}
CODED = {"handle_unknown": "use_encoded_value", "unknown_value": -5}


def entry(encoder: Callable[..., Any], kind: str | None, /, **parameters: Any) -> Entry:
    """Return an encoder with the kind of its target, and parameters."""
    return encoder, kind, parameters


OTHERS: dict[str, Entry] = {
    "count": entry(ge.CountEncoder, None),
    "frequency": entry(ge.CountEncoder, None, kind="frequency", indicators=True, handle_unknown="nan"),
    "log": entry(ge.CountEncoder, None, kind="log", min_count=3, dtype="float32"),
    "count rare": entry(ge.CountEncoder, None, max_categories=4, **POOL),
    "ordinal": entry(ge.OrdinalEncoder, None, **CODED),
    "ordinal refusing": entry(ge.OrdinalEncoder, None),
    "ordinal frequency": entry(
        ge.OrdinalEncoder, None, order="frequency", min_frequency=3, dtype="int32", encoded_missing_value=-1, **CODED
    ),
    "ordinal random": entry(ge.OrdinalEncoder, None, order="random", n_draws=3, random_state=3, **CODED),
    "ordinal target": entry(ge.OrdinalEncoder, "continuous", order="target", **CODED),
    "ordinal target classes": entry(ge.OrdinalEncoder, "multiclass", order="target", cv=ge.KFold(3), **CODED),
    "ordinal target few": entry(
        ge.OrdinalEncoder, "binary", order="target", cv=ge.KFold(3, blow_up=True), max_categories=5, **CODED
    ),
    "one-hot": entry(ge.OneHotEncoder, None, handle_unknown="ignore"),
    "one-hot refusing": entry(ge.OneHotEncoder, None),
    "one-hot dense": entry(ge.OneHotEncoder, None, sparse_output=False, handle_unknown="ignore", drop="if_binary"),
    "one-hot infrequent": entry(
        ge.OneHotEncoder, None, max_categories=5, handle_unknown="infrequent_if_exist", dtype="float32"
    ),
    "one-hot rare": entry(
        ge.OneHotEncoder, None, min_frequency=0.02, drop="first", handle_unknown="warn", handle_missing="zero"
    ),
    "hashing": entry(ge.HashingEncoder, None),
    "hashing signs": entry(ge.HashingEncoder, None, n_components=5, per_column=True, alternate_sign=True, seed=3),
    "hashing zero": entry(ge.HashingEncoder, None, n_components=16, handle_missing="zero", dtype="float32"),
    "evidence": entry(ge.WeightOfEvidenceEncoder, "binary"),
    "evidence classes": entry(
        ge.WeightOfEvidenceEncoder, "multiclass", cv=ge.KFold(2), regularization=0.5, indicators=True
    ),
    "evidence leave-one-out": entry(
        ge.WeightOfEvidenceEncoder, "binary", cv=ge.LeaveOneOut(), regularization=2.0, min_count=2
    ),
    "evidence ordered": entry(ge.WeightOfEvidenceEncoder, "binary", cv=ge.Ordered(2)),
    "evidence rare": entry(ge.WeightOfEvidenceEncoder, "binary", min_frequency=0.01, **POOL),
    "impact": entry(ge.ImpactEncoder, "continuous", target_type="continuous"),
    "impact logit": entry(ge.ImpactEncoder, "binary", parts=["impact", "logit", "prevalence"], cv=ge.LeaveOneOut()),
    "impact ordered": entry(ge.ImpactEncoder, "continuous", cv=ge.Ordered(), smooth=3.0),
    "impact classes": entry(ge.ImpactEncoder, "multiclass", parts=["impact"], cv=ge.KFold(3)),
    "catboost": entry(ge.CatBoostEncoder, "binary"),
    "catboost has time": entry(ge.CatBoostEncoder, "binary", shuffle=False, scale="sqrt"),
    "catboost borders": entry(ge.CatBoostEncoder, "continuous", statistic="borders", borders=3),
    "catboost mean of buckets": entry(ge.CatBoostEncoder, "continuous", borders=[1.0, 20.0], cv=ge.LeaveOneOut()),
    "catboost buckets": entry(
        ge.CatBoostEncoder, "multiclass", statistic="buckets", priors=[0.5], weight=2.0, cv=ge.KFold(3)
    ),
    "catboost counter": entry(ge.CatBoostEncoder, None, statistic="counter", max_categories=5),
    "catboost frequency": entry(ge.CatBoostEncoder, None, statistic="frequency", cv=ge.Ordered(2)),
    "gradient": entry(ge.GradientEncoder, "gradients"),
    "gradient order": entry(
        ge.GradientEncoder, "gradients", output="order", regularization=1.0, cv=ge.KFold(3), min_count=3
    ),
    "gradient leave-one-out": entry(ge.GradientEncoder, "gradients", cv=ge.LeaveOneOut()),
    "gradient ordered": entry(ge.GradientEncoder, "gradients", cv=ge.Ordered(2, average=False)),
}


def target_encoders(rows: Rows) -> dict[str, Entry]:
    """Yield target encoders with every other parameter."""
    joint, tree = rows.source.joint, rows.source.hierarchy
    above = next(name for name in rows.keys if name not in joint[0])
    parameters: dict[str, tuple[str, dict[str, Any]]] = {f"default, {kind}": (kind, {}) for kind in KINDS} | {
        "interactions": ("binary", {"columns": ge.interactions(rows.keys, 3)}),
        "category mean": ("binary", {"prior": "category_mean", "handle_missing": "nan", "handle_unknown": "nan"}),
        "numbers as priors": (
            "continuous",
            {"prior": {rows.keys[0]: 0.25}, "handle_unknown": -7, "handle_missing": "prior", "min_count": 3},
        ),
        "unknown refused": ("binary", {"handle_unknown": "error"}),
        "missing refused": ("binary", {"handle_missing": "error"}),
        "float32": ("continuous", {"dtype": "float32", "indicators": ["missing", "unseen"]}),
        "drop": ("multiclass", {"drop": "first", "target_type": "multiclass"}),
        "roots": ("binary", {"scale": "sqrt"}),
        "log1p": ("shares", {"scale": "log1p", "cv": ge.LeaveOneOut()}),
        "power": ("shares", {"scale": 0.7, "cv": ge.Ordered(2)}),
        "log-odds": ("binary", {"scale": "logit"}),
        "several": ("several", {"target_type": list(KINDS), "indicators": True}),
        "all columns": ("binary", {"columns": None}),
        "level above a joint key": ("binary", {"columns": joint[:1], "hierarchy": {joint[0]: above}, "smooth": 5.0}),
    }
    for policy in ("prior", "category"):
        few = {"cv": ge.KFold(3), "handle_infrequent": policy}
        parameters[f"min frequency, {policy}"] = ("binary", few | {"min_frequency": 0.01})
        parameters[f"most categories, {policy}"] = ("continuous", few | {"max_categories": 6, "indicators": True})
    for name, cv in FEW_SCHEMES.items():
        for smooth in ("auto", "number", "sigmoid", "pooling") if tree else ():
            levels = {"columns": list(tree), "hierarchy": tree, "cv": cv, "smooth": SMOOTHINGS[smooth]}
            parameters[f"hierarchy {name}/{smooth}"] = ("continuous", levels)
        for kind in KINDS:
            marked = {"cv": cv, "indicators": True, "min_count": 2, "handle_missing": "prior"}
            parameters[f"indicators {name}/{kind}"] = (kind, marked)
    return {name: (ge.TargetEncoder, *entry) for name, entry in parameters.items()}


def statistic_encoders(rows: Rows) -> dict[str, Entry]:
    """Yield encoders of statistics of the target and of columns."""
    numbers = rows.source.numbers
    pairs = {rows.keys[0]: {numbers[0]: ["mean", "median"]}, rows.source.joint[0]: {numbers[-1]: ["sum"]}}
    parameters: dict[str, tuple[Any, str | None, dict[str, Any]]] = {}
    schemes = {"folds": 3, "auto": "auto", "leave-one-out": ge.LeaveOneOut(), "time": ge.TimeFolds(time="time")}
    for name, cv in schemes.items():
        parameters[f"orders {name}"] = (ORDERS, "continuous", {"cv": cv})
        parameters[f"sums {name}"] = (SUMS, "continuous", {"cv": cv})
    parameters |= {
        "sums ordered": (SUMS, "continuous", {"cv": ge.Ordered(2), "ddof": 0}),
        "sums of labels": (SUMS[:6], "multiclass", {"target_type": "auto"}),
        "sums of columns": (SUMS, None, {"values": numbers}),
        "orders of columns": (ORDERS, None, {"values": numbers, "cv": ge.KFold(3)}),
        "pairs": (pairs, None, {"columns": None}),
        "mergeable": (["mean", GEOMETRIC_MEAN], "continuous", {}),
        "scaled": (["count", "std"], "continuous", {"scale": "log1p", "indicators": True, "dtype": "float32"}),
        "rare": (["mean", "std"], "continuous", {"cv": ge.KFold(3), "max_categories": 5} | POOL),
        "zeros": (ORDERS, "continuous", {"cv": 2, "min_count": 3, "handle_unknown": 0.0, "handle_missing": "nan"}),
    }
    return {
        name: (ge.StatisticEncoder, kind, {"statistics": statistics} | more)
        for name, (statistics, kind, more) in parameters.items()
    }


def family(rows: Rows) -> dict[str, dict[str, Entry]]:
    """Give every encoder, by its part of the family."""
    return {"target": target_encoders(rows), "statistics": statistic_encoders(rows), "other": OTHERS}


def learned(encoder: Any) -> dict[str, Any]:
    """Return an encoder's fitted attributes."""
    attributes = {name: getattr(encoder, name) for name in LEARNED if hasattr(encoder, name)}
    return attributes | {"names": encoder.get_feature_names_out()}


def target_of(rows: Rows, kind: str | None) -> Any:
    """Give a target by its kind; gradients are those of the log loss at 0.3."""
    if kind == "gradients":
        return np.column_stack([0.3 - rows.targets["binary"], np.full(rows.table.num_rows, 0.21)])
    if kind == "shares":
        return np.abs(rows.targets["continuous"]) / (1 + np.abs(rows.targets["continuous"]).max())
    if kind == "several":
        return pd.DataFrame(rows.targets)
    return None if kind is None else rows.targets[kind]


def make_encoder(rows: Rows, entry: Entry) -> Any:
    """Make an encoder of a table's keys, single and joint, unless its entry names columns."""
    make, _, parameters = entry
    return make(**{"columns": [*rows.keys, *rows.source.joint]} | parameters)


def fit_and_transform(rows: Rows, entry: Entry, full: bool = True, **fit: Any) -> Any:
    """Return encodings of training rows and new rows; in full also fitted attributes, and training rows as new ones."""
    encoder, y, frame = make_encoder(rows, entry), target_of(rows, entry[1]), rows.frame
    output = {"train": encoder.fit_transform(frame, y, **fit), "new": encoder.transform(rows.new_frame)}
    if full:
        apart = make_encoder(rows, entry).fit(frame, y, **fit)
        output |= {"learned": learned(encoder), "apart": apart.transform(frame), "learned apart": learned(apart)}
    return output


def scheme_cases(rows: Rows, kind: str) -> Iterator[Case]:
    """Cross every scheme with every smoothing."""
    for (scheme, cv), (smoothing, smooth) in itertools.product(SCHEMES.items(), SMOOTHINGS.items()):
        columns = rows.keys[:1] if smoothing == "glmm" else rows.keys[:2]
        made = cv(rows.table.num_rows) if scheme in {"array", "splits"} else cv
        entry = ge.TargetEncoder, kind, {"columns": columns, "cv": made, "smooth": smooth, "target_type": kind}
        yield f"{rows.name} schemes {scheme}/{smoothing}/{kind}", partial(fit_and_transform, rows, entry, False)


def encoder_cases(rows: Rows) -> Iterator[Case]:
    """Run every encoder without and with weights."""
    turns = itertools.cycle(("counts", "weights", "weights"))
    for group, encoders in family(rows).items():
        for name, entry in encoders.items():
            case, taken = f"{rows.name} {group} {name}", rows_for(name, rows)
            yield case, partial(fit_and_transform, taken, entry)
            # Whole and fractional weights in turn.
            weighting = next(turns)
            weight = getattr(rows, weighting)
            yield f"{case}, {weighting}", partial(fit_and_transform, taken, entry, False, sample_weight=weight)


def rows_for(encoder: str, rows: Rows) -> Rows:
    """Return the rows as an encoder takes them: sparse matrices cannot hold columns that pass through."""
    return rows.encoded_only if encoder.startswith("one-hot") else rows


def fit_pieces(rows: Rows, entry: Entry, weighted: bool) -> Any:
    """Fit on three tables, of three libraries."""
    n = rows.table.num_rows
    bounds = list(itertools.pairwise((0, n // 4, n // 2, n)))
    libraries = (lambda t: t.to_pandas(), pl.from_arrow, lambda t: t)
    pieces = [convert(rows.table.slice(a, b - a)) for convert, (a, b) in zip(libraries, bounds, strict=True)]
    y = target_of(rows, entry[1])
    vectors = None if y is None else [y[a:b] for a, b in bounds]
    fit = {"sample_weight": [rows.weights[a:b] for a, b in bounds]} if weighted else {}
    encoder = make_encoder(rows, entry)
    return {"train": encoder.fit_transform(pieces, vectors, **fit), "new": encoder.transform([rows.new, rows.new])}


def fit_steps(rows: Rows, entry: Entry, merged: bool) -> Any:
    """Fit in two steps, or merge two fitted encoders."""
    frame, y = rows.frame, target_of(rows, entry[1])
    third = len(frame) // 3
    first, second = ((frame[part], None if y is None else y[part]) for part in (slice(third), slice(third, None)))
    encoder = make_encoder(rows, entry)
    if merged:
        encoder.fit(*first).merge(make_encoder(rows, entry).fit(*second))
    else:
        encoder.partial_fit(*first).partial_fit(*second)
    return {"new": encoder.transform(rows.new_frame), "learned": learned(encoder)}


def way_cases(rows: Rows) -> Iterator[Case]:
    """Encode in pieces, in steps and merged."""
    encoders: dict[str, Entry] = {
        "target": (ge.TargetEncoder, "continuous", {"cv": 3}),
        "classes": (ge.TargetEncoder, "multiclass", {"cv": 3}),
        "leave-one-out": (ge.TargetEncoder, "binary", {"cv": ge.LeaveOneOut()}),
        "ordered": (ge.TargetEncoder, "continuous", {"cv": ge.Ordered(2)}),
        "ordered, time": (ge.TargetEncoder, "continuous", {"cv": ge.Ordered(time="time")}),
        "groups": (ge.TargetEncoder, "binary", {"cv": ge.GroupKFold(3, groups="group")}),
        "statistics": (ge.StatisticEncoder, "continuous", {"statistics": ["mean", "median", "skew"]}),
    }
    for number, (name, entry) in enumerate((encoders | OTHERS).items(), start=len(rows.name)):
        taken, odd = rows_for(name, rows), bool(number % 2)
        yield f"{rows.name} pieces {name}{', weights' * odd}", partial(fit_pieces, taken, entry, odd)
        yield f"{rows.name} {'merge' if odd else 'partial_fit'} {name}", partial(fit_steps, taken, entry, odd)


def run_compiled(run: Callable[[], Any]) -> Any:
    """Run a case on the compiled backend."""
    with use_backend("compiled"):
        return run()


def all_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases, each on some of the tables.

    The compiled backend comes last: once it is loaded, it is chosen for small tables, too.
    """
    names = list(names_in(folder))
    for number, name in enumerate(names):
        rows = read_rows(folder, name, 1_000)
        yield from list(scheme_cases(rows, KINDS[number % 3]))[number // 3 % 3 :: 3]
        yield from list(encoder_cases(rows))[number % 3 :: 3]
        yield from list(way_cases(rows))[number % 4 :: 4]
    for number, name in enumerate(names):
        kind = KINDS[(number + 1) % 3]
        rows, more = read_rows(folder, name, 2_000), read_rows(folder, name, 60_000)
        for case, run in [*scheme_cases(rows, kind), *encoder_cases(rows), *way_cases(rows)][number::30]:
            yield f"compiled {case}", partial(run_compiled, run)
        for case, run in list(scheme_cases(more, kind))[number::100]:
            yield f"60,000 rows {case}", run


def model_cases(folder: Path, models: Path, save: bool) -> Iterator[Case]:
    """Encode new rows with models of every encoder, saved here or by another version."""
    for name in names_in(folder):
        rows = read_rows(folder, name, 1_000)
        for group, encoders in family(rows).items():
            for encoder, entry in encoders.items():
                path = models / f"{name}, {group}, {encoder.replace('/', ', ')}.model"
                yield path.stem, partial(transform_with_model, rows_for(encoder, rows), entry, path, save)


def transform_with_model(rows: Rows, entry: Entry, path: Path, save: bool) -> Any:
    """Transform new rows with a saved model, which is made first if asked for."""
    y = target_of(rows, entry[1])
    if save:
        make_encoder(rows, entry).fit(rows.frame, y).save(path)
    encoder = gpu_encode.load(path)
    output = {"new": encoder.transform(rows.new_frame), "learned": learned(encoder)}
    # The sums that a model keeps show when it learns more.
    if hasattr(encoder, "partial_fit"):
        with contextlib.suppress(ValueError, TypeError):
            encoder.partial_fit(rows.frame[:100], None if y is None else y[:100])
            output["more"] = encoder.transform(rows.new_frame)
    return output


def report(cases: Iterator[Case], only: str, write: Path | None, compare: Path | None) -> int:
    """Run the cases, and write or compare the results; return the number of differences."""
    begun = time.perf_counter()
    record = run_cases((name, run) for name, run in cases if only in name)
    say(f"{len(record):,} outputs, {time.perf_counter() - begun:.0f} seconds")
    if write is not None:
        write_record(write, record)
    if compare is None:
        return 0
    lines, compared = compare_records(read_record(compare), record)
    say("\n".join([*lines, f"{len(lines)} of {compared:,} outputs differ"]))
    return len(lines)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(words: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Record every output on real tables, or compare it with a record.")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder of Parquet files")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this text in their name")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE", help="run all cases and write what came out")
    action.add_argument("--compare", type=Path, metavar="FILE", help="run all cases and list what differs")
    action.add_argument("--save-models", type=Path, metavar="FOLDER", help="fit and save models, and what they give")
    action.add_argument("--load-models", type=Path, metavar="FOLDER", help="load them and list what differs")
    options = parser.parse_args(words)
    say(f"gpu_encode of {Path(gpu_encode.__file__).parent}")
    models = options.save_models or options.load_models
    if models is None:
        return min(1, report(all_cases(options.data), options.only, options.write, options.compare))
    models.mkdir(parents=True, exist_ok=True)
    outputs, save = models / "outputs.npz", options.save_models is not None
    cases = model_cases(options.data, models, save)
    return min(1, report(cases, options.only, outputs if save else None, None if save else outputs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
