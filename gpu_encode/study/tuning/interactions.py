"""choose_interactions: which conjunctions of columns are worth a key of their own."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cpu_fallback.types import Array
from gpu_encode.encoders.codes import number_folds, read_codes, seen_rows
from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
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
    MOST_FOLDS,
    bad_parameter,
    check_count,
    check_number,
    check_option,
    no_ages,
    no_cv_by_column,
)
from gpu_encode.words.notices import warn

OWNER = "choose_interactions"
# Conjunctions of a size are drawn one by one if there are more than this multiple of those that may be drawn and of
# those that the encoder has, so that few draws are in vain.
LISTED_WHOLE = 8


def choose_interactions(
    encoder: TargetEncoder | OneHotEncoder,
    X: Table,
    y: Table,
    estimator: Estimator | None = None,
    *,
    order: int = 2,
    forward: Literal["first", "best", "once"] = "first",
    top: int | None = None,
    max_tries: int = 100_000,
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
    """Choose conjunctions of the encoder's columns by what they add to the prediction of held-out rows.

    Without an `estimator` nothing is fitted.  An additive model has a number f for each row: its log-odds (with several
    classes, one for each class), or its expected value.  With p = 1 / (1 + exp(-f)), a row of weight w has the
    information h = w * p * (1 - p) and the response z = (y - p) / (p * (1 - p)).  For a continuous target h = w and z =
    (y - f) / s, where s is the root of the mean squared error.  Let W and S be the sums of h and of h * z over the rows
    of category c of a conjunction that fold v sees.  From S is subtracted what each column of the conjunction explains
    by means of its own categories (the first column, then the next, and all except the last once more).  Let t = max(0,
    (sum of S * S / W - degrees of freedom) / sum of W), the variance between categories by moments.  Then rows of c in
    fold v would be moved by d = S / (W + 1 / t).  The gain is the sum over held-out rows of d * S - d * d * W / 2 (with
    S and W of these rows), per unit of weight: the second-order rise of their log-likelihood.  A conjunction is added
    if its gain, and the exact rise after it has moved the rows, are above `tol` and above their standard error over
    folds, and if sum of S * S / W is too large for chance.  The keys of the encoder are in the model from the start, by
    the same steps in turn.

    With an `estimator`, scores are those of the estimator.  It is fitted to encodings of the rows that a fold sees,
    each encoded from the other folds among them, and scored on the fold, encoded from all rows that the fold sees.

    Parameters
    ----------
    encoder : TargetEncoder or OneHotEncoder
        The search starts with its columns and makes conjunctions of them; it is not changed.  If `smooth` is a number
        or `MEstimate(m)`, d is S / (W + m * mean of h).  A OneHotEncoder needs an `estimator`, such as a linear model:
        a conjunction is added with a column for each of its categories, and unknown ones are rows of zeros.
    X, y : table and target
        As in `TargetEncoder.fit_transform`.
    estimator : estimator of scikit-learn, optional
    order : int, default=2
        Largest number of columns in a conjunction.
    forward : {"first", "best", "once"}, default="first"
        "first": every conjunction is tried once, those of fewer columns first, in a seeded order, and kept if it adds
        enough.  "best": in every round the conjunction that adds most is added.  "once": every conjunction is scored
        once, by all rows, beside the encoder's keys alone.  Those that add most are kept, if each adds enough more than
        every conjunction of some of its columns.  This is the quickest way for thousands of conjunctions.
    top : int, optional
        Largest number of conjunctions that are kept.
    max_tries : int, default=100_000
        Largest number of conjunctions that are listed, those of fewer columns first, and of a size that is not listed
        whole, random ones; with forward="best" no round begins that would look at more in all rounds together.  If
        this leaves out any, a warning says so, and `left_out` of the result says how many.
    folds : int or scheme, default=5
        Folds that are held out: a number, or a value of `cv` that has folds.  A number means random folds, unless the
        encoder's `cv` is itself a scheme of folds other than `KFold`; then this scheme is used.
    tol : float, default=1e-4
        The least that a conjunction must add, in log-likelihood per row, or in the estimator's score.
    one_standard_error : bool, default=True
        Whether it must also add a standard error of its gain.
    significance : float, default=0.05
        Without an estimator: the largest chance that any conjunction is added by accident.  For a conjunction, the sum
        of S * S / W, less what its columns explain, must be so rare among chi-squares with the same degrees of freedom
        that its probability is at most `significance` divided by the number of conjunctions.  This is tested in all
        rows before any fold is held out, and on average over what the folds see.  1 turns the test off.
    max_columns : int, optional
        Largest number of keys in the result, those of the encoder included.
    backward : bool, default=True
        Whether every added conjunction is tested again at the end, and removed if the other keys make up for it.  It
        has no effect with forward="once".
    sample : int or None, default=100_000
        Without an estimator: if X has at least twice as many rows, conjunctions are first tested in a sample of about
        this number of rows.  A conjunction is ruled out for the moment if it would not add enough even if t were two
        standard errors above its estimate in the sample.  None: all rows at once, as with forward="once".
    scoring : str or callable, optional
        With an estimator: a scoring of scikit-learn; None means the mean log-likelihood of a classifier with
        probabilities, otherwise the estimator's own score.  Without an estimator: None means the log-likelihood;
        "roc_auc" means the exact area under the ROC curve of f in each fold, averaged over folds (and over classes,
        each against the rest), for which all rows are sorted for each conjunction, without a sample.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the order, the folds and the sample.
    sample_weight, groups
        As in `TargetEncoder.fit_transform`.

    Returns
    -------
    ChosenInteractions
        `encoder`, not fitted, with the chosen `columns`; `path`, and how many conjunctions were tried and ruled out.

    Raises
    ------
    TypeError
        If the encoder is neither a TargetEncoder nor a OneHotEncoder, or X is data of Dask.
    ValueError
        For bad input, and schemes that hold out no folds.

    Notes
    -----
    Every f is out of fold, too: a held-out row's target influences the row's own step only through the offsets of other
    rows. This influence is in the margins of columns, which are subtracted from S for the columns of the conjunction.
    What remains makes gains a little too small.  The score of the result is the best of many, so it is a little too
    good: measure it on rows that were not used for the choice.
    Without an estimator, hierarchies, priors and limits for rare categories have no effect.  The same data and seed
    give the same choice and, without an estimator, the same bits of every gain, on every backend and in any pieces.

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
    reader = checked_reader(encoder, X, estimator, scoring)
    options = Options(
        order, forward, top, max_tries, tol, one_standard_error, significance, max_columns, backward, sample
    ).checked()
    seed = read_seed(random_state) % (1 << 31)
    parameters = reader._parameters()
    scheme = choose_scheme(reader, parameters, folds, seed)
    with devices.explain_memory():
        entries, context = read_columns(parameters, scheme, Inputs(X, y, sample_weight, groups))
        plan = checked_plan(scheme, context)
        if estimator is None:
            scorer: Scorer = by_sums(reader, context, plan, None if forward == "once" else sample, seed, scoring)
        else:
            scorer = by_estimator(encoder, context, plan, estimator, scoring)
        keys, left_out = candidates(len(context.selection.entries), order, entries, seed, max_tries)
        search = options.search(scorer, len(entries), len(keys), left_out)
        state = run(search, entries, keys, forward, backward)
    return result(encoder, parameters, context, entries, search, state)


class Options(NamedTuple):
    """Parameters of the search, as in `choose_interactions`."""

    order: int
    forward: str
    top: int | None
    max_tries: int
    tol: float
    one_standard_error: bool
    significance: float
    max_columns: int | None
    backward: bool
    sample: int | None

    def checked(self) -> Self:
        """Raise ValueError or TypeError for values that no search can take; give the parameters."""
        check_count(OWNER, "order", self.order, low=2)
        check_option(OWNER, "forward", self.forward, ("first", "best", "once"))
        check_number(OWNER, "tol", self.tol, low=0.0)
        check_option(OWNER, "one_standard_error", self.one_standard_error, (True, False))
        check_option(OWNER, "backward", self.backward, (True, False))
        check_number(OWNER, "significance", self.significance, low=0.0, high=1.0, open_low=True)
        check_count(OWNER, "max_tries", self.max_tries, low=1)
        for name in ("top", "max_columns", "sample"):
            if getattr(self, name) is not None:
                check_count(OWNER, name, getattr(self, name), low=1)
        return self

    def search(self, scorer: Scorer, n_own: int, n_candidates: int, left_out: int) -> Search:
        """Give the search for conjunctions beside the encoder's own keys."""
        level = float(self.significance) / max(n_candidates * scorer.n_outcomes, 1)
        least = -math.inf if self.significance >= 1 else NormalDist().inv_cdf(1.0 - level)
        limits = [self.max_columns, None if self.top is None else n_own + self.top]
        most_keys = min((limit for limit in limits if limit is not None), default=None)
        limits_of_work = (self.max_tries, left_out)
        return Search(scorer, float(self.tol), self.one_standard_error, most_keys, least, *limits_of_work)


def checked_reader(encoder: Any, X: Any, estimator: Any, scoring: Any) -> TargetEncoder:
    """Check the arguments; give a TargetEncoder of the same columns, which says how rows are read."""
    if not isinstance(encoder, (TargetEncoder, OneHotEncoder)):
        raise TypeError(
            f"{OWNER} chooses the parameter `columns` of a TargetEncoder or OneHotEncoder, not fitted or fitted. Got "
            f"{type(encoder).__name__} instead. Choose with a TargetEncoder, and give its columns to other encoders."
        )
    if isinstance(encoder, OneHotEncoder) and estimator is None:
        raise TypeError(f"{OWNER} needs an estimator for the columns of a OneHotEncoder, such as LogisticRegression().")
    if frames.is_partitioned(X):
        raise TypeError(
            f"{OWNER} reads rows in memory, not partitions of Dask. Pass a list of the partitions computed, "
            "[part.compute() for part in X.partitions], or a sample."
        )

    if estimator is not None and not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"{OWNER} fits an estimator of scikit-learn, or none. Got estimator={estimator!r} instead.")
    if estimator is None and scoring not in (None, "roc_auc"):
        raise ValueError(
            f"scoring={scoring!r} of {OWNER} is the score of an estimator. Give one, or scoring='roc_auc' or None."
        )
    if isinstance(encoder, TargetEncoder):
        return encoder
    return TargetEncoder(columns=encoder.columns, categories=encoder.categories)


def choose_scheme(encoder: TargetEncoder, parameters: Parameters, folds: Any, seed: int) -> Scheme:
    """Give the scheme that holds out the folds."""
    if isinstance(encoder.cv, dict):
        raise no_cv_by_column(OWNER)
    if isinstance(folds, Iterator) or isinstance(encoder.cv, Iterator):
        raise TypeError("Splits that can be read only once are gone when the encoder needs them. Pass list(cv).")
    if not isinstance(folds, (int, np.integer)) or isinstance(folds, bool):
        scheme = given_schemes.resolve(folds, encoder.shuffle, seed, OWNER)
    elif isinstance(parameters.scheme, (KFold, *WITHOUT_FOLDS)):
        check_count(OWNER, "folds", folds, low=2, high=MOST_FOLDS)
        scheme = KFold(int(folds), random_state=seed)
    else:
        scheme = parameters.scheme
    return scheme


def read_columns(parameters: Parameters, scheme: Scheme, inputs: Inputs) -> tuple[list[Key], FitContext]:
    """Read each column of the encoder's keys separately; also give the keys as positions of these columns."""
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
    """Let the scheme assign the folds; ValueError if it does not hold out whole folds."""
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
    """Make the scorer that fits no estimator."""
    rows = read_codes(context)
    folds = number_folds(plan, rows)
    if device_of(rows.ops) == "cpu":
        # Rows are sorted by fold, so that the sums of a fold, which a pass uses again and again, stay in the caches.
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
    """Give the numbers to explain: the values of a continuous target; for classes, whether a row belongs to each."""
    outcomes = []
    for target in targets:
        if not target.is_classification:
            outcomes.append((target.values, False))
            continue
        labels = [1] if target.kind == "binary" else range(target.n_classes)
        outcomes += [((target.values == label).astype(np.float64), True) for label in labels]
    return outcomes


def by_estimator(
    encoder: TargetEncoder | OneHotEncoder, context: FitContext, plan: FoldPlan, estimator: Any, scoring: Any
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
    # Codes on the host are used as if they were the values.
    on_host = replace(
        rows,
        ops=ops if device_of(ops) == "cpu" else host(rows.n_rows),
        codes=[to_host(codes) for codes in rows.codes],
        weight=None if rows.weight is None else to_host(rows.weight),
        targets=[replace(target, values=to_host(target.values)) for target in rows.targets],
    )
    plain = clone(encoder).set_params(categories="auto", device="cpu")
    if isinstance(encoder, OneHotEncoder):
        # Rows that are held out have conjunctions that the others lack.
        plain.set_params(
            handle_unknown="ignore" if encoder.handle_unknown == "error" else encoder.handle_unknown,
            drop=encoder.drop if isinstance(encoder.drop, str) else None,
        )
    else:
        plain.set_params(hierarchy=None, prior="mean" if isinstance(encoder.prior, dict) else encoder.prior)
    return EstimatorScorer(on_host, pairs, to_host(number_folds(plan, rows)), plain, estimator, scoring)


def candidates(n_columns: int, order: int, entries: Sequence[Key], seed: int, most: int) -> tuple[list[Key], int]:
    """List conjunctions that are not in the set, those of fewer columns first, each size in a seeded order.

    Returns
    -------
    listed : list of Key
        At most `most`.
    left_out : int
        How many more there are.
    """
    known = {frozenset(entry) for entry in entries}
    listed: list[Key] = []
    total = 0
    for size in range(2, min(order, n_columns) + 1):
        n_keys = math.comb(n_columns, size)
        n_known = sum(len(entry) == size for entry in known)
        total += n_keys - n_known
        room, random = most - len(listed), np.random.RandomState(seed + size)
        if n_keys <= LISTED_WHOLE * (room + n_known):
            keys = [key for key in combinations(range(n_columns), size) if frozenset(key) not in known]
            listed += [keys[number] for number in random.permutation(len(keys))[:room]]
            continue
        drawn: dict[Key, None] = {}
        while len(drawn) < room:
            key = tuple(sorted(random.choice(n_columns, size, replace=False).tolist()))
            if frozenset(key) not in known:
                drawn[key] = None
        listed += drawn
    return listed, total - len(listed)


def run(search: Search, entries: Sequence[Key], keys: Sequence[Key], forward: str, backward: bool) -> State:
    """Start with the encoder's keys, search forward, and then once backward."""
    start = search.scorer.start(entries)
    search.path.append(Move("start", None, start.score.mean, None))
    if forward == "once":
        return search.once(start, keys)
    state = search.first(start, keys) if forward == "first" else search.best(start, keys)
    return search.backward(state, entries) if backward else state


def warn_of_left_out(search: Search) -> None:
    """Warn if the limit of tries has ended the search."""
    if search.left_out or search.ended_early:
        done = f"left out {search.left_out:,} conjunctions" if search.left_out else "begun no further round"
        warn(
            f"{OWNER} has {done}, since max_tries={search.most_tries:,}. Raise max_tries, lower order, or give the "
            "encoder fewer columns.",
            ConvergenceWarning,
        )


def result(
    encoder: TargetEncoder | OneHotEncoder,
    parameters: Parameters,
    context: FitContext,
    entries: Sequence[Key],
    search: Search,
    state: State,
) -> ChosenInteractions:
    """Make the result, with the names of columns; warn if conjunctions were left out."""
    warn_of_left_out(search)
    names = [context.rows.frame.label(entry.members[0]) for entry in context.selection.entries]

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
    sizes = (sum(apart), *apart, len(search.sampled), search.scorer.sampled_rows, search.left_out)
    return ChosenInteractions(chosen, columns, path, state.score.mean, *sizes)
