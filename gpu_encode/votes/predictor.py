"""What classifiers and regressors share that predict by an encoder of categories."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from gpu_encode.encoders.base import Encoder


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
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        for of_kind in (tags.classifier_tags, tags.regressor_tags):
            if of_kind is not None:
                # Numbers of which each is a category of its own teach nothing of others.
                of_kind.poor_score = True
        return tags
