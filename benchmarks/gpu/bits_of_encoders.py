"""TargetEncoder on the device, compared with the CPU: every scheme, smoothing, target and shape of keys."""

import warnings
from typing import Any

import numpy as np

import gpu_encode
from benchmarks.gpu.comparison import difference
from benchmarks.gpu.drawn import Columns, codes
from benchmarks.gpu.report import Run
from cpu_fallback.types import Array
from gpu_encode.cuda.memory import to_host
from gpu_encode.cuda.runtime import xp
from gpu_encode.seam.ops import use_backend

N_ROWS = 200_003
Options = dict[str, Any]
KINDS = {"real": "continuous", "binary": "binary", "ten": "multiclass"}
# Columns of the table: two columns of categories, and a time.
TIME = 2
SCHEMES: dict[str, Options] = {
    "5 folds": {},
    "5 contiguous folds": {"shuffle": False},
    "12 folds": {"cv": 12},
    "blow up": {"cv": gpu_encode.KFold(3, blow_up=True)},
    "stratified": {"cv": gpu_encode.KFold(3, stratify=True)},
    "groups": {"cv": gpu_encode.GroupKFold(4, groups=1), "columns": [0]},
    "leave one out": {"cv": gpu_encode.LeaveOneOut()},
    "ordered": {"cv": gpu_encode.Ordered()},
    "ordered, burn-in": {"cv": gpu_encode.Ordered(burn_in=0.1)},
    "two orders": {"cv": gpu_encode.Ordered(2)},
    "two orders apart": {"cv": gpu_encode.Ordered(2, average=False)},
    "ordered in time": {"cv": gpu_encode.Ordered(time=TIME)},
    "holdout": {"cv": gpu_encode.Holdout(0.3)},
    "time folds": {"cv": gpu_encode.TimeFolds(4, time=TIME, gap=1)},
    "greedy": {"cv": gpu_encode.Greedy()},
}
SMOOTHINGS: dict[str, Options] = {
    "smooth 10": {"smooth": 10.0},
    "smooth none": {"smooth": None},
    "sigmoid": {"smooth": gpu_encode.Sigmoid()},
    "between": {"smooth": gpu_encode.EmpiricalBayes(tau="between")},
    "James-Stein": {"smooth": gpu_encode.JamesStein()},
    "pooling": {"smooth": gpu_encode.PartialPooling()},
}
SHAPES: dict[str, Options] = {
    "hierarchy": {"columns": [0], "hierarchy": {0: gpu_encode.Bits(30, 27)}},
    "joint key": {"columns": [(0, 1)]},
    "indicators": {"indicators": True, "min_count": 3},
    "float32": {"dtype": "float32"},
    "category mean": {"prior": "category_mean"},
    "nan for unknown": {"handle_unknown": "nan"},
    "weights": {"weight": "weight"},
}


def list_cases(tiny: bool) -> list[tuple[str, str, Options]]:
    """List names, targets and parameters to compare; if `tiny`, each parameter with one target only."""
    targets, schemes = ("real", "binary", "ten"), ("5 folds", "leave one out", "ordered")
    if tiny:
        targets, schemes = targets[1:2], schemes[:1]
    cases = [(name, target, options) for name, options in SCHEMES.items() for target in targets]
    # Folds cannot be stratified by real targets.
    cases = [case for case in cases if case[:2] != ("stratified", "real")]
    for name, options in {**SMOOTHINGS, **SHAPES}.items():
        cases += [(f"{name}, {way}", target, options | SCHEMES[way]) for way in schemes for target in targets[:2]]
    return [*cases, ("missing values", "real", {"columns": [0], "indicators": True, "nulls": True})]


def encode(backend: str, data: dict[str, Array], target: str, options: Options) -> list[Array]:
    """Give the encodings of training rows, of new rows, and of all categories."""
    given = {"columns": [0, 1], "target_type": KINDS[target]} | options
    X, new, weight = data["X"], data["new"], data.get(given.pop("weight", ""))
    if given.pop("nulls", False):
        X, new = (np.where(array % 5 == 0, np.nan, array * 0.5) for array in (X, new))
    with use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = gpu_encode.TargetEncoder(**given)
        encodings = encoder.fit_transform(X, data[target], sample_weight=weight)
        return [encodings, encoder.transform(new), *encoder.encodings_]


def run(step: Run) -> None:
    """Compare encoders, with arrays on the device as input and output."""
    n_rows, n_categories = step.size((N_ROWS, 3000), (16, 4))
    columns = Columns(n_rows)
    data = {name: columns[name] for name in (*KINDS, "weight")}
    for name, n, categories, seed in (("X", n_rows, n_categories, 20), ("new", n_rows // 2, n_categories * 5 // 4, 50)):
        drawn = [codes(n, most, "Zipf 1.5", seed=seed + i) for i, most in enumerate((categories, 7, n // 3))]
        data[name] = xp.stack([array.astype(np.int64) for array in drawn], axis=1)
    host = {name: to_host(array) for name, array in data.items()}
    for name, target, options in list_cases(step.tiny):
        with step.attempt(f"{name}, {target}"):
            said = difference(encode(step.backend, data, target, options), encode("compiled", host, target, options))
            step.row("TargetEncoder", what=name, target=target, rows=n_rows, same=not said)
            if said:
                step.fail(f"{name}, {target}: {said}")
