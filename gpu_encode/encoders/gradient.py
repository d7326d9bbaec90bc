"""GradientEncoder: categories become what gradient boosting makes of them, without leaking the target."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_schemes
from gpu_encode.formulas.gradients import GradientRatios
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.words.annotations import ByKey, Seed


@dataclass(eq=False, repr=False)
class GradientEncoder(SchemeEncoder):
    """Encode categories by their gradients and hessians, by which LightGBM orders them before it splits on them.

    A category whose visible rows have gradients that add up to G, and hessians that add up to H, gets
    ``G / (H + regularization)``, or its rank among the categories in the order of that number.  By this order a tree
    need only look at splits of neighbours to find the best subset of the categories.

    Parameters
    ----------
    output : {"ratio", "order"}, default="ratio"
        "ratio": the number above.  "order": 0, 1, ... by rising ratio, categories of equal ratio as they sort; takes
        schemes with folds, and neither `LeaveOneOut` nor `Ordered`.
    regularization : float, default=10.0
        Lambda, in hessians: LightGBM's ``cat_smooth``, and its default.
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training, as in `TargetEncoder`.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; others are unknown,
        a missing value too where None is not among them.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": the ratio of all visible rows, and by order the rank
        that it would have.  "error" refuses values that fit did not see.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight (rows, unless there are weights) are treated as unseen.
    min_frequency : int or float, optional
        Categories of less visible weight, or of less than this share of it, are infrequent.
    max_categories : int, optional
        Most categories with encodings of their own, the infrequent ones together counting as one: the others, by what
        is visible, are infrequent.  Both need a scheme with folds.
    handle_infrequent : {"prior", "category"}, default="prior"
        Infrequent categories are as if unseen, or one category together.
    indicators : bool or list of {"unseen", "missing"}, default=False
        0/1 columns per encoded column, key_unseen and key_missing: no visible row has this category; the row has no
        value, whatever `handle_missing`.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as other
        rows do, and get what the rows that they see say; a row that lacks one of the two has neither.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Distinct values of each column, as `TargetEncoder` has them.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        Encoding of each category, by column.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    TargetEncoder : Columns, schemes, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    y has two columns, the gradient and the hessian of the loss in each row's current prediction: of squared error
    ``prediction - target`` and 1, of log loss ``p - target`` and ``p * (1 - p)``.  Weights multiply both.  Sums are
    exact and rounded once, so the encodings have the same bits on every backend and in any chunks.  Where neither a
    hessian nor lambda is there to divide by, the ratio is 0.

    LightGBM leaves categories of fewer than ``cat_smooth`` rows, as it estimates them from hessians, out of the order,
    and orders the others anew in every leaf.  ``min_count=10`` is near to that by its default: such categories are as
    if unseen.

    A leaf of these rows alone would predict -G / (H + lambda).  Gradients know the target: encodings of a row that has
    seen its own gradient leak, as a target mean does, which LightGBM takes ``cat_l2`` and ``min_data_per_group``
    against, and this encoder the scheme.

    References
    ----------
    Ke et al., "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NeurIPS 2017, and its
    ``feature_histogram.hpp`` (sum_gradient / (sum_hessian + cat_smooth)); Fisher, "On Grouping for Maximum
    Homogeneity", JASA 53, 1958 (why neighbours suffice).

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import GradientEncoder
    >>> X, target = np.array([list("aabbc")]).T, np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    >>> p = np.full(5, 0.5)
    >>> y = np.column_stack([p - target, p * (1 - p)])
    >>> GradientEncoder(regularization=0.5).fit(X, y).transform([["a"], ["b"], ["c"]]).round(4).tolist()
    [[0.0], [-1.0], [0.6667]]
    >>> GradientEncoder("order").fit(X, y).encodings_
    [array([1., 0., 2.])]
    """

    output: Literal["ratio", "order"] = "ratio"
    regularization: float = 10.0
    cv: CrossFitting | ByKey[CrossFitting] = 5
    _: KW_ONLY
    shuffle: bool = True
    random_state: Seed = 0

    def _parameters(self) -> Parameters:
        statistic = GradientRatios(self.output, self.regularization)
        return Parameters.of(self, statistic, target_type="continuous", **read_schemes(self))
