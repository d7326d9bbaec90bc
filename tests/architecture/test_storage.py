"""Files can hold every encoder and everything that it contains, and loading creates objects of no other classes."""

import gpu_encode
from gpu_encode.storage.encoders import ENCODERS
from gpu_encode.storage.parameters import CLASSES

SCHEMES = "FoldNumbers Greedy GroupKFold Holdout KFold LeaveOneOut Ordered TimeFolds"
SMOOTHINGS = "EmpiricalBayes GLMM JamesStein MEstimate NoSmoothing PartialPooling Sigmoid"
STATISTICS = "CountRatios Counts Evidence GradientRatios Hashes Impact OneHot Ranks Summaries TargetRatios"
HIERARCHIES = "Bits Parts Prefixes"


def test_every_encoder_can_be_saved():
    assert set(ENCODERS) == {name for name in gpu_encode.__all__ if name.endswith("Encoder")}


def test_what_a_file_may_name_is_said_here():
    # The library finds these classes as subclasses without subclasses: a class that gets a subclass would drop out.
    assert sorted(CLASSES) == sorted(f"{SCHEMES} {SMOOTHINGS} {STATISTICS} {HIERARCHIES}".split())
