"""tune: every smoothing's held-out likelihood, from one reading of the rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from gpu_encode import devices, frames
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.errors.parameters import check_option
from gpu_encode.fitting.fit import FitContext, plan_rows, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Needs
from gpu_encode.schemes import Scheme
from gpu_encode.schemes.plans import Plan
from gpu_encode.training.tasks import EncodingTask
from gpu_encode.tuning.candidates import check_encoder, checked_schemes, checked_smoothings
from gpu_encode.tuning.likelihood import Likelihood, OfClasses, OfNumbers
from gpu_encode.tuning.results import Score, Tuned, best_of
from gpu_encode.tuning.views import Views

Candidates = Sequence[tuple[Any, Smoothing]]
Schemes = Sequence[tuple[Any, Scheme]]


class EverySum(Smoothing):
    """Asks for all that any of some smoothings needs, so that sums are rounded once for all of them."""

    def __init__(self, digits: bool = True) -> None:
        self.digits = digits

    @property
    def needs(self) -> Needs:
        """Squares, from which errors are read off, and the digits for m-estimates."""
        return Needs(squares=True, digits=self.digits)


def tune(
    encoder: TargetEncoder,
    X: Any,
    y: Any,
    *,
    smoothings: Any = None,
    schemes: Any = None,
    folds: int = 5,
    per_column: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
) -> Tuned:
    """Choose `smooth`, and the number of folds, by the likelihood of rows that are held out.

    Rows are summed once per column, target and scheme; every smoothing is then scored from these sums, and never sees
    the rows.  For rows of a fold held out, whose encodings by the other folds are p:

    - binary: sum of w * (y * log(p) + (1 - y) * log(1 - p)), p clipped to [1e-15, 1 - 1e-15];
    - multiclass: sum of w * log(p of the row's class), the p of all classes clipped and divided by their sum;
    - continuous: a normal law around p; its variance is the mean squared error of all rows held out.

    Parameters
    ----------
    encoder : TargetEncoder
        Its columns, prior, policies and levels are used as they are; it is not changed.
    X, y, sample_weight, groups
        As in `TargetEncoder.fit_transform`.
    smoothings : list, optional
        What `smooth` may be.  None: the plain mean, 51 m-estimates from 0.1 to 10,000, six sigmoids, "auto" and
        partial pooling.
    schemes : list, optional
        Values of `cv` to choose among, such as [KFold(5), KFold(20)].  None: `cv` stays as it is.
    folds : int, default=5
        Folds held out where schemes are not given and `cv` has none (leave-one-out, ordered, greedy).
    per_column : bool, default=False
        Score each column alone, too.

    Returns
    -------
    Tuned
        `encoder`, not fitted, with the likeliest smoothing; `scores`, of which the first of equal ones is chosen.

    Raises
    ------
    TypeError
        If the encoder has no smoothing, or X is partitions of Dask.
    ValueError
        For bad input, smoothings that do not go with the encoder, and schemes that hold out no folds.

    Notes
    -----
    The same data give the same bits of every score on every backend and in any pieces.  A column is scored as if it
    were alone, which a model of several columns is not.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import TargetEncoder, tune
    >>> rng = np.random.default_rng(0)
    >>> shops, rates = rng.integers(0, 20, 200), 0.3 + 0.4 * rng.random(20)
    >>> X, y = shops[:, None], (rng.random(200) < rates[shops]).astype(int)
    >>> tuned = tune(TargetEncoder(), X, y, smoothings=[None, 1.0, 10.0, 100.0])
    >>> tuned.encoder
    TargetEncoder(smooth=10.0)
    >>> [round(score.log_likelihood, 3) for score in tuned.scores]
    [-1.388, -0.729, -0.676, -0.687]
    """
    check_encoder(encoder)
    check_option("tune", "per_column", per_column, (True, False))
    if frames.is_partitioned(X):
        raise TypeError(
            "tune reads rows in memory, not partitions of Dask. Pass a list of the partitions computed, "
            "[part.compute() for part in X.partitions], or a sample."
        )
    parameters = encoder._parameters()
    candidates = checked_smoothings(smoothings, parameters)
    planned = checked_schemes(schemes, encoder, parameters, folds)
    with devices.explain_memory():
        # Sums of squares are kept whatever the smoothings ask for: errors of continuous targets are read off them.
        # Chances are on no other scale, and of all classes.
        every_sum = EverySum(any(smoothing.needs.digits for _, smoothing in candidates))
        wide = replace(parameters, statistic=every_sum, drop=None, scheme=planned[0][1], scale="identity")
        context = prepare(wide, Inputs(X, y, sample_weight, groups))
        by_column = score_columns(context, candidates, planned)
    names = [str(key.entry.name) for key in context.keys]
    scores = score_candidates([grid for grids in by_column for grid in grids], candidates, planned)
    best = best_of(scores)
    chosen = clone(encoder).set_params(smooth=best.smoothing, **({} if schemes is None else {"cv": best.scheme}))
    alone = {name: score_candidates(grids, candidates, planned) for name, grids in zip(names, by_column, strict=True)}
    return Tuned(chosen, scores, alone if per_column else {})


# Of one column and target: a likelihood of each scheme and smoothing.
Grid = list[list[Likelihood]]


def score_columns(context: FitContext, candidates: Candidates, schemes: Schemes) -> list[list[Grid]]:
    """Score every smoothing under every scheme, for each column and target."""
    plans = [(scheme, plan_rows(scheme, context.rows, context.targets)) for _, scheme in schemes]
    rules = [
        replace(context.parameters, statistic=smoothing).rules(context.selection, context.rows.frame)
        for _, smoothing in candidates
    ]
    return [
        [[likelihoods(task, rules_of_key, plan, scheme) for scheme, plan in plans] for task in tasks]
        for tasks, *rules_of_key in zip(context.tasks, *rules, strict=True)
    ]


def likelihoods(task: EncodingTask, rules: Sequence[EncodingRule], plan: Plan, scheme: Scheme) -> list[Likelihood]:
    """Give the likelihood under each rule, from one pass over the rows."""
    views = Views.of(task, plan, scheme)
    # Which rows have an encoding follows from what is seen and from policies, whatever the smoothing.
    kind = OfClasses if task.spec.classification else OfNumbers
    rows = kind.of(views, rules[0])
    if not any(rows.weights):
        raise ValueError(
            "No row that is held out has a weight and an encoding from other folds, so there is nothing to compare. "
            "Use fewer folds, or handle_unknown='prior' and handle_missing='prior'."
        )
    return [rows.likelihood(rule) for rule in rules]


def score_candidates(grids: Sequence[Grid], candidates: Candidates, schemes: Schemes) -> tuple[Score, ...]:
    """Average over columns and targets, scheme by scheme."""
    return tuple(
        Score.of(smoothing, scheme, [grid[position][number] for grid in grids])
        for position, (scheme, _) in enumerate(schemes)
        for number, (smoothing, _) in enumerate(candidates)
    )
