"""Pictures of encoders, in the manner of scikit-learn's displays; matplotlib draws them.

Each has a class method that computes it (`from_estimator`, `from_tuned`), a method ``plot(ax=None)`` that draws it into
axes, or into a figure of its own, and afterwards the attributes `ax_` and `figure_`.  No state of pyplot is touched, so
that nothing has to be closed.

    ShrinkageDisplay      encodings against counts, and how smoothing moved them from the means
    TrainingDisplay       training encodings against those of new rows
    CalibrationDisplay    means of held-out rows against their encodings
    JointKeyDisplay       encodings of a joint key of two columns, as a heat map
    TuningDisplay         what `tune` found, smoothing by smoothing
    HierarchyDisplay      levels of a hierarchy, as a tree

Examples
--------
>>> from gpu_encode import TargetEncoder
>>> from gpu_encode.plots import ShrinkageDisplay
>>> encoder = TargetEncoder(smooth=1.0).fit([["a"], ["a"], ["b"]], [0, 1, 1])
>>> ShrinkageDisplay.from_estimator(encoder).encodings.tolist()  # doctest: +SKIP
[0.5555555555555556, 0.8333333333333334]
"""

from gpu_encode.study.plots.calibration import CalibrationDisplay
from gpu_encode.study.plots.hierarchy import HierarchyDisplay
from gpu_encode.study.plots.joint_key import JointKeyDisplay
from gpu_encode.study.plots.shrinkage import ShrinkageDisplay
from gpu_encode.study.plots.training import TrainingDisplay
from gpu_encode.study.plots.tuning import TuningDisplay

__all__ = [
    "CalibrationDisplay",
    "HierarchyDisplay",
    "JointKeyDisplay",
    "ShrinkageDisplay",
    "TrainingDisplay",
    "TuningDisplay",
]
