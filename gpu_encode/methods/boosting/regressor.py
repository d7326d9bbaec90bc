"""OrderedBoostingRegressor: boosting for squared error with gradients that never see a row's own target."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import RegressorMixin

from cpu_fallback.exact import Floats
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.methods.boosting.base import OrderedBoosting
from gpu_encode.methods.boosting.models import squared_error
from gpu_encode.sums import targets
from gpu_encode.words.annotations import Table


@dataclass(eq=False, repr=False)
class OrderedBoostingRegressor(RegressorMixin, OrderedBoosting):
    """Boost oblivious trees for squared error, as CatBoost's papers define it: a small reference, not fast.

    In ordinary boosting, the gradient of a row is computed at a prediction that has seen the row's target; this shifts
    what the next tree learns.  Here the gradient of a row is computed at the prediction of a model that is fitted to
    rows before it in a random order, and categories are encoded from the rows before it in the same order.

    Parameters
    ----------
    mode : {"ordered", "plain", "exact"}, default="ordered"
        "ordered": every order has ceil(log2 n) models.  The gradient of the row of rank i, counted from 1, comes from
        the model that is fitted to the first 2 ** floor(log2(i - 1)) rows.  Splits are chosen by steps: the step of a
        row is the mean gradient of the rows before it in its leaf.  Trees for new rows have the same splits; their
        values are the mean gradients of one more model over all rows, with an order of its own.  "plain": ordinary
        boosting on encodings from the rows before.  "exact": the definition in the papers, with a model for each number
        of first rows and trees of its own for each model; at most 200 rows.
    iterations : int, default=100
        Number of trees.
    depth : int, default=4
        Levels of a tree, 10 at most; all leaves of a level have the same split.
    learning_rate : float, default=0.1
        Each step is multiplied by this number.
    l2 : float, default=1.0
        The mean of a leaf's n gradients is multiplied by n / (n + l2).
    permutations : int, default=4
        Number of orders for splits: each tree draws one of them to choose its splits. One more order is for leaf
        values.
    subsample : float, default=1.0
        Share of the rows by which the splits of a tree are chosen; values are those of all rows.
    borders : int, default=32
        Most borders of a column, 254 at most.
    categorical : "auto" or list, default="auto"
        Names or positions of the categorical columns.  "auto": all columns that do not hold numbers.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the orders, and of the rows that are used to choose splits.

    Attributes
    ----------
    trees_ : list
        Each tree has `splits`, a list of (column, border), and `values`, one for each leaf.  Columns of encodings come
        first.
    training_predictions_ : ndarray of shape (n_rows,)
        For each training row, the prediction at which its next gradient would be computed.  With "exact" and "ordered"
        it comes from models that were not fitted to the row (with "ordered", in the first order; the splits have seen
        all rows).
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    OrderedBoostingClassifier : The same for two classes.

    Notes
    -----
    This class is for proofs and comparisons, on some thousand rows; for real data use CatBoost.  It computes on the
    CPU. Models start at 0, as in the papers: if the target is far from 0, subtract its mean.  Missing numbers are below
    all borders.  A missing category is a category of its own; a category that fit has not seen has the encoding 0, the
    prior. Encodings are those of `CatBoostEncoder`, ``S / (n + 1)``, with borders spread evenly between the smallest
    and the largest target.

    Sums of gradients are exact; scores are summed exactly and rounded once.  So all machines grow the same trees.

    With "ordered" and "exact", the gradient of a given row has no shift.  The mean gradient of a leaf has one, of the
    order of 1 / n and of the opposite sign to that of "plain", since the sizes of leaves are random:
    `examples/leaks/prediction_shift.py` measures both.  In mode "ordered", the values of trees are computed as in
    "plain".

    References
    ----------
    Prokhorenkova et al. (2018), "CatBoost: unbiased boosting with categorical features", algorithms 1 ("exact"), 2 and
    3; Dorogush et al. (2018), "CatBoost: gradient boosting with categorical features support".

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import OrderedBoostingRegressor
    >>> X = np.array([["a", 1], ["b", 2], ["a", 3], ["b", 4]] * 8, dtype=object)
    >>> y = np.array([0.0, 1.0, 2.0, 3.0] * 8)
    >>> model = OrderedBoostingRegressor(iterations=50, depth=2).fit(X, y)
    >>> model.predict(X[:4]).round().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def fit(self, X: Table, y: Table) -> Self:
        """Fit the trees.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            NumPy array, pandas, polars, Arrow or cuDF table.
        y : array of shape (n_rows,)
            The target of each row.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad input; the model is then unchanged.
        """
        self._check()
        self._warn_of_column(y)
        inputs = Inputs(X, y)
        quantity = targets.make(*self._read_target(inputs), "continuous", None)
        return self._fit(inputs, np.asarray(quantity.values, np.float64), squared_error, 0.0)

    def predict(self, X: Table) -> Floats:
        """Predict new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._predict_raw(X)
