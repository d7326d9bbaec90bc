"""Random-intercept models: ours and category_encoders'; fit alone, and on five folds."""

from functools import partial
from typing import Any

from benchmarks.cpu.contenders.libraries import category_encoder, series_of
from benchmarks.cpu.contenders.ours import matrix, table_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.judge import Unjudged
from benchmarks.harness.rows import N_FOLDS, Rows
from gpu_encode import GLMM, TargetEncoder
from studies.family import mixed
from studies.family.judge import expect

# A tolerance, since the model of category_encoders, from statsmodels, stops before the last digits.
TOLERANCE, LOOSE_TOLERANCE = 1e-6, 1e-3


def expected_of(rows: Rows, tolerance: float = TOLERANCE, effects: bool = False) -> Any:
    """Give the expected answer for a real target; for other targets, and for folds, only the models define it."""
    if rows.kind != "continuous" or rows.work != "glmm":
        return Unjudged()
    return expect(mixed.effects_of if effects else mixed.values_of, rows, tolerance=tolerance)


def ours(rows: Rows, objects: bool = False) -> Prepared:
    """Prepare ours: fit and encodings of the rows as new rows, or by five folds."""
    X, y = rows.matrix if objects else table_of(rows), rows.target
    options = {"smooth": GLMM(), "target_type": rows.kind}
    if rows.work == "glmm":
        return Prepared(
            lambda: matrix(TargetEncoder(**options, device="cpu").fit(X, y).transform(X)), expected_of(rows)
        )
    call = partial(TargetEncoder(**options, cv=N_FOLDS, device="cpu").fit_transform, X, y)
    return Prepared(lambda: matrix(call()), expected_of(rows))


def category_encoders(rows: Rows) -> Prepared:
    """Prepare GLMMEncoder, whose encodings are effects without the common value."""
    X, y = rows.frame, series_of(rows)
    make = category_encoder("GLMMEncoder", binomial_target=rows.kind == "binary")
    return Prepared(lambda: make().fit(X, y).transform(X).to_numpy(), expected_of(rows, LOOSE_TOLERANCE, effects=True))


# With more rows or categories, it takes minutes.
FEW = {"rows": range(10_001), "categories": range(101), "work": ("glmm",)}
CONTENDERS = (
    Contender("ours", "ours", ours, compiles=True),
    Contender("ours-objects", "ours", partial(ours, objects=True), {"keys": ("text",)}, compiles=True),
    Contender("ce-glmm", "library", category_encoders, FEW, ("category_encoders", "statsmodels")),
)
