"""scikit-learn's and category_encoders' encoders, computed by this library without a change of the user's code.

``python -m gpu_encode.accel script.py`` runs a script with it, ``%load_ext gpu_encode.accel`` turns it on in a
notebook, and `install` in the program that calls it.  `TargetEncoder`, `OneHotEncoder` and `OrdinalEncoder` of
scikit-learn, and the classes of category_encoders, then use this library where they can; numbers, attributes and
messages stay their own.
"""

from gpu_encode.serve.accel.calls import Line, Report
from gpu_encode.serve.accel.installation import install, install_by_environment, report, uninstall

__all__ = ["Line", "Report", "install", "install_by_environment", "report", "uninstall"]


def load_ipython_extension(_: object) -> None:
    """Turn it on in a notebook: ``%load_ext gpu_encode.accel``."""
    install()


def unload_ipython_extension(_: object) -> None:
    """Turn it off again: ``%unload_ext gpu_encode.accel``."""
    uninstall()
