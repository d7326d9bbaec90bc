"""Categorical columns become numbers learned from the target: exact, leak-free, the same bits on every machine.

    from gpu_encode import TargetEncoder
    encoder = TargetEncoder(columns=["shop", ("shop", "city")])
    training = encoder.fit_transform(X, y)
    new = encoder.transform(X_new)

Encoders of one column or joint key at a time
    TargetEncoder             shrunk mean of the target
    CatBoostEncoder           ratios with priors, in a random order of the rows
    ImpactEncoder             impact on the target, spread of its rows, share of rows
    WeightOfEvidenceEncoder   log ratio of the shares of both labels
    StatisticEncoder          statistics of the target, or of other columns
    GradientEncoder           gradients and hessians, as LightGBM orders categories
    CountEncoder              how often a category occurs
    OrdinalEncoder            an integer, by value, frequency, mean of the target or at random
    OneHotEncoder             a column of zeros and ones for each category
    HashingEncoder            a hash of the value
    ClusterEncoder            the cluster of similar categories
    NumberFiller              missing numbers by the mean of their group
    TunedEncoderCV            one of these, with the smoothing that held-out rows choose at each fit

Encoders of several columns together
    CooccurrenceEncoder       which categories of other columns occur in the same rows
    SpectralEncoder           singular vectors of the one-hot matrix
    FactorizationEncoder      products of factors, fitted to the target
    ProximityEncoder          votes of training rows that agree with the row

Schemes, values of `cv`: which rows a training row may see
    KFold, GroupKFold         other folds: of random rows, of values, of groups
    TimeFolds                 earlier folds, by age if asked for
    LeaveOneOut               all other rows
    Ordered                   earlier rows, in a random order or in time
    Holdout                   a calibration subset
    Greedy                    all rows: leaks, and warns of it

Smoothings, values of `smooth`: how a mean is shrunk towards the prior
    MEstimate, Sigmoid        by the number of rows
    EmpiricalBayes            by the variance of the category ("auto")
    JamesStein                one weight for all categories
    PartialPooling, GLMM      by a model of categories and rows

Hierarchies, values of `hierarchy`: coarser categories as priors
    Prefixes, Parts, Bits     of text, of separated text, of integers and addresses

Estimators
    VoteClassifier, VoteRegressor                           encodings as votes
    ProximityClassifier, ProximityRegressor                 votes of training rows
    ConvexBlend, SquaredErrorBlend                          shares of several models' predictions

Functions
    encode_dataset, transform_dataset   files of any size
    leak_report                         a test whether training encodings reveal the target of their rows
    drift_dataset                       comparison of new rows in files with the training rows
    cross_val_transform                 encodings for nested cross-validation, fold by fold
    tune                                smoothings, priors and folds, by held-out likelihood
    choose_interactions, interactions   conjunctions of columns: chosen, or all of them
    load                                an encoder that its method `save` wrote
    skops_types                         classes to trust in files of skops and MLflow
    roc_auc_score, roc_curve            exact, many scores at once
    blend_matrix                        blends of all pairs of predictions

Others
    MergeableStatistic        a statistic of your own for StatisticEncoder
    LeakWarning, UnseenWarning

There are also the command `gpu-encode` (``python -m gpu_encode``), `gpu_encode.accel`, which serves scikit-learn's
encoders without a change of code, and `gpu_encode.plots` for pictures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_encode.seam.loading import LOADING

if TYPE_CHECKING:
    from gpu_encode.encoders.catboost import CatBoostEncoder
    from gpu_encode.encoders.count import CountEncoder
    from gpu_encode.encoders.gradient import GradientEncoder
    from gpu_encode.encoders.hashing import HashingEncoder
    from gpu_encode.encoders.impact import ImpactEncoder
    from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
    from gpu_encode.encoders.ordinal.encoder import OrdinalEncoder
    from gpu_encode.encoders.statistic import StatisticEncoder
    from gpu_encode.encoders.target import TargetEncoder
    from gpu_encode.encoders.weight_of_evidence import WeightOfEvidenceEncoder
    from gpu_encode.fitting.columns import interactions
    from gpu_encode.formulas.auc import roc_auc_score, roc_curve
    from gpu_encode.formulas.glmm.smoothing import GLMM
    from gpu_encode.formulas.mergeable import MergeableStatistic
    from gpu_encode.formulas.smoothing import EmpiricalBayes, JamesStein, MEstimate, PartialPooling, Sigmoid
    from gpu_encode.methods.cluster.encoder import ClusterEncoder
    from gpu_encode.methods.factors.cooccurrence import CooccurrenceEncoder
    from gpu_encode.methods.factors.spectral import SpectralEncoder
    from gpu_encode.methods.factors.tensor import FactorizationEncoder
    from gpu_encode.methods.number_filler import NumberFiller
    from gpu_encode.methods.proximity.encoder import ProximityEncoder
    from gpu_encode.methods.proximity.estimators import ProximityClassifier, ProximityRegressor
    from gpu_encode.methods.votes.blend_matrix import blend_matrix
    from gpu_encode.methods.votes.blends import ConvexBlend
    from gpu_encode.methods.votes.classifier import VoteClassifier
    from gpu_encode.methods.votes.regressor import VoteRegressor
    from gpu_encode.methods.votes.squared_error_blend import SquaredErrorBlend
    from gpu_encode.scale.files.encoding import encode_dataset
    from gpu_encode.scale.files.new_rows import drift_dataset, transform_dataset
    from gpu_encode.schemes import Greedy, GroupKFold, Holdout, KFold, LeaveOneOut, Ordered, TimeFolds
    from gpu_encode.storage import load
    from gpu_encode.storage.trusted_types import skops_types
    from gpu_encode.study.cross_validation import cross_val_transform
    from gpu_encode.study.leaks import leak_report
    from gpu_encode.study.tuning import choose_interactions, tune
    from gpu_encode.study.tuning.estimator import TunedEncoderCV
    from gpu_encode.tables.categories.hierarchy import Bits, Parts, Prefixes
    from gpu_encode.words.notices import LeakWarning, UnseenWarning

__version__ = "0.1.0"

_HOME = {
    "CatBoostEncoder": "encoders.catboost",
    "ClusterEncoder": "methods.cluster.encoder",
    "CooccurrenceEncoder": "methods.factors.cooccurrence",
    "ConvexBlend": "methods.votes.blends",
    "CountEncoder": "encoders.count",
    "FactorizationEncoder": "methods.factors.tensor",
    "GradientEncoder": "encoders.gradient",
    "HashingEncoder": "encoders.hashing",
    "ImpactEncoder": "encoders.impact",
    "NumberFiller": "methods.number_filler",
    "OneHotEncoder": "encoders.one_hot.encoder",
    "OrdinalEncoder": "encoders.ordinal.encoder",
    "SpectralEncoder": "methods.factors.spectral",
    "SquaredErrorBlend": "methods.votes.squared_error_blend",
    "StatisticEncoder": "encoders.statistic",
    "TargetEncoder": "encoders.target",
    "VoteClassifier": "methods.votes.classifier",
    "VoteRegressor": "methods.votes.regressor",
    "WeightOfEvidenceEncoder": "encoders.weight_of_evidence",
    **dict.fromkeys(("Bits", "Parts", "Prefixes"), "tables.categories.hierarchy"),
    **dict.fromkeys(("Greedy", "GroupKFold", "Holdout", "KFold", "LeaveOneOut", "Ordered", "TimeFolds"), "schemes"),
    "GLMM": "formulas.glmm.smoothing",
    "MergeableStatistic": "formulas.mergeable",
    "cross_val_transform": "study.cross_validation",
    "drift_dataset": "scale.files.new_rows",
    "encode_dataset": "scale.files.encoding",
    "transform_dataset": "scale.files.new_rows",
    "interactions": "fitting.columns",
    **dict.fromkeys(("EmpiricalBayes", "JamesStein", "MEstimate", "PartialPooling", "Sigmoid"), "formulas.smoothing"),
    **dict.fromkeys(("LeakWarning", "UnseenWarning"), "words.notices"),
    **dict.fromkeys(("ProximityClassifier", "ProximityRegressor"), "methods.proximity.estimators"),
    "ProximityEncoder": "methods.proximity.encoder",
    "leak_report": "study.leaks",
    "load": "storage",
    "skops_types": "storage.trusted_types",
    "blend_matrix": "methods.votes.blend_matrix",
    **dict.fromkeys(("roc_auc_score", "roc_curve"), "formulas.auc"),
    **dict.fromkeys(("choose_interactions", "tune"), "study.tuning"),
    "TunedEncoderCV": "study.tuning.estimator",
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
    "NumberFiller",
    "OneHotEncoder",
    "Ordered",
    "OrdinalEncoder",
    "PartialPooling",
    "Parts",
    "Prefixes",
    "ProximityClassifier",
    "ProximityEncoder",
    "ProximityRegressor",
    "Sigmoid",
    "SpectralEncoder",
    "SquaredErrorBlend",
    "StatisticEncoder",
    "TargetEncoder",
    "TimeFolds",
    "TunedEncoderCV",
    "UnseenWarning",
    "VoteClassifier",
    "VoteRegressor",
    "WeightOfEvidenceEncoder",
    "blend_matrix",
    "choose_interactions",
    "cross_val_transform",
    "drift_dataset",
    "encode_dataset",
    "interactions",
    "leak_report",
    "load",
    "roc_auc_score",
    "roc_curve",
    "skops_types",
    "transform_dataset",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use: scikit-learn alone takes a second to import."""
    if name in _HOME:
        with LOADING:
            return getattr(import_module(f"gpu_encode.{_HOME[name]}"), name)
    if name in ("accel", "engines", "export", "parts", "plots"):
        with LOADING:
            return import_module(f"gpu_encode.{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
