"""Choose a smoothing, a scheme of folds, and conjunctions of columns by held-out rows, mostly from sums alone."""

from gpu_encode.study.tuning.choice import tune
from gpu_encode.study.tuning.chosen import ChosenInteractions, Step
from gpu_encode.study.tuning.interactions import choose_interactions
from gpu_encode.study.tuning.results import Score, Tuned

__all__ = ["ChosenInteractions", "Score", "Step", "Tuned", "choose_interactions", "tune"]
