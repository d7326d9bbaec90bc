"""scikit-learn's and category_encoders' encoders, served by this library without a change of code.

``python -m gpu_encode.accel script.py`` runs a script, ``%load_ext gpu_encode.accel`` serves a notebook, and
`install` serves the program that calls it.  `TargetEncoder`, `OneHotEncoder` and `OrdinalEncoder` of scikit-learn, and
the classes of category_encoders, then compute with this library where they can, with their own numbers, attributes and
messages.
"""

from gpu_encode.serve.accel.calls import Line, Report
from gpu_encode.serve.accel.installation import install, install_by_environment, report, uninstall

__all__ = ["Line", "Report", "install", "install_by_environment", "report", "uninstall"]


def load_ipython_extension(_: object) -> None:
    """Serve a notebook: ``%load_ext gpu_encode.accel``."""
    install()


def unload_ipython_extension(_: object) -> None:
    """Serve it no longer: ``%unload_ext gpu_encode.accel``."""
    uninstall()
