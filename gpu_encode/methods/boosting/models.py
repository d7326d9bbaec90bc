"""Models that are boosted together over one order of the rows, and what they predict for rows that they do not know."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.elementary import exp
from cpu_fallback.exact import Floats
from cpu_fallback.types import Codes
from gpu_encode.methods.boosting import leaf_values
from gpu_encode.methods.boosting.trees import Gradients, Split, find_leaves

# Negative gradient of a loss, by target and prediction.
Loss = Callable[[Floats, Floats], Floats]


def squared_error(y: Floats, predictions: Floats) -> Floats:
    """Give the negative gradient of (y - F)**2 / 2."""
    return y - predictions


def log_loss(y: Floats, predictions: Floats) -> Floats:
    """Give the negative gradient of the log loss of labels 0 and 1, by their log-odds F."""
    gradients: Floats = y - 1.0 / (1.0 + exp(-predictions))
    return gradients


@dataclass(eq=False)
class Models:
    """Models over one order, each with predictions for the rows that ask it.

    Parameters
    ----------
    rows : int64 array (entries,)
        Row of each prediction, model after model, in the order of the rows.
    numbers : int32 array (entries,)
        Number of the model.
    fitted : bool array (entries,)
        Whether the model is fitted to the row.
    counted : bool array (entries,)
        Whether the row's gradient is that of this model.
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
        """Make one model, fitted to all rows."""
        every = np.ones(len(order), bool)
        return cls(order, np.zeros(len(order), np.int32), every, every, False, np.zeros(len(order)))

    @classmethod
    def ordered(cls, order: NDArray[np.int64]) -> "Models":
        """Make ceil(log2 n) models: number j is fitted to the first 2**j rows, and those up to 2**(j + 1) ask it."""
        n = len(order)
        sizes = [2**j for j in range((n - 1).bit_length())]
        ranks = [np.arange(min(2 * size, n)) for size in sizes]
        numbers = [np.full(len(each), j, np.int32) for j, each in enumerate(ranks)]
        fitted = np.concatenate([each < size for each, size in zip(ranks, sizes, strict=True)])
        rows = order[np.concatenate(ranks)]
        return cls(rows, np.concatenate(numbers), fitted, ~fitted, True, np.zeros(len(rows)))

    def gradients(self, y: Floats, loss: Loss) -> Gradients:
        """Give the gradient of every prediction."""
        values = loss(y[self.rows], self.predictions)
        return Gradients(self.rows, values, self.numbers, self.counted, self.in_order)

    def advance(self, gradients: Gradients, features: Floats, splits: list[Split], rate: float, l2: float) -> Floats:
        """Add a tree of these splits to every model, its values from the rows that the model is fitted to.

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
            What was added.
        """
        n_leaves, n_models = 2 ** len(splits), int(self.numbers[-1]) + 1
        codes = (self.numbers * n_leaves + find_leaves(features, splits)[self.rows]).astype(np.int32)
        values = leaf_values.of_all(codes[self.fitted], gradients.values[self.fitted], n_models * n_leaves, l2)
        added: Floats = rate * values
        self.predictions = self.predictions + added[codes]
        return added.reshape(n_models, n_leaves)

    def predict_rows(self, n_rows: int) -> Floats:
        """Give each row's prediction by the model whose gradient it has; 0 for the row that no model precedes."""
        predictions = np.zeros(n_rows)
        predictions[self.rows[self.counted]] = self.predictions[self.counted]
        return predictions
