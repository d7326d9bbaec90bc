"""ProximityEncoder: a row is encoded by the votes of the training rows that agree with it."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows, CodesEncoder, Learned
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.parameters import Parameters, read_scheme
from gpu_encode.formulas.counts import Counts
from gpu_encode.methods.proximity.learned import LearnedVotes, learn_votes
from gpu_encode.methods.proximity.subsets import MOST_FEATURES, MOST_SUBSETS, list_subsets, masks_of, read_weights
from gpu_encode.methods.proximity.tuning import Tuning
from gpu_encode.methods.proximity.voting import FORMS
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.schemes.plans import LeaveOneOutPlan, Plan, check_random_state, seed_of
from gpu_encode.seam import devices, ops
from gpu_encode.tables import frames
from gpu_encode.words.annotations import ArrayLike, Column, Columns, Device, FloatType, Seed, Table, TargetType
from gpu_encode.words.errors.parameters import bad_parameter, check_count, check_number, check_option

MISSING_POLICIES = ("category", "never", "error")
# Rows that are scored while tuning, unless a user says otherwise.
TUNING_ROWS = 4_000


@dataclass(eq=False, repr=False)
class ProximityEncoder(CodesEncoder):
    """Encode rows by the votes of training rows: each votes for its class, more strongly the more it agrees.

    A training row x_i votes for x with the strength r_i = (sum of w_S over all subsets S of features in which both rows
    agree) ** degree.  S is any subset of up to `order` features, the empty subset included.

    Parameters
    ----------
    order : int, default=2
        Most features of a subset.
    degree : float or "tune", default="tune"
        Power of the summed weights, above zero.  "tune": tuned together with the weights; if these are given, 1.
    form : {"ratio", "difference"}, default="ratio"
        "ratio": sum of r_i y_i divided by sum of r_i; if no row votes, the mean of y.  "difference", only for classes:
        the votes for a class divided by the weight of its rows, minus the votes against it divided by the weight of all
        other rows; the degree is then 1.
    weights : "tune", dict or array, default="tune"
        Weight of each subset; for a ratio no weight may be negative.  A dict maps a feature, or a tuple of features, by
        name or number, to a weight; () is the empty subset, and subsets that are not named have weight 0.  An array has
        the order of `subsets_`.
    tol : float, default=0.125
        The smallest step of the tuning.  Tuning starts with weights of 0, a degree of 1 and a step of 1.  Each training
        row is scored by all others.  In each round the step is added to the one number that raises the area under the
        ROC curve most (for several classes their mean area; for a continuous target, the number that lowers the squared
        error most, and by at least a millionth); among equals the first is taken.  If no number helps, the step is
        halved.  Tuning ends when the step is below `tol`.
    tuning_rows : int, "auto" or None, default="auto"
        At most this number of training rows, chosen at random, are scored while tuning; each of them by all other
        training rows.  "auto": 4,000, which takes seconds; more rows find better weights.  None: all rows.
    max_rounds : int or "auto", default="auto"
        The largest number of rounds of the tuning; a warning says if numbers still rise after them.  "auto": 200, or as
        many as take 2**35 additions if these are fewer, some minutes of a CPU.
    target_type : {"auto", "binary", "multiclass", "continuous"}, default="auto"
        As in `TargetEncoder`.
    cv : int, str, scheme or splitter, default=5
        Training rows are encoded by the rows that their fold sees, and weights are tuned on these rows only.  With
        LeaveOneOut, which needs given weights, they are encoded by all other rows.
    shuffle : bool, default=True
        As in `TargetEncoder`.
    random_state : int, NumPy generator or None, default=0
        Seed of the folds, and of the choice of `tuning_rows`.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the features; a tuple is a joint key and counts as one feature.  Others pass through.
        None: all columns.
    handle_missing : {"category", "never", "error"}, default="category"
        A missing value agrees with other missing values ("category"), or with nothing ("never").  A value that fit did
        not see never agrees.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.

    Attributes
    ----------
    subsets_ : list of tuple of str
        All subsets of up to `order` features.
    weights_ : float64 ndarray of shape (n_subsets,)
        Weight of each subset of features.
    degree_ : float
        Power of the summed weights.
    path_ : list of list of float
        For each step of the tuning: the number of the subset (the number after the last subset is the degree), the
        step, and the score after it: the area, or minus the mean squared error.
    classes_ : ndarray or None
        Sorted labels of y.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    ProximityClassifier, ProximityRegressor : Predictions from these votes.

    Notes
    -----
    The vote of a row depends only on the pattern of features in which it agrees with the query.  So training rows are
    summed once by query, pattern and class, in integers; each evaluation then multiplies these sums with the strengths
    of patterns, whatever `order` is.  With up to 14 features all patterns are counted, by comparing all pairs of rows
    or by grouping rows by all 2**features joint keys, whichever is faster.  With 15 to 62 features only patterns that
    occur are counted.  Tuning computes what each raised number adds: patterns are folded feature by feature, into sums
    of the rows that agree in each subset, and with a degree of 1 this happens once.  It needs about 50 bytes for each
    pattern that occurs with one of the distinct rows that are scored, and 8 more for each class.

    Sums are integers, and products are added one after another, so every backend gives the same bits.  Targets and
    weights that are fractions are rounded to 61 bits of their sum; powers with a degree other than 1 are computed by
    the C library.  If no row votes, a ratio is the mean of y without the row, which falls when the row's own target
    rises: so with few weights the area can be below one half.  Tuned weights have seen all training rows, so
    LeaveOneOut refuses them.

    References
    ----------
    D'yakonov, "Solution methods for classification problems with categorical attributes", Computational Mathematics
    and Modeling 26(3), 2015, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import ProximityEncoder
    >>> X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]], dtype=object)
    >>> encoder = ProximityEncoder(weights={0: 3.0, 1: 1.0}).fit(X, [1, 1, 0, 0])
    >>> encoder.transform([["a", "x"], ["b", "never seen"]]).ravel().tolist()
    [0.875, 0.0]
    """

    order: int = 2
    degree: float | Literal["tune"] = "tune"
    form: Literal["ratio", "difference"] = "ratio"
    weights: Literal["tune"] | Mapping[tuple[Column, ...], float] | ArrayLike = "tune"
    tol: float = 0.125
    _: KW_ONLY
    tuning_rows: int | Literal["auto"] | None = "auto"
    max_rounds: int | Literal["auto"] = "auto"
    target_type: TargetType = "auto"
    cv: CrossFitting = 5
    shuffle: bool = True
    random_state: Seed = 0
    columns: Columns = None
    handle_missing: Literal["category", "never", "error"] = "category"
    device: Device = "auto"
    dtype: FloatType = "float64"
    # The value for encoders that were saved before this parameter existed.
    parameters_before: ClassVar[Mapping[str, Any]] = MappingProxyType({"max_rounds": "auto"})
    _learned = LearnedVotes

    @property
    def _tunes(self) -> bool:
        """Whether the weights are tuned."""
        return isinstance(self.weights, str) and self.weights == "tune"

    def _rows_parameters(self) -> Parameters:
        return Parameters.of(self, Counts(), as_unseen="never", handle_unknown="never", **read_scheme(self))

    def _check_learner(self) -> None:
        owner = self._owner
        check_count(owner, "order", self.order, low=1)
        check_option(owner, "form", self.form, FORMS)
        check_option(owner, "handle_missing", self.handle_missing, MISSING_POLICIES)
        check_number(owner, "tol", self.tol, low=0.0, high=1.0, open_low=True)
        check_random_state(self.random_state)
        if self.tuning_rows is not None:
            check_count_or_auto(owner, "tuning_rows", self.tuning_rows)
        check_count_or_auto(owner, "max_rounds", self.max_rounds)
        if not (isinstance(self.degree, str) and self.degree == "tune"):
            if isinstance(self.degree, str):
                raise bad_parameter(owner, "degree", self.degree, 'must be "tune" or a number above 0')
            check_number(owner, "degree", self.degree, low=0.0, open_low=True)
            if self.form == "difference" and self.degree != 1:
                raise ValueError(f'form="difference" of {owner} has no degree: leave out degree={self.degree!r}.')

    def _learn(self, rows: CodedRows) -> LearnedVotes:
        owner, n_features = self._owner, len(rows.codes)
        if len(rows.targets) > 1:
            raise ValueError(f"{owner} takes one target, y has {len(rows.targets)}. Fit one {owner} to each.")
        if self.form == "difference" and rows.targets[0].kind == "continuous":
            raise ValueError(f'form="difference" of {owner} compares classes: take form="ratio" for a quantity.')
        if n_features > MOST_FEATURES:
            raise ValueError(f"{owner} takes up to {MOST_FEATURES} features, X has {n_features}. Name some in columns.")
        n_subsets = sum(math.comb(n_features, size) for size in range(min(self.order, n_features) + 1))
        if n_subsets > MOST_SUBSETS:
            raise ValueError(
                f"{owner} weighs up to {MOST_SUBSETS:,} subsets of features, and {n_features} features have "
                f"{n_subsets:,} of up to order={self.order}. Lower order, or name fewer features in columns."
            )
        subsets = list_subsets(n_features, self.order)
        names = rows.names or [str(number) for number in range(n_features)]
        given = None if self._tunes else read_weights(owner, self.weights, subsets, names, self.form == "difference")
        tuning = Tuning(
            self.form,
            degree=1.0 if self.form == "difference" else None if self.degree == "tune" else float(self.degree),
            tol=self.tol,
            max_rounds=None if self.max_rounds == "auto" else self.max_rounds,
            n_rows=TUNING_ROWS if self.tuning_rows == "auto" else self.tuning_rows,
            seed=0 if self.tuning_rows is None else seed_of(self.random_state, "Proximity"),
        )
        return learn_votes(rows, masks_of(subsets), given, tuning)

    def _encode_training(self, rows: CodedRows, plan: Plan, learned: Learned) -> Array:
        if not isinstance(plan, LeaveOneOutPlan):
            return super()._encode_training(rows, plan, learned)
        if self._tunes:
            raise ValueError(
                "LeaveOneOut leaves a row out of votes, but not out of weights that are tuned. Give "
                f"{self._owner} weights, such as the weights_ of one that was fitted to other rows, or take "
                "cv=KFold()."
            )
        assert isinstance(learned, LearnedVotes)
        return learned.encode_left_out(rows)

    @property
    def _votes(self) -> LearnedVotes:
        votes: LearnedVotes = self._fitted().learned  # type: ignore[attr-defined]
        return votes

    @property
    def weights_(self) -> Array:
        """Weight of each subset."""
        return self._votes.weights

    @property
    def degree_(self) -> float:
        """Power of the summed weights."""
        return self._votes.degree

    @property
    def path_(self) -> list[list[float]]:
        """Steps of the tuning."""
        return self._votes.path

    @property
    def subsets_(self) -> list[tuple[str, ...]]:
        """Subsets of features by their names, in the order of the weights."""
        names = [key.entry.name for key in self._fitted().keys]
        return [tuple(name for bit, name in enumerate(names) if mask >> bit & 1) for mask in self._votes.masks.tolist()]

    def vote(self, X: Table) -> Array:
        """Give the votes for new rows as a NumPy array, whatever X is.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        float64 ndarray of shape (n_rows, n_outputs)

        Examples
        --------
        >>> from gpu_encode import ProximityEncoder
        >>> ProximityEncoder(weights=[1.0, 1.0]).fit([["a"], ["b"]], [0, 1]).vote([["a"]]).tolist()
        [[0.3333333333333333]]
        """
        if frames.is_partitioned(X):
            self._parameters()
        with devices.explain_memory():
            inputs = Inputs(X)
            self._check_names(inputs, self._fitted().selection, reset=False)
            backend = ops.resolve(inputs.frame.n_rows, inputs.device(self.device))
            model = replace(self._fitted(), dtype="float64")
            columns, _ = model.encode(inputs.frame, backend, self._owner)
            return backend.to_host(np.stack(columns, axis=1))


def check_count_or_auto(owner: str, name: str, value: Any) -> None:
    """Raise an error unless a parameter is "auto" or a whole number above 0."""
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str):
        raise bad_parameter(owner, name, value, 'must be "auto" or a whole number above 0')
    check_count(owner, name, value, low=1)
