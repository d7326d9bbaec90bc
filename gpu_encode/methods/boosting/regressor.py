"""OrderedBoostingRegressor: boosting for squared error whose gradients see no row's own target."""

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
    """Boost oblivious trees for squared error, as CatBoost's papers define it: a reference, small and not quick.

    In ordinary boosting, a row's gradient is taken at a prediction that has seen the row's target; that shifts what
    the next tree learns.  Here a row's gradient is taken at the prediction of a model fitted to rows before it, in a
    random order, and categories are encoded from the rows before, in the same order.

    Parameters
    ----------
    mode : {"ordered", "plain", "exact"}, default="ordered"
        "ordered": for every order there are ceil(log2 n) models; the row of rank i, counted from 1, has its gradient
        from the one fitted to the first 2 ** floor(log2(i - 1)) rows, and a row's step, by which splits are chosen, is
        the mean gradient of the rows before it in its leaf.  Trees of new rows have the same splits, and as values the
        mean gradients of one more model over all rows, under an order of its own.  "plain": ordinary boosting on
        encodings of the rows before.  "exact": the definition, a model for each number of first rows, each with trees
        of its own; 200 rows at most.
    iterations : int, default=100
        Number of trees.
    depth : int, default=4
        Levels of a tree, 10 at most; all leaves of a level have the same split.
    learning_rate : float, default=0.1
        Part of each step that is taken.
    l2 : float, default=1.0
        The mean of a leaf's n gradients is multiplied by n / (n + l2).
    permutations : int, default=4
        Orders of which each tree takes one to choose its splits, beside the one of leaf values.
    subsample : float, default=1.0
        Share of the rows by which the splits of a tree are chosen; values are those of all rows.
    borders : int, default=32
        Most borders of a column, 254 at most.
    categorical : "auto" or list, default="auto"
        Names or positions of the columns of categories.  "auto": those that do not hold numbers.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the orders, and of the rows by which splits are chosen.

    Attributes
    ----------
    trees_ : list
        Each with `splits`, a list of (column, border), and `values`, one a leaf.  Encodings are the first columns.
    training_predictions_ : ndarray of shape (n_rows,)
        At the end, what each training row's gradient would be taken at: of "exact" and "ordered" by models that were
        not fitted to the row (of "ordered" in the first order; the splits have seen all rows).
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    OrderedBoostingClassifier : The same for two classes.

    Notes
    -----
    It is there to prove and to compare, on some thousand rows: work on real data is CatBoost's.  It computes on the
    CPU.  Models begin at 0, as in the papers: of a target far from 0, take the mean off.  Missing numbers lie below
    all borders; a missing category is one more category; one that fit has not seen has the encoding 0, the prior.
    Encodings are `CatBoostEncoder`'s, ``S / (n + 1)``, with borders evenly between the least and the greatest target.

    Sums of gradients are exact, scores are summed exactly and rounded once, so that all machines grow the same trees.

    Gradients of "ordered" and "exact" have no shift, given the row.  The mean of them in a leaf has, one of the order
    of 1 / n and of the opposite sign to that of "plain", since leaves are of random sizes:
    `examples/leaks/prediction_shift.py` measures both.  The values of trees are those of "plain" in mode "ordered".

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
        """Boost.

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
            For bad input; the model is then as it was.
        """
        self._check()
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
