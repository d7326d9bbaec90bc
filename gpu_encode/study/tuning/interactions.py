"""choose_interactions: which conjunctions of columns are worth a key of their own."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from cpu_fallback.types import Array
from gpu_encode.encoders.codes import number_folds, read_codes, seen_rows
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.fit import FitContext, plan_rows, prepare, select_columns
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.smoothing import MEstimate
from gpu_encode.schemes import KFold, Scheme
from gpu_encode.schemes import folds as given_schemes
from gpu_encode.schemes.plans import FoldPlan, read_seed
from gpu_encode.seam import devices
from gpu_encode.seam.ops import device_of, host
from gpu_encode.study.tuning.areas import AreaScorer
from gpu_encode.study.tuning.candidates import WITHOUT_FOLDS
from gpu_encode.study.tuning.chosen import ChosenInteractions, Step
from gpu_encode.study.tuning.scorers import EstimatorScorer, Key, Scorer, State, SumsScorer
from gpu_encode.study.tuning.search import Move, Search
from gpu_encode.study.tuning.working_response import HeldOut
from gpu_encode.sums.targets import Target
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Estimator, Seed, Table, Vector
from gpu_encode.words.errors.parameters import (
    bad_parameter,
    check_count,
    check_number,
    check_option,
    no_ages,
    no_cv_by_column,
)

OWNER = "choose_interactions"


def choose_interactions(
    encoder: TargetEncoder,
    X: Table,
    y: Table,
    estimator: Estimator | None = None,
    *,
    order: int = 2,
    forward: Literal["first", "best", "once"] = "first",
    top: int | None = None,
    folds: int | Scheme = 5,
    tol: float = 1e-4,
    one_standard_error: bool = True,
    significance: float = 0.05,
    max_columns: int | None = None,
    backward: bool = True,
    sample: int | None = 100_000,
    scoring: str | Callable[..., float] | None = None,
    random_state: Seed = 0,
    sample_weight: Vector | None = None,
    groups: Vector | None = None,
) -> ChosenInteractions:
    """Choose conjunctions of the encoder's columns, by what they add for rows that are held out.

    Without an `estimator` nothing is fitted.  An additive model has one number f for each row, its log-odds (of each
    class where there are several) or its expected value.  With p = 1 / (1 + exp(-f)), a row of weight w has information
    h = w * p * (1 - p) and response z = (y - p) / (p * (1 - p)); of a continuous target h = w and z = (y - f) / s, with
    s the root of the mean squared error.  Let W and S be the sums of h and of h * z over the rows of category c of a
    conjunction that fold v sees, S less what each of its columns explains by means of its own categories (the first,
    the next, and all but the last once more).  With t = max(0, (sum of S * S / W - degrees of freedom) / sum of W), the
    variance between categories by moments, rows of v and c would be moved by d = S / (W + 1 / t).  The gain is the sum
    over held-out rows of d * S - d * d * W / 2 (S and W of these rows), per unit of weight: the second-order rise of
    their log-likelihood.  A conjunction is taken in where its gain, and the exact rise after it has moved the rows, are
    above `tol` and above their standard error over folds, and sum of S * S / W is too large for chance.  The keys of
    the encoder are in from the start, by the same steps in turn.

    With an `estimator`, scores are of it: fitted to encodings of the rows that a fold sees, each by the other folds
    among these, and scored on encodings of the fold by all that it sees.

    Parameters
    ----------
    encoder : TargetEncoder
        Its columns are the start, and conjunctions are made of them; it is not changed.  Where `smooth` is a number or
        `MEstimate(m)`, d is S / (W + m * mean of h).
    X, y : table and target
        As in `TargetEncoder.fit_transform`.
    estimator : estimator of scikit-learn, optional
    order : int, default=2
        Largest number of columns in a conjunction.
    forward : {"first", "best", "once"}, default="first"
        "first": every conjunction is tried once, fewer columns first, in a seeded order, and kept if it adds enough.
        "best": in every round the one that adds most.
        "once": every conjunction is scored once, by all rows, beside the encoder's keys alone, and those that add most
        are kept, if they add enough to what conjunctions of some of their columns add.  This is the quickest way for
        thousands of conjunctions.
    top : int, optional
        Most conjunctions that are kept.
    folds : int or scheme, default=5
        Folds that are held out: a number, or what `cv` may be, if it has folds.  A number is of random folds, unless
        the encoder's `cv` is itself a scheme of folds other than `KFold`, which then holds out.
    tol : float, default=1e-4
        What a conjunction has to add: log-likelihood per row, or of the estimator's score.
    one_standard_error : bool, default=True
        Whether it has to add a standard error of its gain, too.
    significance : float, default=0.05
        Without an estimator, how likely it may be that any of the conjunctions is taken in by chance alone.  What rows
        show of one, the sum of S * S / W less what its columns explain, has to be so rare among chi-squares of as many
        degrees of freedom, divided by the number of conjunctions: in all rows, before any fold is held out, and on
        average in what a fold sees.  1: any will do.
    max_columns : int, optional
        Most keys of the result, those of the encoder among them.
    backward : bool, default=True
        Whether every conjunction is looked at again in the end, and taken out where the others make up for it; not with
        forward="once".
    sample : int or None, default=100_000
        Without an estimator, conjunctions are looked at first in a sample of about so many rows, where X has twice as
        many at least.  One is ruled out for now if it would not add enough even if t were two standard errors larger
        than it is there.  None: all rows at once, as with forward="once".
    scoring : str or callable, optional
        Of scikit-learn, beside an estimator.  None: the mean log-likelihood of a classifier that gives chances, else
        the estimator's own score.  Without an estimator "roc_auc": f ranks the rows of each fold, and gains are of the
        exact area under the ROC curve, averaged over folds (and over classes, each against the rest); all rows are
        sorted for each conjunction, without a sample.  None: the log-likelihood.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the order, the folds and the sample.
    sample_weight, groups
        As in `TargetEncoder.fit_transform`.

    Returns
    -------
    ChosenInteractions
        `encoder`, not fitted, with the `columns` chosen; `path`, and how many conjunctions were tried and ruled out.

    Raises
    ------
    TypeError
        If the encoder is no TargetEncoder, or X is partitions of Dask.
    ValueError
        For bad input, and schemes that hold out no folds.

    Notes
    -----
    Every f is out of fold as well, so that a held-out row's target reaches its own step through those of other rows
    alone; what it does there lies in the margins of columns, which are taken out of S for those of the conjunction.
    What is left makes gains a little too small.  The score of the result is the best of many, and so a little too good:
    judge it on rows that had no part in the choice.
    Hierarchies, priors and limits of rare categories play no part without an estimator.  The same data and seed give
    the same choice, and the same bits of every gain without an estimator, on every backend and in any pieces.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import TargetEncoder, choose_interactions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 4, (2000, 4))
    >>> y = (X[:, 0] % 2) ^ (X[:, 2] % 2)
    >>> chosen = choose_interactions(TargetEncoder(), X, y)
    >>> chosen.columns
    [0, 1, 2, 3, (0, 2)]
    >>> chosen.tried, chosen.ruled_out_by_chance, chosen.scored
    (6, 5, 1)

    All pairs and triples, scored once; at most 50 of them are kept:

    >>> best = choose_interactions(TargetEncoder(), X, y, order=3, forward="once", top=50)
    >>> best.interactions, best.tried
    ([(0, 2)], 10)
    """
    check_encoder(encoder, X)
    options = Options(order, forward, top, tol, one_standard_error, significance, max_columns, backward, sample)
    options.check()
    check_estimator(estimator, scoring)
    seed = read_seed(random_state) % (1 << 31)
    parameters = encoder._parameters()
    scheme = choose_scheme(encoder, parameters, folds, seed)
    with devices.explain_memory():
        entries, context = read_columns(parameters, scheme, Inputs(X, y, sample_weight, groups))
        names = [context.rows.frame.label(entry.members[0]) for entry in context.selection.entries]
        plan = checked_plan(scheme, context)
        if estimator is None:
            scorer: Scorer = by_sums(encoder, context, plan, None if forward == "once" else sample, seed, scoring)
        else:
            scorer = by_estimator(encoder, context, plan, estimator, scoring)
        keys = candidates(len(names), order, entries, seed)
        search = options.search(scorer, len(entries), len(keys))
        state = run(search, entries, keys, forward, backward)
    return result(encoder, parameters, names, entries, search, state)


class Options(NamedTuple):
    """Parameters of the search, as `choose_interactions` has them."""

    order: int
    forward: str
    top: int | None
    tol: float
    one_standard_error: bool
    significance: float
    max_columns: int | None
    backward: bool
    sample: int | None

    def check(self) -> None:
        """Raise ValueError or TypeError for values that no search can take."""
        check_count(OWNER, "order", self.order, low=2)
        check_option(OWNER, "forward", self.forward, ("first", "best", "once"))
        check_number(OWNER, "tol", self.tol, low=0.0)
        check_option(OWNER, "one_standard_error", self.one_standard_error, (True, False))
        check_option(OWNER, "backward", self.backward, (True, False))
        check_number(OWNER, "significance", self.significance, low=0.0, high=1.0, open_low=True)
        for name in ("top", "max_columns", "sample"):
            if getattr(self, name) is not None:
                check_count(OWNER, name, getattr(self, name), low=1)

    def search(self, scorer: Scorer, n_own: int, n_candidates: int) -> Search:
        """Give the search for conjunctions beside the encoder's own keys."""
        level = float(self.significance) / max(n_candidates * scorer.n_outcomes, 1)
        least = -math.inf if self.significance >= 1 else NormalDist().inv_cdf(1.0 - level)
        limits = [self.max_columns, None if self.top is None else n_own + self.top]
        most_keys = min((limit for limit in limits if limit is not None), default=None)
        return Search(scorer, float(self.tol), self.one_standard_error, most_keys, least)


def check_encoder(encoder: Any, X: Any) -> None:
    """Raise TypeError for what is no TargetEncoder, and for rows that are not in memory."""
    if not isinstance(encoder, TargetEncoder):
        raise TypeError(
            f"{OWNER} chooses the parameter `columns` of a TargetEncoder, not fitted or fitted. Got "
            f"{type(encoder).__name__} instead. Choose with a TargetEncoder, and give its columns to other encoders."
        )
    if frames.is_partitioned(X):
        raise TypeError(
            f"{OWNER} reads rows in memory, not partitions of Dask. Pass a list of the partitions computed, "
            "[part.compute() for part in X.partitions], or a sample."
        )


def check_estimator(estimator: Any, scoring: Any) -> None:
    """Raise TypeError or ValueError for an estimator that cannot be fitted, or a score of none."""
    if estimator is not None and not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"{OWNER} fits an estimator of scikit-learn, or none. Got estimator={estimator!r} instead.")
    if estimator is None and scoring not in (None, "roc_auc"):
        raise ValueError(
            f"scoring={scoring!r} of {OWNER} is the score of an estimator. Give one, or scoring='roc_auc' or None."
        )


def choose_scheme(encoder: TargetEncoder, parameters: Parameters, folds: Any, seed: int) -> Scheme:
    """Give the scheme that holds out folds."""
    if isinstance(encoder.cv, dict):
        raise no_cv_by_column(OWNER)
    if isinstance(folds, Iterator) or isinstance(encoder.cv, Iterator):
        raise TypeError("Splits that can be read only once are gone when the encoder needs them. Pass list(cv).")
    if not isinstance(folds, (int, np.integer)) or isinstance(folds, bool):
        scheme = given_schemes.resolve(folds, encoder.shuffle, seed, OWNER)
    elif isinstance(parameters.scheme, (KFold, *WITHOUT_FOLDS)):
        check_count(OWNER, "folds", folds, low=2)
        scheme = KFold(int(folds), random_state=seed)
    else:
        scheme = parameters.scheme
    return scheme


def read_columns(parameters: Parameters, scheme: Scheme, inputs: Inputs) -> tuple[list[Key], FitContext]:
    """Read every column of the encoder's keys alone; give the keys as numbers of these columns, too."""
    asked = replace(parameters, scheme=scheme)
    selection: Selection = select_columns(asked, inputs.frame)
    positions = sorted({position for entry in selection.entries for position in entry.members})
    number_of = {position: number for number, position in enumerate(positions)}
    plain = replace(
        asked,
        columns=positions,
        categories="auto",
        hierarchy=None,
        prior="mean",
        drop=None,
        scale="identity",
        missing_target="error",
        min_frequency=None,
        max_categories=None,
        handle_infrequent=None,
    )
    return [tuple(number_of[position] for position in entry.members) for entry in selection.entries], prepare(
        plain, inputs
    )


def checked_plan(scheme: Scheme, context: FitContext) -> FoldPlan:
    """Let the scheme deal out the folds; ValueError where these are not held out whole."""
    if scheme.by_age:
        raise no_ages(OWNER, scheme)
    plan = plan_rows(scheme, context.rows, context.targets)
    if not isinstance(plan, FoldPlan) or plan.blow_up or plan.visibility.diagonal().any():
        raise bad_parameter(OWNER, "folds", scheme, "must be a scheme whose folds see other folds whole, as KFold()")
    return plan


def by_sums(
    encoder: TargetEncoder,
    context: FitContext,
    plan: FoldPlan,
    sample: int | None,
    seed: int,
    scoring: str | Callable[..., float] | None = None,
) -> SumsScorer:
    """Make the scorer that fits nothing."""
    rows = read_codes(context)
    folds = number_folds(plan, rows)
    if device_of(rows.ops) == "cpu":
        # Fold after fold, so that sums of one, which a pass goes back to again and again, stay in the caches.
        order = np.argsort(folds, kind="stable")
        rows, folds = rows.take(order), folds[order]
    held_out = HeldOut.of(rows.ops, folds, plan.visibility, rows.weight)
    m = encoder.smooth.m if isinstance(encoder.smooth, MEstimate) else encoder.smooth
    m = 0.0 if m is None else m
    fixed = float(m) if isinstance(m, (int, float)) and not isinstance(m, bool) else None
    outcomes = outcomes_of(rows.targets)
    if scoring is None:
        return SumsScorer(rows, held_out, outcomes, fixed, sample, seed)
    if not all(binary for _, binary in outcomes):
        raise ValueError(f"scoring='roc_auc' of {OWNER} ranks rows of classes. Leave it out for a continuous target.")
    return AreaScorer(rows, held_out, outcomes, fixed)


def outcomes_of(targets: Sequence[Target]) -> list[tuple[Array, bool]]:
    """Give the numbers to be explained: a continuous target's own; of classes, whether a row is of each."""
    outcomes = []
    for target in targets:
        if not target.is_classification:
            outcomes.append((target.values, False))
            continue
        labels = [1] if target.kind == "binary" else range(target.n_classes)
        outcomes += [((target.values == label).astype(np.float64), True) for label in labels]
    return outcomes


def by_estimator(
    encoder: TargetEncoder, context: FitContext, plan: FoldPlan, estimator: Any, scoring: Any
) -> EstimatorScorer:
    """Make the scorer that fits an estimator in every fold."""
    if len(context.targets) > 1:
        raise ValueError(f"{OWNER} fits an estimator to one target. Got {len(context.targets)}: choose for each alone.")
    if int(plan.visibility.sum(axis=1).min()) < 2:
        raise bad_parameter(
            OWNER, "folds", plan.n_folds, "must leave two other folds to every fold, where an estimator is fitted"
        )
    ops, rows = context.rows.ops, read_codes(context)
    to_host = ops.to_host
    pairs = [(to_host(own), to_host(seen)) for own, seen in seen_rows(plan, rows)]
    # Codes are on the host, and stand for the values.
    on_host = replace(
        rows,
        ops=ops if device_of(ops) == "cpu" else host(rows.n_rows),
        codes=[to_host(codes) for codes in rows.codes],
        weight=None if rows.weight is None else to_host(rows.weight),
        targets=[replace(target, values=to_host(target.values)) for target in rows.targets],
    )
    plain = clone(encoder).set_params(categories="auto", hierarchy=None, device="cpu")
    if isinstance(encoder.prior, dict):
        plain.set_params(prior="mean")
    return EstimatorScorer(on_host, pairs, to_host(number_folds(plan, rows)), plain, estimator, scoring)


def candidates(n_columns: int, order: int, entries: Sequence[Key], seed: int) -> list[Key]:
    """List all conjunctions that are not in, fewer columns first, those of as many in a seeded order."""
    known = {frozenset(entry) for entry in entries}
    listed: list[Key] = []
    for size in range(2, min(order, n_columns) + 1):
        keys = [key for key in combinations(range(n_columns), size) if frozenset(key) not in known]
        listed += [keys[number] for number in np.random.RandomState(seed + size).permutation(len(keys))]
    return listed


def run(search: Search, entries: Sequence[Key], keys: Sequence[Key], forward: str, backward: bool) -> State:
    """Start with the encoder's keys, go forward, and once backward."""
    start = search.scorer.start(entries)
    search.path.append(Move("start", None, start.score.mean, None))
    if forward == "once":
        return search.once(start, keys)
    state = search.first(start, keys) if forward == "first" else search.best(start, keys)
    return search.backward(state, entries) if backward else state


def result(
    encoder: TargetEncoder,
    parameters: Parameters,
    names: Sequence[Any],
    entries: Sequence[Key],
    search: Search,
    state: State,
) -> ChosenInteractions:
    """Give names to what was found."""

    def name(key: Key) -> tuple[Any, ...]:
        return tuple(names[column] for column in key)

    own = [name(key)[0] if len(key) == 1 else name(key) for key in entries]
    columns = [*own, *(name(key) for key in state.keys[len(entries) :])]
    chosen = clone(encoder).set_params(columns=columns)
    if isinstance(parameters.categories, list):
        chosen.set_params(categories=[*parameters.categories, *["auto"] * (len(columns) - len(own))])
    path = tuple(
        Step(move.action, None, move.score)
        if move.key is None or move.gain is None
        else Step(move.action, name(move.key), move.score, move.gain.mean, move.gain.standard_error)
        for move in search.path
    )
    scored, counted = search.scored, search.counted_out - search.scored
    by_chance = search.by_chance - scored
    by_sample = search.sampled - scored - counted - by_chance
    apart = [len(keys) for keys in (counted, by_sample, by_chance, scored)]
    sizes = (sum(apart), *apart, len(search.sampled), search.scorer.sampled_rows)
    return ChosenInteractions(chosen, columns, path, state.score.mean, *sizes)
