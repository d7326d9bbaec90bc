"""tune: the held-out likelihood of every value of a parameter; the rows are read once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sklearn.base import clone

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.fit import FitContext, plan_rows, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.smoothing import Smooth
from gpu_encode.schemes import Scheme
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.seam import devices
from gpu_encode.seam.ops import tiles
from gpu_encode.study.tuning.candidates import Candidate, EverySum, checked_candidates, checked_schemes, chosen_of
from gpu_encode.study.tuning.likelihood import Likelihood, OfClasses, OfNumbers
from gpu_encode.study.tuning.results import Score, Tuned, best_of, rank
from gpu_encode.study.tuning.sums import mean
from gpu_encode.study.tuning.views import Views
from gpu_encode.sums.targets import Target
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Prior, Table, Vector
from gpu_encode.words.errors.parameters import check_option, no_ages
from gpu_encode.words.progress import Progress, Teller

Schemes = Sequence[tuple[Any, Scheme]]

KEYS_AT_A_TIME = 64


def tune(
    encoder: SchemeEncoder,
    X: Table,
    y: Table,
    *,
    smoothings: Sequence[Smooth] | None = None,
    priors: Sequence[Prior] | None = None,
    schemes: Sequence[CrossFitting] | None = None,
    folds: int = 5,
    per_column: bool = False,
    scoring: Literal["roc_auc"] | None = None,
    sample_weight: Vector | None = None,
    groups: Vector | None = None,
    progress: bool | Teller | None = None,
) -> Tuned:
    """Choose `smooth`, priors and the number of folds by the likelihood of held-out rows.

    Rows are summed once for each column, target and scheme; every smoothing is then scored from these sums, without the
    rows.  Let p be the encodings of the rows of a held-out fold from the other folds.  Their log-likelihood is:

    - binary: sum of w * (y * log(p) + (1 - y) * log(1 - p)), p clipped to [1e-15, 1 - 1e-15];
    - multiclass: sum of w * log(p of the row's class); the p of all classes are clipped and divided by their sum;
    - continuous: that of a normal distribution around p; its variance is the mean squared error of all held-out rows.

    For `ImpactEncoder`, p is the mean from which the impact is computed.  For `WeightOfEvidenceEncoder`, p has the odds
    S / (N - S) * exp(evidence), with N and S over all rows that the fold sees.  For `CatBoostEncoder`, each prior has
    its own p, and their likelihoods are averaged; differences of shares above borders give the probabilities of labels.

    Parameters
    ----------
    encoder : TargetEncoder, ImpactEncoder, WeightOfEvidenceEncoder or CatBoostEncoder
        Its columns, policies and levels are used as they are; it is not changed.
    X, y, sample_weight, groups
        As in `TargetEncoder.fit_transform`.
    smoothings : list, optional
        Values for `smooth`; for `WeightOfEvidenceEncoder` for `regularization`, for `CatBoostEncoder` for `weight`.
        None: the plain mean, 51 m-estimates from 0.1 to 10,000, six sigmoids, "auto" and partial pooling; for the
        latter two encoders the 51 numbers.
    priors : list, optional
        Values for `prior` of `TargetEncoder`, or for `priors` of `CatBoostEncoder`.  None: the encoder's own.
    schemes : list, optional
        Values of `cv` to choose from, such as [KFold(5), KFold(20)].  None: the encoder's own.
    folds : int, default=5
        Number of held-out folds, if schemes are not given and `cv` has no folds (leave-one-out, ordered, greedy).
    per_column : bool, default=False
        Choose for each column separately: the parameters become dicts.  All columns share one scheme, the one for which
        the average of each column's best likelihood is highest.
    scoring : "roc_auc" or None, default=None
        None: choose by the likelihood.  "roc_auc": choose by the area under the ROC curve of each held-out fold,
        averaged over folds (and over classes, each against the rest), which the scores then have as `roc_auc`.  It is
        counted from the same sums, exactly if there are no weights or whole ones; a weight is rounded once for each
        category, fold and class otherwise.
    progress : True or callable, optional
        As in `encode_dataset`: the rows are read, then scored once for each column, output of the target and scheme.

    Returns
    -------
    Tuned
        `encoder`, not fitted, with the best values; `scores`, of which the first is chosen if several are equal.

    Raises
    ------
    TypeError
        If the encoder has no parameter to choose, or X is data of Dask.
    ValueError
        For bad input, values that do not fit the encoder, and schemes that hold out no folds.

    Notes
    -----
    The same data give the same bits of every score on every backend and in any pieces.  Each column is scored as if it
    were the only one; a model would use several columns together.

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
    >>> tune(TargetEncoder(), np.c_[shops, shops % 2], y, smoothings=[10.0, 100.0], per_column=True).encoder
    TargetEncoder(smooth={0: 10.0, 1: 100.0})
    """
    check_option("tune", "per_column", per_column, (True, False))
    check_option("tune", "scoring", scoring, (None, "roc_auc"))
    if schemes is None and isinstance(encoder, SchemeEncoder) and getattr(encoder.cv, "by_age", False):
        raise no_ages("tune", encoder.cv)
    candidates = checked_candidates(encoder, smoothings, priors)
    if frames.is_partitioned(X):
        raise TypeError(
            "tune reads rows in memory, not partitions of Dask. Pass a list of the partitions computed, "
            "[part.compute() for part in X.partitions], or a sample."
        )
    planned = checked_schemes(schemes, encoder, candidates[0].parameters, folds)
    with devices.explain_memory(), Progress(progress) as shown:
        shown.stage("reading")
        context = read_sums(candidates, planned[0][1], Inputs(X, y, sample_weight, groups))
        shown.advance(context.rows.n_rows)
        if scoring is not None:
            check_classes(context.targets)
        by_column = score_columns(context, candidates, planned, scoring is not None, shown)
    names = [str(key.entry.name) for key in context.keys]
    alone = {name: score_candidates(grids, candidates, planned) for name, grids in zip(names, by_column, strict=True)}
    scores = score_candidates([grid for grids in by_column for grid in grids], candidates, planned)
    chosen = dict(zip(keys_of(context), alone.values(), strict=True)) if per_column else {}
    tuned = choose(encoder, scores, chosen, len(candidates), priors is not None, schemes is not None)
    return Tuned(tuned, scores, alone if per_column else {})


def read_sums(candidates: Sequence[Candidate], scheme: Scheme, inputs: Inputs) -> FitContext:
    """Read the rows, and prepare them to be summed once for all candidates."""
    # Sums of squares are always kept, since the errors of continuous targets are computed from them.
    every_sum = EverySum([one for candidate in candidates for one in candidate.parameters.every_statistic])
    context = prepare(replace(candidates[0].parameters, statistic=every_sum, by_key={}, scheme=scheme), inputs)
    for candidate in candidates:
        candidate.parameters.check_targets(context.targets)
    return context


def check_classes(targets: Sequence[Target]) -> None:
    """Raise ValueError if areas are asked for and a target has no classes."""
    for target in targets:
        if not target.is_classification:
            raise ValueError(
                f"scoring='roc_auc' of tune needs classes, and the target {target.name!r} is continuous. Leave out "
                "`scoring`, or give the encoder target_type='binary' if the target has two values."
            )


def choose(
    encoder: SchemeEncoder,
    scores: Sequence[Score],
    by_key: Mapping[Any, Sequence[Score]],
    n_candidates: int,
    of_priors: bool,
    of_schemes: bool,
) -> SchemeEncoder:
    """Give a clone with the best values: for all columns together, or for each in `by_key`."""
    name, of_prior = chosen_of(encoder)
    best = best_of(scores)
    given: dict[str, Any] = {name: best.smoothing}
    if of_priors and of_prior is not None:
        given[of_prior] = best.prior
    if by_key:
        # The scores of a scheme are neighbours.
        starts = range(0, len(scores), n_candidates)
        per_scheme = [
            {key: best_of(own[start : start + n_candidates]) for key, own in by_key.items()} for start in starts
        ]
        likeliest = max(per_scheme, key=lambda bests: mean([rank(score) for score in bests.values()]))
        best = next(iter(likeliest.values()))
        given = {name: {key: score.smoothing for key, score in likeliest.items()}}
        if of_priors and of_prior is not None:
            given[of_prior] = {key: score.prior for key, score in likeliest.items()}
    if of_schemes:
        given["cv"] = best.scheme
    tuned: SchemeEncoder = clone(encoder).set_params(**given)
    return tuned


def keys_of(context: FitContext) -> list[Any]:
    """Name the keys as a user would: columns by name, or by position if they have none; joint keys as tuples."""
    names = context.rows.frame.names or range(context.rows.frame.n_columns)
    members = [tuple(names[position] for position in entry.members) for entry in context.selection.entries]
    return [key if len(key) > 1 else key[0] for key in members]


# For one column and target: the likelihoods of each scheme and candidate, one for each prediction of the candidate.
Grid = list[list[list[Likelihood]]]


def score_columns(
    context: FitContext, candidates: Sequence[Candidate], schemes: Schemes, with_areas: bool, progress: Progress
) -> list[list[Grid]]:
    """Score every candidate under every scheme, for each column and target."""
    plans = [(scheme, plan_rows(scheme, context.rows, context.targets)) for _, scheme in schemes]
    rules = [candidate.parameters.rules(context.selection, context.rows.frame) for candidate in candidates]
    rules_of_keys = [*zip(*rules, strict=True)]
    grids: list[list[Grid]] = [[[] for _ in context.summed] for _ in context.categories]
    progress.stage("scoring", context.rows.n_rows * len(grids) * len(context.summed) * len(plans))
    # Sums of so many keys stand in memory at a time.
    for keys in tiles(len(grids), KEYS_AT_A_TIME):
        some = replace(context, categories=context.categories[slice(*keys)], rules=context.rules[slice(*keys)])
        for scheme, plan in plans:
            for views, rules_of_key, of_key in zip(
                Views.of_keys(some, plan, scheme), rules_of_keys[slice(*keys)], grids[slice(*keys)], strict=True
            ):
                for of_target, grid in zip(views, of_key, strict=True):
                    grid.append(likelihoods(of_target, rules_of_key, with_areas))
                    progress.advance(context.rows.n_rows)
    return grids


def likelihoods(views: Views, rules: Sequence[EncodingRule], with_areas: bool) -> list[list[Likelihood]]:
    """Give the likelihoods under each rule, from the sums of one column and target."""
    # Which rows have an encoding depends on what is seen and on policies, but not on the smoothing.  A prior that is a
    # mean needs rows; a prior that is a number does not.
    base = next((rule for rule in rules if rule.needs_rows), rules[0])
    kind = OfClasses if views.task.spec.classification else OfNumbers
    rows = kind.of(views, base, with_areas)
    if not any(rows.weights):
        raise ValueError(
            "No row that is held out has a weight and an encoding from other folds, so there is nothing to compare. "
            "Use fewer folds, or handle_unknown='prior' and handle_missing='prior'."
        )
    return [rows.likelihoods(rule) for rule in rules]


def score_candidates(grids: Sequence[Grid], candidates: Sequence[Candidate], schemes: Schemes) -> tuple[Score, ...]:
    """Average over columns, targets and predictions, scheme by scheme."""
    return tuple(
        Score.of(candidate, scheme, [one for grid in grids for one in grid[position][number]])
        for position, (scheme, _) in enumerate(schemes)
        for number, candidate in enumerate(candidates)
    )
