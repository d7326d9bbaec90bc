"""OrderedBoostingClassifier: boosting for log loss with gradients that never see a row's own label."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.methods.boosting.base import OrderedBoosting
from gpu_encode.methods.boosting.models import log_loss
from gpu_encode.methods.predictor import ScoringClassifier
from gpu_encode.sums import targets
from gpu_encode.words.annotations import Table


@dataclass(eq=False, repr=False)
class OrderedBoostingClassifier(ScoringClassifier, OrderedBoosting):
    """Boost oblivious trees for the log loss of two classes, as CatBoost's papers define it: a reference, not fast.

    Parameters
    ----------
    mode : {"ordered", "plain", "exact"}, default="ordered"
        How a row's own label is kept out of its gradient: see `OrderedBoostingRegressor`.
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
        Share of the rows that are used to choose the splits of a tree; leaf values use all rows.
    borders : int, default=32
        Most borders of a column, 254 at most.
    categorical : "auto" or list, default="auto"
        Names or positions of the categorical columns.  "auto": all columns that do not hold numbers.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the orders, and of the rows that are used to choose splits.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Sorted labels.
    trees_ : list
        The trees, in the order in which they were added.
    training_predictions_ : ndarray of shape (n_rows,)
        As in `OrderedBoostingRegressor`, as log-odds of the second class.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    OrderedBoostingRegressor : The same for squared error; its docstring explains all parameters.

    Notes
    -----
    This is a reference for comparisons, like the regressor.  Steps are mean gradients, as in the papers, not Newton
    steps. Encodings of categories are ``(S + 0.5) / (n + 1)``; S is the number of rows of the second class.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import OrderedBoostingClassifier
    >>> X = np.array([["a", 1], ["b", 2], ["a", 3], ["b", 4]] * 8, dtype=object)
    >>> y = np.array(["no", "no", "yes", "yes"] * 8)
    >>> model = OrderedBoostingClassifier(iterations=20, depth=2, learning_rate=1.0).fit(X, y)
    >>> model.predict(X[:4]).tolist()
    ['no', 'no', 'yes', 'yes']
    """

    def fit(self, X: Table, y: Table) -> Self:
        """Fit the trees.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            NumPy array, pandas, polars, Arrow or cuDF table.
        y : array of shape (n_rows,)
            Labels of two classes.

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
        target = targets.make(*self._read_target(inputs), "multiclass", None)
        if target.classes is None or len(target.classes) != 2:
            found = 0 if target.classes is None else len(target.classes)
            # The first sentences are those of scikit-learn.
            if target.classes is not None and type_of_target(target.classes) == "continuous":
                told = "Unknown label type: continuous. Take OrderedBoostingRegressor for quantities."
            else:
                told = "Only binary classification is supported."
            raise ValueError(f"{told} OrderedBoostingClassifier tells two classes apart. Got y with {found} classes.")
        self._fit(inputs, np.asarray(target.values, np.int64), log_loss, 0.5)
        self.classes_ = target.classes
        return self

    def decision_function(self, X: Table) -> Floats:
        """Give the log-odds of the second class.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._predict_raw(X)

    def predict_proba(self, X: Table) -> Floats:
        """Give the probabilities of both classes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Rows, in the columns of fit.

        Returns
        -------
        ndarray of shape (n_rows, 2)
        """
        second = 1.0 / (1.0 + exp(-self._predict_raw(X)))
        return np.stack([1.0 - second, second], axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
