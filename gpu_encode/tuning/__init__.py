"""Choose a smoothing, and a scheme of folds, by the likelihood of rows held out, from sums alone."""

from gpu_encode.tuning.choice import tune
from gpu_encode.tuning.results import Score, Tuned

__all__ = ["Score", "Tuned", "tune"]
