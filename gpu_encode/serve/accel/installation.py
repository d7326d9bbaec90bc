"""`install` and `uninstall`: they act at once if scikit-learn's encoders are loaded, otherwise when they are loaded."""

import atexit
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Literal

from gpu_encode.seam.devices import DEVICES
from gpu_encode.serve.accel.calls import LOGGER, RECORDS, Report
from gpu_encode.serve.accel.settings import FEWEST_ROWS, SETTINGS
from gpu_encode.words.errors.parameters import check_option

WORDS = ("0", "", "1", "report", "verbose")
# What was said of variables: in a virtual environment with PYTHONPATH set, Python runs the line of the .pth file twice.
REFUSED: set[str] = set()


@dataclass(frozen=True)
class Library:
    """A library whose encoders can be served.

    Parameters
    ----------
    name : str
    package : str
        The package that has its version.
    module : str
        The module whose import loads its encoders.
    patches : str
        Our module that replaces their methods.
    tested : tuple of str
        Prefixes of the versions that were tested.
    """

    name: str
    package: str
    module: str
    patches: str
    tested: tuple[str, ...]

    def exchange(self) -> None:
        """Replace the methods of the encoders, if the version of the library was tested."""
        version = import_module(self.package).__version__
        if version.startswith(self.tested):
            import_module(self.patches).exchange()
        else:
            sys.stderr.write(
                f"gpu_encode.accel: not tested with {self.name} {version}, which serves every call itself.\n"
            )


LIBRARIES = (
    Library("scikit-learn", "sklearn", "sklearn.preprocessing", "gpu_encode.serve.accel.patches", ("1.9.",)),
    Library(
        *("category_encoders", "category_encoders", "category_encoders"),
        "gpu_encode.serve.accel.category_encoders",
        ("2.11.",),
    ),
)


class AfterImport(MetaPathFinder):
    """Replaces the methods as soon as a library's encoders are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module as usual, and add a step to its loading."""
        library = next((library for library in LIBRARIES if library.module == fullname), None)
        for finder in [] if library is None else sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if library is not None and spec is not None and spec.loader is not None:
                spec.loader = ThenExchange(spec.loader, library)
                return spec
        return None


class ThenExchange(Loader):
    """Loads a module, then replaces the methods."""

    def __init__(self, loader: Loader, library: Library) -> None:
        self.loader, self.library = loader, library

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module with its own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with its own loader, then replace the methods."""
        self.loader.exec_module(module)
        self.library.exchange()


_AFTER_IMPORT = AfterImport()
_HANDLER = logging.StreamHandler()
_HANDLER.setFormatter(logging.Formatter("%(name)s: %(message)s"))


def install(
    *,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    fewest_rows: int = FEWEST_ROWS,
    verbose: bool = False,
) -> None:
    """Let this library serve encoders of scikit-learn and of category_encoders.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the sums and training encodings of a TargetEncoder are computed.
    fewest_rows : int, default=20000
        Smaller tables are left to the original library, which is faster for them.
    verbose : bool, default=False
        Log each call to stderr: which library served it, and if not this one, why.

    Notes
    -----
    The classes stay the same, and their methods are replaced.  So encoders that exist already, that are unpickled
    later, or whose classes were imported before are served, too.  A second call changes the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from gpu_encode import accel
    >>> accel.install(fewest_rows=0)
    >>> OrdinalEncoder().fit_transform(np.array([["b"], ["a"], ["b"], ["a"], ["b"]], dtype=object)).ravel()
    array([1., 0., 1., 0., 1.])
    >>> accel.report().n_served
    1
    >>> accel.uninstall()
    """
    check_option("install", "device", device, DEVICES)
    SETTINGS.device, SETTINGS.fewest_rows = device, fewest_rows
    LOGGER.removeHandler(_HANDLER)
    if verbose:
        LOGGER.addHandler(_HANDLER)
        LOGGER.setLevel(logging.INFO)
    for library in LIBRARIES:
        if library.module in sys.modules:
            library.exchange()
    if _AFTER_IMPORT not in sys.meta_path:
        sys.meta_path.insert(0, _AFTER_IMPORT)


def uninstall() -> None:
    """Put the original methods back when the last running call has ended, and forget the recorded calls."""
    if _AFTER_IMPORT in sys.meta_path:
        sys.meta_path.remove(_AFTER_IMPORT)
    for library in LIBRARIES:
        if library.patches in sys.modules:
            sys.modules[library.patches].EXCHANGES.restore()
    LOGGER.removeHandler(_HANDLER)
    RECORDS.clear()


def report() -> Report:
    """Say which calls were served, on which device and how fast, and which were not, and why.

    Returns
    -------
    Report
        As text, a table; `lines` has the numbers.
    """
    return RECORDS.report()


def install_by_environment() -> None:
    """Follow the variable GPU_ENCODE_ACCEL: "0" does nothing, "1" installs, "report" and "verbose" also report.

    If the variable is set, a line in a .pth file of the installed package calls this in each process.  Any other
    word is told in one line, and does nothing: an error would be a traceback at each start of Python.
    """
    word, rows = os.environ.get("GPU_ENCODE_ACCEL", "0"), os.environ.get("GPU_ENCODE_ACCEL_ROWS", str(FEWEST_ROWS))
    if word not in WORDS:
        refuse_variable("GPU_ENCODE_ACCEL", word, f"one of {', '.join(map(repr, WORDS))}")
    elif not (rows.isascii() and rows.isdigit()):
        refuse_variable("GPU_ENCODE_ACCEL_ROWS", rows, "a number of rows")
    elif word not in ("", "0"):
        install_and_report(word, int(rows))


def refuse_variable(name: str, value: str, expected: str) -> None:
    """Say in one line that a variable has a wrong value, and that nothing is served."""
    said = f"gpu_encode.accel: {name}={value!r} is not {expected}: nothing is served."
    if said not in REFUSED:
        sys.stderr.write(f"{said}\n")
    REFUSED.add(said)


def install_and_report(word: str, fewest_rows: int) -> None:
    """Install by a word of GPU_ENCODE_ACCEL; unless it is "1", report at the end of the process."""
    install(fewest_rows=fewest_rows, verbose=word == "verbose")
    # In a virtual environment with PYTHONPATH set, Python runs the line twice.
    atexit.unregister(write_report)
    if word != "1":
        atexit.register(write_report)


def write_report() -> None:
    """Write the table of calls to stderr."""
    sys.stderr.write(f"{report()}\n")
