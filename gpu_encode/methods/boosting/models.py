"""Models that are boosted together over one order of the rows, and their predictions for rows not seen by them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats
from cpu_fallback.types import Codes
from gpu_encode.methods.boosting import leaf_values
from gpu_encode.methods.boosting.trees import Gradients, Split, find_leaves

# The negative gradient of a loss, as a function of target and prediction.
Loss = Callable[[Floats, Floats], Floats]


def squared_error(y: Floats, predictions: Floats) -> Floats:
    """Give the negative gradient of (y - F)**2 / 2."""
    return y - predictions


def log_loss(y: Floats, predictions: Floats) -> Floats:
    """Give the negative gradient of the log loss of labels 0 and 1, for predictions F in log-odds."""
    gradients: Floats = y - 1.0 / (1.0 + exp(-predictions))
    return gradients


@dataclass(eq=False)
class Models:
    """Models over one order, each with predictions for its own rows and for the rows that it serves.

    Parameters
    ----------
    rows : int64 array (entries,)
        Row of each prediction, model by model, in the order of the rows.
    numbers : int32 array (entries,)
        Number of the model.
    fitted : bool array (entries,)
        Whether the model is fitted to this row.
    counted : bool array (entries,)
        Whether this row's gradient is computed from this model.
    in_order : bool
    predictions : float64 array (entries,)
    """

    rows: NDArray[np.int64]
    numbers: Codes
    fitted: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    in_order: bool
    predictions: Floats

    @classmethod
    def plain(cls, order: NDArray[np.int64]) -> "Models":
        """Make one model that is fitted to all rows."""
        every = np.ones(len(order), bool)
        return cls(order, np.zeros(len(order), np.int32), every, every, False, np.zeros(len(order)))

    @classmethod
    def ordered(cls, order: NDArray[np.int64]) -> "Models":
        """Make ceil(log2 n) models: number j is fitted to the first 2**j rows, and serves the rows up to 2**(j + 1)."""
        n = len(order)
        sizes = [2**j for j in range((n - 1).bit_length())]
        ranks = [np.arange(min(2 * size, n)) for size in sizes]
        numbers = [np.full(len(each), j, np.int32) for j, each in enumerate(ranks)]
        fitted = np.concatenate([each < size for each, size in zip(ranks, sizes, strict=True)])
        rows = order[np.concatenate(ranks)]
        return cls(rows, np.concatenate(numbers), fitted, ~fitted, True, np.zeros(len(rows)))

    def gradients(self, y: Floats, loss: Loss) -> Gradients:
        """Give the gradient at every prediction."""
        values = loss(y[self.rows], self.predictions)
        return Gradients(self.rows, values, self.numbers, self.counted, self.in_order)

    def advance(self, gradients: Gradients, features: Floats, splits: list[Split], rate: float, l2: float) -> Floats:
        """Add a tree with these splits to every model, with values from the rows to which the model is fitted.

        Parameters
        ----------
        gradients : Gradients
        features : float64 array (rows, columns)
        splits : list of Split
        rate : float
        l2 : float

        Returns
        -------
        float64 array (models, leaves)
            The values that were added.
        """
        n_leaves, n_models = 2 ** len(splits), int(self.numbers[-1]) + 1
        codes = (self.numbers * n_leaves + find_leaves(features, splits)[self.rows]).astype(np.int32)
        values = leaf_values.of_all(codes[self.fitted], gradients.values[self.fitted], n_models * n_leaves, l2)
        added: Floats = rate * values
        self.predictions = self.predictions + added[codes]
        return added.reshape(n_models, n_leaves)

    def predict_rows(self, n_rows: int) -> Floats:
        """Give each row's prediction by the model of its gradient; 0 for the first row, which no model serves."""
        predictions = np.zeros(n_rows)
        predictions[self.rows[self.counted]] = self.predictions[self.counted]
        return predictions
