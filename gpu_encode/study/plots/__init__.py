"""Pictures of encoders, in the style of scikit-learn's displays; matplotlib draws them.

Each display has a class method that computes it (`from_estimator`, `from_tuned`, `from_search`), and a method
``plot(ax=None)`` that draws it into the given axes, or into a figure of its own, and sets the attributes `ax_` and
`figure_`.  The state of pyplot is not used, so there is nothing to close.

    ShrinkageDisplay      encodings against counts, and how smoothing moved them away from the means
    TrainingDisplay       training encodings against the encodings of new rows
    CalibrationDisplay    mean targets of held-out rows against their encodings
    JointKeyDisplay       encodings of a joint key of two columns, as a heat map
    TuningDisplay         the result of `tune`, smoothing by smoothing
    HierarchyDisplay      levels of a hierarchy, as a tree
    AscentDisplay         scores of weights that are tuned, rise by rise
    ScatterDisplay        two encodings, or two models' predictions, against each other
    SearchDisplay         scores of a grid search, by one or two parameters

Examples
--------
>>> from gpu_encode import TargetEncoder
>>> from gpu_encode.plots import ShrinkageDisplay
>>> encoder = TargetEncoder(smooth=1.0).fit([["a"], ["a"], ["b"]], [0, 1, 1])
>>> ShrinkageDisplay.from_estimator(encoder).encodings.tolist()  # doctest: +SKIP
[0.5555555555555556, 0.8333333333333334]
"""

from gpu_encode.study.plots.ascent import AscentDisplay
from gpu_encode.study.plots.calibration import CalibrationDisplay
from gpu_encode.study.plots.hierarchy import HierarchyDisplay
from gpu_encode.study.plots.joint_key import JointKeyDisplay
from gpu_encode.study.plots.scatter import ScatterDisplay
from gpu_encode.study.plots.search import SearchDisplay
from gpu_encode.study.plots.shrinkage import ShrinkageDisplay
from gpu_encode.study.plots.training import TrainingDisplay
from gpu_encode.study.plots.tuning import TuningDisplay

__all__ = [
    "AscentDisplay",
    "CalibrationDisplay",
    "HierarchyDisplay",
    "JointKeyDisplay",
    "ScatterDisplay",
    "SearchDisplay",
    "ShrinkageDisplay",
    "TrainingDisplay",
    "TuningDisplay",
]
