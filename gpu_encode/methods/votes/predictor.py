"""What classifiers and regressors share that predict by an encoder of categories."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, accept_categories


class Predictor(BaseEstimator):
    """A classifier or regressor whose training rows are read by an encoder."""

    def _publish_encoder(self, encoder: Encoder) -> None:
        """Keep a fitted encoder, and what scikit-learn reads off an estimator."""
        self.encoder_: Any = encoder
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        return accept_categories(super().__sklearn_tags__())


def choose_classes(scores: Array) -> Array:
    """Give the place of each row's class by its scores, as `decision_function` gives them; of equal ones the first."""
    chosen: Array = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    return chosen
