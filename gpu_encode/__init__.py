"""Categorical columns become numbers learned from the target: exact, leak-free, the same bits on every machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_encode.loading import LOADING

if TYPE_CHECKING:
    from gpu_encode.boosting.classifier import OrderedBoostingClassifier
    from gpu_encode.boosting.regressor import OrderedBoostingRegressor
    from gpu_encode.categories.hierarchy import Bits, Parts, Prefixes
    from gpu_encode.datasets.encoding import encode_dataset, transform_dataset
    from gpu_encode.encoders.catboost import CatBoostEncoder
    from gpu_encode.encoders.cluster.encoder import ClusterEncoder
    from gpu_encode.encoders.count import CountEncoder
    from gpu_encode.encoders.gradient import GradientEncoder
    from gpu_encode.encoders.hashing import HashingEncoder
    from gpu_encode.encoders.impact import ImpactEncoder
    from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
    from gpu_encode.encoders.ordinal.encoder import OrdinalEncoder
    from gpu_encode.encoders.statistic import StatisticEncoder
    from gpu_encode.encoders.target import TargetEncoder
    from gpu_encode.encoders.weight_of_evidence import WeightOfEvidenceEncoder
    from gpu_encode.factors.cooccurrence import CooccurrenceEncoder
    from gpu_encode.factors.spectral import SpectralEncoder
    from gpu_encode.factors.tensor import FactorizationEncoder
    from gpu_encode.fitting.columns import interactions
    from gpu_encode.formulas.glmm.smoothing import GLMM
    from gpu_encode.formulas.mergeable import MergeableStatistic
    from gpu_encode.formulas.smoothing import EmpiricalBayes, JamesStein, MEstimate, PartialPooling, Sigmoid
    from gpu_encode.notices import LeakWarning, UnseenWarning
    from gpu_encode.proximity.encoder import ProximityEncoder
    from gpu_encode.proximity.estimators import ProximityClassifier, ProximityRegressor
    from gpu_encode.schemes import Greedy, GroupKFold, Holdout, KFold, LeaveOneOut, Ordered, TimeFolds
    from gpu_encode.storage import load
    from gpu_encode.tuning import choose_interactions, tune
    from gpu_encode.votes.auc import roc_auc_score, roc_curve
    from gpu_encode.votes.blend_matrix import blend_matrix
    from gpu_encode.votes.blends import ConvexBlend
    from gpu_encode.votes.classifier import VoteClassifier
    from gpu_encode.votes.regressor import VoteRegressor

__version__ = "0.1.0"

_HOME = {
    "CatBoostEncoder": "encoders.catboost",
    "ClusterEncoder": "encoders.cluster.encoder",
    "CooccurrenceEncoder": "factors.cooccurrence",
    "ConvexBlend": "votes.blends",
    "CountEncoder": "encoders.count",
    "FactorizationEncoder": "factors.tensor",
    "GradientEncoder": "encoders.gradient",
    "HashingEncoder": "encoders.hashing",
    "ImpactEncoder": "encoders.impact",
    "OneHotEncoder": "encoders.one_hot.encoder",
    "OrderedBoostingClassifier": "boosting.classifier",
    "OrderedBoostingRegressor": "boosting.regressor",
    "OrdinalEncoder": "encoders.ordinal.encoder",
    "SpectralEncoder": "factors.spectral",
    "StatisticEncoder": "encoders.statistic",
    "TargetEncoder": "encoders.target",
    "VoteClassifier": "votes.classifier",
    "VoteRegressor": "votes.regressor",
    "WeightOfEvidenceEncoder": "encoders.weight_of_evidence",
    **dict.fromkeys(("Bits", "Parts", "Prefixes"), "categories.hierarchy"),
    **dict.fromkeys(("Greedy", "GroupKFold", "Holdout", "KFold", "LeaveOneOut", "Ordered", "TimeFolds"), "schemes"),
    "GLMM": "formulas.glmm.smoothing",
    "MergeableStatistic": "formulas.mergeable",
    "encode_dataset": "datasets.encoding",
    "transform_dataset": "datasets.encoding",
    "interactions": "fitting.columns",
    **dict.fromkeys(("EmpiricalBayes", "JamesStein", "MEstimate", "PartialPooling", "Sigmoid"), "formulas.smoothing"),
    **dict.fromkeys(("LeakWarning", "UnseenWarning"), "notices"),
    **dict.fromkeys(("ProximityClassifier", "ProximityRegressor"), "proximity.estimators"),
    "ProximityEncoder": "proximity.encoder",
    "load": "storage",
    "tune": "tuning",
    "blend_matrix": "votes.blend_matrix",
    **dict.fromkeys(("roc_auc_score", "roc_curve"), "votes.auc"),
    **dict.fromkeys(("choose_interactions", "tune"), "tuning"),
}

__all__ = [
    "GLMM",
    "Bits",
    "CatBoostEncoder",
    "ClusterEncoder",
    "ConvexBlend",
    "CooccurrenceEncoder",
    "CountEncoder",
    "EmpiricalBayes",
    "FactorizationEncoder",
    "GradientEncoder",
    "Greedy",
    "GroupKFold",
    "HashingEncoder",
    "Holdout",
    "ImpactEncoder",
    "JamesStein",
    "KFold",
    "LeakWarning",
    "LeaveOneOut",
    "MEstimate",
    "MergeableStatistic",
    "OneHotEncoder",
    "Ordered",
    "OrderedBoostingClassifier",
    "OrderedBoostingRegressor",
    "OrdinalEncoder",
    "PartialPooling",
    "Parts",
    "Prefixes",
    "ProximityClassifier",
    "ProximityEncoder",
    "ProximityRegressor",
    "Sigmoid",
    "SpectralEncoder",
    "StatisticEncoder",
    "TargetEncoder",
    "TimeFolds",
    "UnseenWarning",
    "VoteClassifier",
    "VoteRegressor",
    "WeightOfEvidenceEncoder",
    "blend_matrix",
    "choose_interactions",
    "encode_dataset",
    "interactions",
    "load",
    "roc_auc_score",
    "roc_curve",
    "transform_dataset",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use: scikit-learn alone takes a second to import."""
    if name in _HOME:
        with LOADING:
            return getattr(import_module(f"gpu_encode.{_HOME[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
