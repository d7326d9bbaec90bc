"""TargetEncoder on the device against TargetEncoder on the CPU: every scheme, smoothing, target and shape of keys."""

import warnings
from typing import Any

import numpy as np

from benchmarks.gpu.comparison import difference, on_host
from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.run import Run
from cpu_fallback.types import Array
from gpu_encode import (
    Bits,
    EmpiricalBayes,
    Greedy,
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    Ordered,
    PartialPooling,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
)
from gpu_encode.cuda.runtime import xp
from gpu_encode.ops import use_backend

N_ROWS = 200_003
Options = dict[str, Any]
# Columns of the table: two of categories, a time.
KEYS: Options = {"columns": [0, 1]}
TIME = 2
SCHEMES: dict[str, Options] = {
    "5 folds": {},
    "5 contiguous folds": {"shuffle": False},
    "12 folds": {"cv": 12},
    "blow up": {"cv": KFold(3, blow_up=True)},
    "stratified": {"cv": KFold(3, stratify=True)},
    "groups": {"cv": GroupKFold(4, groups=1), "columns": [0]},
    "leave one out": {"cv": LeaveOneOut()},
    "ordered": {"cv": Ordered()},
    "ordered, burn-in": {"cv": Ordered(burn_in=0.1)},
    "two orders": {"cv": Ordered(2)},
    "two orders apart": {"cv": Ordered(2, average=False)},
    "ordered in time": {"cv": Ordered(time=TIME)},
    "holdout": {"cv": Holdout(0.3)},
    "time folds": {"cv": TimeFolds(4, time=TIME, gap=1)},
    "greedy": {"cv": Greedy()},
}
SMOOTHINGS: dict[str, Options] = {
    "10": {"smooth": 10.0},
    "none": {"smooth": None},
    "sigmoid": {"smooth": Sigmoid()},
    "between": {"smooth": EmpiricalBayes(tau="between")},
    "James-Stein": {"smooth": JamesStein()},
    "pooling": {"smooth": PartialPooling()},
}
SHAPES: dict[str, Options] = {
    "hierarchy": {"columns": [0], "hierarchy": {0: Bits(30, 27)}},
    "joint key": {"columns": [(0, 1)]},
    "indicators": {"indicators": True, "min_count": 3},
    "float32": {"dtype": "float32"},
    "category mean": {"prior": "category_mean"},
    "nan for unknown": {"handle_unknown": "nan"},
}


def table_of(n_rows: int, n_categories: int, seed: int) -> Array:
    """Table of two columns of categories and one of times."""
    columns = [codes(n_rows, n, "Zipf 1.5", seed=seed + i) for i, n in enumerate((n_categories, 7, n_rows // 3))]
    return xp.stack([column.astype(np.int64) for column in columns], axis=1)


def cases(tiny: bool) -> list[tuple[str, str, Options]]:
    """Names, targets and parameters to compare; under `tiny` each parameter with one target."""
    targets = ("real", "binary", "ten")
    found = []
    for i, (name, options) in enumerate(SCHEMES.items()):
        chosen = [targets[i % 3]] if tiny else targets[1 if name == "stratified" else 0 :]
        found += [(name, target, KEYS | options) for target in chosen]
    for i, (name, options) in enumerate(SMOOTHINGS.items()):
        for scheme in ({}, SCHEMES["leave one out"])[: 1 if tiny else 2]:
            named = f"smooth {name}" + (", leave one out" if scheme else "")
            chosen = [targets[i % 2]] if tiny else targets[:2]
            found += [(named, target, KEYS | options | scheme) for target in chosen]
    for name, options in SHAPES.items():
        for scheme in ("5 folds",) if tiny else ("5 folds", "leave one out", "ordered"):
            found.append((f"{name}, {scheme}", "binary" if tiny else "real", KEYS | options | SCHEMES[scheme]))
    for scheme in ("5 folds",) if tiny else ("5 folds", "leave one out", "ordered"):
        found.append((f"weights, {scheme}", "real", KEYS | SCHEMES[scheme] | {"weight": "weight"}))
    found.append(("missing values", "real", {"columns": [0], "indicators": True, "nulls": True}))
    return found


def encoded(backend: str, data: dict[str, Array], target: str, options: Options) -> list[Array]:
    """Training codes, codes of new rows, and the codes of all categories."""
    given = dict(options)
    X, new, weight = data["X"], data["new"], given.pop("weight", None)
    if given.pop("nulls", False):
        X, new = (np.where(each % 5 == 0, np.nan, each * 0.5) for each in (X, new))
    kind = {"real": "continuous", "binary": "binary", "ten": "multiclass"}[target]
    with use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = TargetEncoder(target_type=kind, **given)
        codes_ = encoder.fit_transform(X, data[target], sample_weight=None if weight is None else data[weight])
        return [codes_, encoder.transform(new), *encoder.encodings_]


def run(step: Run) -> None:
    """Compare encoders; arrays of the device in, arrays of the device out."""
    n_rows, n_categories = step.size((N_ROWS, 3000), (16, 4))
    columns = Columns(n_rows)
    data = {name: getattr(columns, name) for name in ("real", "binary", "ten", "weight")}
    data |= {"X": table_of(n_rows, n_categories, 20), "new": table_of(n_rows // 2, n_categories * 5 // 4, 50)}
    host = {name: on_host(array) for name, array in data.items()}
    for name, target, options in cases(step.tiny):
        with step.attempt(f"{name}, {target}"):
            said = difference(encoded(step.backend, data, target, options), encoded("compiled", host, target, options))
            step.row("TargetEncoder", what=name, target=target, rows=n_rows, same=not said)
            if said:
                step.fail(f"{name}, {target}: {said}")
