"""Categorical columns become numbers learned from the target: exact, leak-free, the same bits on every machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_encode.datasets.encoding import encode_dataset
    from gpu_encode.datasets.transforming import transform_dataset
    from gpu_encode.encoders.target import TargetEncoder
    from gpu_encode.hierarchy import Bits, Parts, Prefixes
    from gpu_encode.schemes import Greedy, GroupKFold, Holdout, KFold, LeaveOneOut, Ordered, TimeFolds
    from gpu_encode.selection import interactions
    from gpu_encode.smoothing import EmpiricalBayes, JamesStein, MEstimate, PartialPooling, Sigmoid
    from gpu_encode.storage import load

__version__ = "0.1.0"

_HOME = {
    "TargetEncoder": "encoders.target",
    **dict.fromkeys(("Bits", "Parts", "Prefixes"), "hierarchy"),
    **dict.fromkeys(("Greedy", "GroupKFold", "Holdout", "KFold", "LeaveOneOut", "Ordered", "TimeFolds"), "schemes"),
    "encode_dataset": "datasets.encoding",
    "transform_dataset": "datasets.transforming",
    "interactions": "selection",
    **dict.fromkeys(("EmpiricalBayes", "JamesStein", "MEstimate", "PartialPooling", "Sigmoid"), "smoothing"),
    "load": "storage",
}

__all__ = [
    "Bits",
    "EmpiricalBayes",
    "Greedy",
    "GroupKFold",
    "Holdout",
    "JamesStein",
    "KFold",
    "LeaveOneOut",
    "MEstimate",
    "Ordered",
    "PartialPooling",
    "Parts",
    "Prefixes",
    "Sigmoid",
    "TargetEncoder",
    "TimeFolds",
    "encode_dataset",
    "interactions",
    "load",
    "transform_dataset",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use: scikit-learn alone takes a second to import."""
    if name in _HOME:
        return getattr(import_module(f"gpu_encode.{_HOME[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
