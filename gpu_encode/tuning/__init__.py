"""Choose a smoothing, a scheme of folds, and conjunctions of columns, by rows held out, mostly from sums alone."""

from gpu_encode.tuning.choice import tune
from gpu_encode.tuning.chosen import ChosenInteractions, Step
from gpu_encode.tuning.interactions import choose_interactions
from gpu_encode.tuning.results import Score, Tuned

__all__ = ["ChosenInteractions", "Score", "Step", "Tuned", "choose_interactions", "tune"]
