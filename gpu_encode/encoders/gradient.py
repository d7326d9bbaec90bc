"""GradientEncoder: encode categories by gradients, as gradient boosting does, without leaking the target."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.parameters import Parameters, read_schemes
from gpu_encode.formulas.gradients import GradientRatios
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.words.annotations import ByKey, Seed


@dataclass(eq=False, repr=False)
class GradientEncoder(SchemeEncoder):
    """Encode categories by gradients and hessians; by these numbers LightGBM orders categories before it splits them.

    Let G be the sum of the gradients of a category's visible rows, and H the sum of their hessians.  The category gets
    ``G / (H + regularization)``, or the rank of this number among all categories.  In this order, a tree finds the best
    subset of the categories by looking only at splits between neighbours.

    Parameters
    ----------
    output : {"ratio", "order"}, default="ratio"
        "ratio": the number above.  "order": ranks 0, 1, ... by rising ratio; categories of equal ratio are in the order
        of their values.  "order" needs a scheme with folds, so not `LeaveOneOut` or `Ordered`.
    regularization : float, default=10.0
        Lambda, which is added to H.  It is LightGBM's ``cat_smooth``, and has the same default.
    cv : int, None, scheme, splitter, iterable, str, array or dict, default=5
        Who may look at whom in training, as in `TargetEncoder`.
    categories : "auto" or list, default="auto"
        "auto": the values of the training rows.  A list: one list of values per encoded column; all other
        values are unknown, and so are missing values if the list does not hold None.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"prior", "nan", "error"}, float or dict, default="prior"
        Encoding of categories that no visible row has.  "prior": the ratio of all visible rows; with
        output="order", the rank that this ratio would have.  "error" refuses values that fit did not see.
    handle_missing : {"category", "prior", "nan", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.
    min_count : float, default=0
        Categories of less visible weight (rows, unless there are weights) are treated as unseen.
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
        1 if the row has no value, whatever `handle_missing` says.  True: ["unseen"].
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    missing_target : {"error", "keep"}, default="error"
        Rows without a target (None, NaN).  "keep": their categories are known and they are encoded, and they count
        nowhere: neither in n, in the prior, nor in `min_count`.  They have a fold, or a rank in an order, as
        other rows do, and are encoded by the rows that they see.  A row without a gradient or without a hessian counts
        as a row without both.
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
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    See Also
    --------
    TargetEncoder : Columns, schemes, policies, weights, pieces, states and devices mean the same there.

    Notes
    -----
    y has two columns, the gradient and the hessian of the loss at each row's current prediction: ``prediction -
    target`` and 1 for squared error, ``p - target`` and ``p * (1 - p)`` for log loss.  Weights multiply both.  Sums are
    exact and rounded once, so the encodings have the same bits on every backend and in any chunks.  If H + lambda is 0,
    the ratio is 0.

    LightGBM leaves out categories of fewer than ``cat_smooth`` rows, a number that it estimates from hessians, and
    orders all other categories again in every leaf.  ``min_count=10`` does nearly the same as its default: it treats
    such categories as unseen.

    A leaf that holds only the rows of one category would predict -G / (H + lambda).  Gradients contain the target: if a
    row sees its own gradient, its encoding leaks, as a target mean does.  LightGBM limits this by ``cat_l2`` and
    ``min_data_per_group``; this encoder prevents it by the scheme.

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
