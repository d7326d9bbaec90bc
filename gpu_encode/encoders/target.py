"""TargetEncoder: categories become numbers learned from the target, without leaking it."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_each, read_schemes
from gpu_encode.formulas import smoothing
from gpu_encode.formulas.smoothing import Smooth
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.words.annotations import ByKey, Categories, Key, Prior, Seed, TargetType


@dataclass(eq=False, repr=False)
class TargetEncoder(SchemeEncoder):
    """Encode categories by a shrunk mean of the target, with training encodings that do not see their own row.

    A category with summed weight n and mean m gets ``lam * m + (1 - lam) * mu``: `smooth` chooses lam, `prior` mu.
    `fit_transform` gives training encodings by the scheme `cv`; `transform` gives encodings of new rows.  The same
    data, parameters and seed give the same bits on every backend, chunking and number of threads.

    Parameters
    ----------
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column, in the order of
        `encodings_`; all other values are unknown, in training too, and so are missing values if the list does not hold
        None.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        "auto" infers as scikit-learn does.  A list gives one kind per target.
    smooth : "auto", float, None, smoothing or dict, default="auto"
        "auto" is `EmpiricalBayes`; a float m is `MEstimate(m)`; None is the plain mean.  The other smoothings are
        `Sigmoid`, `JamesStein`, `PartialPooling` and `GLMM`.  A dict has a smoothing for each column or joint key that
        it names; all others get "auto".
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training.  An int is `KFold` with this number of folds; None is 5.  The other schemes
        are `Greedy`, `GroupKFold`, `TimeFolds`, `Holdout`, `LeaveOneOut` and `Ordered`.  It may also be a scikit-learn
        splitter, an iterable of splits, an array of fold numbers, or the name of a column that holds them.  A dict has
        one of these for each column or joint key that it names; all others get 5.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; an array of these, or of one boolean for each column, is allowed,
        too.  A tuple is a joint key.  Others pass through.  "categorical": all columns of text, bytes, booleans,
        objects, dictionaries (pandas' categories, polars' Categorical and Enum), intervals and periods, except for
        those that the scheme, `values` or a hierarchy use.  A selector of narwhals (any frame) or polars (polars,
        Arrow), and scikit-learn's `make_column_selector`, choose columns by their own rules; a compiled regular
        expression chooses the names in which its ``search`` finds something.  A function of X gives a list; it may look
        only at names and types, since rows come in chunks.  None: every column.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of values that no visible row has.  "error" refuses values that fit did not see.  A dict has one of
        these for each column that it names.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight are infrequent; a float is a share of all visible weight.
    max_categories : int, optional
        Largest number of categories with encodings of their own; all infrequent ones together count as one.  The
        categories with the least visible weight become infrequent.  `min_frequency` and `max_categories` need a scheme
        with folds.
    handle_infrequent : {"prior", "category"}, default="prior"
        "prior": infrequent categories are treated as unseen.  "category": together they are one category.
    indicators : bool or list of {"unseen", "missing"}, default=False
        Columns of 0 and 1 for each encoded column.  key_unseen is 1 if no visible row has the category.  key_missing is
        1 if the row has no value in the column, or in any column of a joint key, whatever `handle_missing` says.  True:
        ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute.  "auto": on the device that holds the data; but if there is a GPU, tables on the host are
        encoded there from a million rows on (of several tables, the first one counts).  The encodings have the same
        bits everywhere.  "cuda" without a GPU raises RuntimeError and says what to install.
    dtype : {"float64", "float32"}, default="float64"
        Encodings are computed in float64 and rounded once.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as
        other rows do, and are encoded by the rows that they see.  With several targets, a row may lack some of them.
    prior : "mean", "category_mean", float or dict, default="mean"
        mu: the mean of the visible rows, the mean of the category means, or a number.  A dict has one for each column
        or joint key that it names; others get "mean".
    hierarchy : dict, optional
        The levels above each column that it names: other columns, nearest first, or `Prefixes`, `Parts`, `Bits`.  The
        blended encoding of a level is the prior of the level below it.
    scale : {"identity", "log", "log1p", "sqrt", "logit"}, tuple or float, default="identity"
        Scale of the encodings x.  "identity": x.  "log": log(max(x, 2**-20)); ("log", floor): log(max(x, floor)).
        "log1p": log(1 + x).  "sqrt": the square root of x.  "logit": the log-odds of x, which is kept between 2**-20
        and 1 - 2**-20.  A float p: x**p.  A number given as `handle_unknown` is not put on the scale.
    drop : {None, "first"} or label, default=None
        "first" leaves out the column of the first class of a multiclass target; a label leaves out the column of its
        class.  A target with two classes has one column in any case.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Values of each encoded column, in the type of the first table, a missing value last; tuples for joint keys.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Encoding of each category, float64: by column, then target, then class, then fold of blow-up columns.
    target_mean_ : float, or float64 ndarray of shape (n_classes,), or a list of them
        Mean of the target over the rows that new rows see, exact and rounded once; for a multiclass target, the share
        of each class.  New rows see all rows, except with `Holdout`, half-lives, windows and `blow_up`; a half-life
        also changes the weights.  If columns have schemes of their own, it is the mean of the largest weight.
    target_type_ : str or list of str
        "binary", "continuous" or "multiclass", for each target.
    classes_ : ndarray of shape (n_classes,) or None, or a list of them
        Sorted labels; None for a continuous target.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    See Also
    --------
    sklearn.preprocessing.TargetEncoder : Its parameters mean the same here; "Coming from another library"
        in the guide lists the differences.

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
    >>> by_column = TargetEncoder(smooth={0: 10.0, 1: None}, prior={1: 0.5})
    >>> by_column.fit([["a", "x"], ["a", "y"], ["b", "x"]], [0, 1, 1]).transform([["b", "z"]]).round(3).tolist()
    [[0.697, 0.5]]
    >>> from gpu_encode import KFold, LeaveOneOut
    >>> schemes = {0: LeaveOneOut(), 1: KFold(2, order="contiguous")}
    >>> TargetEncoder(cv=schemes, smooth=None).fit_transform([["a", "x"]] * 4, [0.5, 1.5, 2.5, 6.5]).tolist()
    [[3.5, 4.5], [3.1666666666666665, 4.5], [2.8333333333333335, 1.0], [1.5, 1.0]]
    """

    categories: Categories = "auto"
    target_type: TargetType | Sequence[TargetType] = "auto"
    smooth: Smooth | ByKey[Smooth] = "auto"
    cv: CrossFitting | ByKey[CrossFitting] = 5
    shuffle: bool = True
    random_state: Seed = 0
    _: KW_ONLY
    prior: Prior | ByKey[Prior] = "mean"
    hierarchy: Mapping[Key, Derived | Sequence[Key]] | None = None
    scale: Literal["identity", "log", "log1p", "sqrt", "logit"] | tuple[str, float] | float = "identity"
    drop: Literal["first"] | str | float | None = None

    def _parameters(self) -> Parameters:
        statistic, named = read_each(self.smooth, "auto", smoothing.resolve, "smooth")
        return Parameters.of(self, statistic, by_key=named, **read_schemes(self))

    @property
    def target_mean_(self) -> Any:
        """Mean of the target over the rows that new rows see: an array for classes, a list for several targets."""
        means = [float(mean[0]) if len(mean) == 1 else mean for mean in self._fitted().means()]
        return means[0] if len(means) == 1 else means
