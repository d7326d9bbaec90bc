"""The base of both boosters: parameters, fit, and raw predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from cpu_fallback.exact import Floats
from gpu_encode.encoders.base import table_with_names
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.methods.boosting.features import Features, find_borders
from gpu_encode.methods.boosting.models import Loss
from gpu_encode.methods.boosting.training import Problem, Settings, train
from gpu_encode.methods.boosting.trees import Tree
from gpu_encode.methods.predictor import Predictor
from gpu_encode.schemes import Ordered
from gpu_encode.schemes.plans import check_random_state, read_seed
from gpu_encode.seam.ops import host
from gpu_encode.sums.targets import Labels
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Column, Seed
from gpu_encode.words.errors.parameters import MOST_COLUMNS, bad_option, check_count, check_number, check_option
from gpu_encode.words.errors.tables import other_width
from gpu_encode.words.errors.targets import no_target

MODES = ("ordered", "plain", "exact")
# Mode "exact" fits a model for each row, and in each step a tree for each model.
MOST_EXACT_ROWS = 200


@dataclass(eq=False, repr=False)
class OrderedBoosting(Predictor):
    """A booster of oblivious trees; subclasses choose the loss."""

    mode: Literal["ordered", "plain", "exact"] = "ordered"
    iterations: int = 100
    depth: int = 4
    learning_rate: float = 0.1
    l2: float = 1.0
    permutations: int = 4
    subsample: float = 1.0
    borders: int = 32
    categorical: Literal["auto"] | Sequence[Column] = "auto"
    random_state: Seed = 0

    def _check(self) -> None:
        owner = type(self).__name__
        check_option(owner, "mode", self.mode, MODES)
        check_count(owner, "iterations", self.iterations, low=1)
        check_count(owner, "depth", self.depth, low=1, high=10)
        check_number(owner, "learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_number(owner, "l2", self.l2, low=0.0)
        check_count(owner, "permutations", self.permutations, low=1, high=MOST_COLUMNS)
        check_number(owner, "subsample", self.subsample, low=0.0, high=1.0, open_low=True)
        check_count(owner, "borders", self.borders, low=1, high=254)
        check_random_state(self.random_state)
        if self.categorical != "auto" and not isinstance(self.categorical, (list, tuple)):
            raise bad_option(owner, "categorical", self.categorical, ("'auto'", "a list of names or positions"))

    def _read_target(self, inputs: Inputs) -> tuple[str | None, Labels]:
        """Give the name of the target, if it has one, and its values."""
        owner = type(self).__name__
        if not inputs.has_target:
            raise no_target(owner)
        named = inputs.targets()
        if len(named) != 1:
            raise ValueError(f"{owner} takes one target. Got y with {len(named)} columns.")
        ((name, values),) = named
        ops = host(len(values))
        return name, Labels(ops, frames.move_to_reader(values, ops))

    def _fit(self, inputs: Inputs, y: Any, loss: Loss, prior: float) -> Self:
        """Boost; y holds floats for a quantity, or the labels 0 and 1 as integers."""
        n_rows, owner = len(y), type(self).__name__
        if n_rows < 2:
            raise ValueError(f"{owner} predicts rows from others, and needs at least two rows. Got n_samples={n_rows}.")
        if self.mode == "exact" and n_rows > MOST_EXACT_ROWS:
            raise ValueError(
                f'mode="exact" of {owner} fits a model for each row, of {MOST_EXACT_ROWS} rows at most. Got {n_rows}: '
                'take mode="ordered".'
            )
        seed, scheme = read_seed(self.random_state), Ordered()
        scheme.random_state = seed
        features = Features.fit(inputs, y, self.categorical, prior, seed)
        numbers = range(1 if self.mode == "exact" else 1 + self.permutations)
        drawn = [features.draw(inputs, y, number) for number in numbers]
        orders = [host(n_rows).rows_at(scheme.order(number, n_rows), 0, n_rows) for number in numbers]
        target = y.astype(np.float64)
        borders = find_borders(drawn[0], target, prior, len(features.categorical), self.borders)
        problem = Problem(target, loss, orders, drawn, borders)
        given = (self.mode, self.iterations, self.depth, self.learning_rate, self.l2, self.subsample)
        trees, predictions = train(problem, Settings(*given), np.random.default_rng(abs(seed)))
        _check_feature_names(self, table_with_names(inputs.tables[0], inputs.frame), reset=True)
        self.n_features_in_ = inputs.frame.n_columns
        self._features = features
        self.trees_: list[Tree] = trees
        self.training_predictions_: Floats = predictions
        return self

    def _predict_raw(self, X: Any) -> Floats:
        """Give the sum of the trees' values for each row."""
        check_is_fitted(self, "trees_")
        inputs = Inputs(X)
        _check_feature_names(self, table_with_names(X, inputs.frame), reset=False)
        if inputs.frame.n_columns != self.n_features_in_:
            raise other_width(type(self).__name__, inputs.frame.n_columns, self.n_features_in_)
        features = self._features.transform(inputs)
        predictions = np.zeros(len(features))
        for tree in self.trees_:
            predictions += tree.predict(features)
        return predictions
