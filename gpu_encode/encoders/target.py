"""TargetEncoder: categories become numbers learned from the target, without leaking it."""

from os import PathLike
from typing import Any

import numpy as np

from gpu_encode import errors, schemes, smoothing
from gpu_encode.cells import Array
from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.options import Options
from gpu_encode.model import Model, TargetInfo


class TargetEncoder(Encoder):
    """Encode categories by a shrunk mean of the target, with training codes that do not see their own row.

    A category with summed weight n and mean m gets ``mu + lam * (m - mu)``; `smooth` chooses lam, `prior` chooses mu.
    `fit_transform` gives training codes by the scheme `cv`; `transform` gives codes of new rows.  The same data,
    parameters and seed give the same bits on every backend, chunking and number of threads.

    Parameters
    ----------
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column, in the order of
        `encodings_`; rows with other values are unknown, in training too.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        "auto" infers as scikit-learn does.  A list gives one kind per target.
    smooth : "auto", float, None or smoothing, default="auto"
        "auto" is `EmpiricalBayes`; a float m is `MEstimate(m)`; None is the plain mean; or
        `Sigmoid`, `JamesStein`, `PartialPooling`.
    cv : int, None, scheme, splitter, iterable, str or array, default=5
        Who may look at whom in training.  An int (None: 5) is `KFold` of that many stateless folds; or `Greedy`,
        `GroupKFold`, `TimeFolds`, `Holdout`, `LeaveOneOut`, `Ordered`; a scikit-learn splitter or iterable of splits;
        the name of a column, or an array, of fold numbers.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.
    columns : list, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    prior : "mean", "category_mean", float or dict, default="mean"
        mu: the mean of the visible rows, the mean of the category means, a number, or one number per column.
    handle_unknown : {"prior", "nan", "error"} or float, default="prior"
        Code of values that no visible row has.  "error" refuses values that fit did not see.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    hierarchy : dict, optional
        Levels above a column: other columns, nearest first, or `Prefixes`, `Parts`, `Bits`.  The blended code of a
        level is the prior of the one below.
    indicators : bool, default=False
        Add a 0/1 column per encoded column: no visible row has this category.
    drop : {None, "first"}, default=None
        "first" leaves out the first class of a multiclass target.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute.  "auto": where the data is, else a GPU if there is one, else the CPU.  The codes are the same
        bits everywhere; "cuda" without a GPU raises RuntimeError and says what to install.
    dtype : {"float64", "float32"}, default="float64"
        Codes are computed in float64 and rounded once.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Values of each encoded column in the type first read, a missing value last; tuples for joint keys.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Code of each category, float64: by column, then target, then class, then fold of blow-up columns.
    target_mean_ : float, or float64 ndarray of shape (n_classes,), or a list of them
        Exact mean of the target, by class for a multiclass target.
    target_type_ : str or list of str
        "binary", "continuous" or "multiclass", of each target.
    classes_ : ndarray of shape (n_classes,) or None, or a list of them
        Sorted labels; None for a continuous target.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    sklearn.preprocessing.TargetEncoder : Its parameters mean the same here; differences are listed in the README.

    References
    ----------
    Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and prediction
    problems", SIGKDD Explorations 3(1), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import TargetEncoder
    >>> X = np.array([["dog"] * 20 + ["cat"] * 30 + ["snake"] * 38], dtype=object).T
    >>> y = [90.3] * 5 + [80.1] * 15 + [20.4] * 5 + [20.1] * 25 + [21.2] * 8 + [49] * 30
    >>> encoder = TargetEncoder(smooth="auto").fit(X, y)
    >>> [codes.round(4).tolist() for codes in encoder.encodings_]
    [[20.15, 82.5871, 43.1538]]
    >>> training_codes = encoder.fit_transform(X, y)
    """

    def __init__(
        self,
        categories: Any = "auto",
        target_type: Any = "auto",
        smooth: Any = "auto",
        cv: Any = 5,
        shuffle: bool = True,
        random_state: Any = 0,
        *,
        columns: Any = None,
        prior: Any = "mean",
        handle_unknown: Any = "prior",
        handle_missing: str = "category",
        min_count: float = 0,
        hierarchy: Any = None,
        indicators: bool = False,
        drop: str | None = None,
        device: str = "auto",
        dtype: Any = "float64",
    ) -> None:
        self.categories = categories
        self.target_type = target_type
        self.smooth = smooth
        self.cv = cv
        self.shuffle = shuffle
        self.random_state = random_state
        self.columns = columns
        self.prior = prior
        self.handle_unknown = handle_unknown
        self.handle_missing = handle_missing
        self.min_count = min_count
        self.hierarchy = hierarchy
        self.indicators = indicators
        self.drop = drop
        self.device = device
        self.dtype = dtype

    def _options(self) -> Options:
        scheme = schemes.resolve(self.cv, self.shuffle, self.random_state)
        folds = (
            scheme.n_splits if isinstance(scheme, schemes.KFold) and not isinstance(self.cv, schemes.Scheme) else None
        )
        dtype = np.dtype(self.dtype).name if isinstance(self.dtype, (type, np.dtype)) else self.dtype
        options = Options(
            self.categories,
            self.target_type,
            smoothing.resolve(self.smooth),
            scheme,
            folds,
            self.columns,
            self.prior,
            self.handle_unknown,
            self.handle_missing,
            self.min_count,
            self.hierarchy,
            self.indicators,
            self.drop,
            dtype,
            self.device,
        )
        options.check()
        return options

    def _publish(self, model: Model) -> None:
        """Set the fitted attributes."""
        self._model = model
        means = [float(mean[0]) if len(mean) == 1 else mean for mean in model.means()]
        one = len(model.targets) == 1
        self.target_type_ = model.targets[0].kind if one else [info.kind for info in model.targets]
        self.classes_ = model.targets[0].classes if one else [info.classes for info in model.targets]
        self.target_mean_ = means[0] if one else means

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value last; tuples for joint keys."""
        return [people_readable(key) for key in self._fitted().keys]

    @property
    def encodings_(self) -> list[Array]:
        """Code of each category, per column and class (and target)."""
        model = self._fitted()
        return [
            np.append(
                codes.values[: key.n_categories, view, output],
                codes.values[-1:, view, output] if key.has_missing else [],
            )
            for key, per_target in zip(model.keys, model.tables, strict=True)
            for codes in per_target
            for output in range(codes.values.shape[2])
            for view in range(codes.values.shape[1])
        ]

    def _fitted(self) -> Model:
        if not hasattr(self, "_model"):
            raise errors.not_fitted(type(self).__name__)
        return self._model

    def _names_of(self, model: Model) -> list[str]:
        names = model.feature_names or [f"x{i}" for i in range(model.n_features)]
        return [*encoded_names(model, names, self._wide(model)), *(names[i] for i in model.selection.passed)]

    def _encoded_names(self, names: Any) -> list[str]:
        return encoded_names(self._model, names, self._wide(self._model))

    def _wide(self, model: Model) -> list[str]:
        """Suffixes of the columns per output."""
        views = model.statistics[0][0].n_views
        if views > 1:
            return [f"_fold{i}" for i in range(views)]
        return [f"_perm{i}" for i in range(model.permutations)] if model.permutations > 1 else [""]

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the fitted encoder to one file, whole or not at all.

        Parameters
        ----------
        path : path
            The file; `gpu_encode.load` reads it back on any machine.

        Raises
        ------
        OSError
            If it cannot be written; an older file of that name is then as it was.

        Examples
        --------
        >>> import tempfile
        >>> from gpu_encode import TargetEncoder, load
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoder.save(f"{folder}/encoder")
        ...     load(f"{folder}/encoder").transform([["b"]]).tolist()
        [[1.0]]
        """
        from gpu_encode import storage

        storage.save(self, path)


def encoded_names(model: Model, names: Any, suffixes: list[str]) -> list[str]:
    """Names of the encoded columns and the indicators."""
    selection = model.selection.named([str(name) for name in names])
    found = [
        f"{entry.name}{target_part}{suffix}"
        for entry in selection.entries
        for number, info in enumerate(model.targets)
        for target_part in target_parts(model, number, info)
        for suffix in suffixes
    ]
    return [*found, *(f"{entry.name}_unseen" for entry in selection.entries if model.indicators)]


def target_parts(model: Model, number: int, info: TargetInfo) -> list[str]:
    """Parts of an output name that name the target and the class, as they apply."""
    target = "" if len(model.targets) == 1 else f"_{info.name if info.name is not None else number}"
    if info.kind != "multiclass" or info.classes is None:
        return [target]
    first = model.statistics[0][number].measured.first_output
    return [f"{target}_{label}" for label in info.classes[first:]]


def people_readable(key: Any) -> Array:
    """Values of a key's categories."""
    if key.members is None:
        values = key.vocabularies[0].to_numpy()
        return with_missing(values) if key.has_missing else values
    words = [np.append(vocabulary.to_numpy().astype(object), [None]) for vocabulary in key.vocabularies]
    out = np.empty(len(key.members), dtype=object)
    out[:] = list(zip(*(word[key.members[:, i]] for i, word in enumerate(words)), strict=True))
    return out


def with_missing(values: Array) -> Array:
    """Values with a missing one at the end, in a type that has one."""
    if values.dtype.kind in "mM":
        return np.append(values, np.array(["NaT"], dtype=values.dtype))
    if values.dtype.kind == "f" or (
        values.dtype.kind in "iu" and (not len(values) or int(np.abs(values).max()) < 1 << 53)
    ):
        return np.append(values.astype(np.float64), np.nan)
    return np.append(values.astype(object), [None])
