"""Save and load fitted encoders: a ZIP file with Arrow arrays and JSON, never pickle."""

from os import PathLike
from pathlib import Path
from typing import Any

from gpu_encode.storage import archive, encoders
from gpu_encode.words.terminal import one_line, printable

# Errors of Python whose messages say nothing of a file.
INTERNAL = (LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RuntimeError, MemoryError)


def save(encoder: Any, path: "str | PathLike[str]") -> None:
    """Write a fitted encoder to one file; after an error there is no part of a file.

    Parameters
    ----------
    encoder : encoder
    path : path
        The file; an older file of this name is replaced at the end.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the encoder is not fitted.
    TypeError
        If a parameter that `transform` needs cannot be written, such as a smoothing of the user's own class.

    Warns
    -----
    UserWarning
        If a parameter that only matters for training cannot be written: a scikit-learn splitter, splits or fold numbers
        for single rows, a random generator.  The loaded encoder has the default of this parameter.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gpu_encode
    >>> encoder = gpu_encode.TargetEncoder(smooth=None).fit([["a"], ["b"], ["a"]], [0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     encoder.save(Path(folder, "encoder.model"))
    ...     gpu_encode.load(Path(folder, "encoder.model")).transform([["a"], ["b"]]).ravel().tolist()
    [0.5, 1.0]
    """
    with archive.whole_file(Path(path)) as file, archive.Writer(file) as writer:
        writer.finish(encoders.describe(encoder, writer))


def save_unfitted(encoder: Any, path: "str | PathLike[str]") -> None:
    """Write the class and the parameters of an encoder to a file; `load` then gives an unfitted encoder."""
    with archive.whole_file(Path(path)) as file, archive.Writer(file) as writer:
        writer.finish(encoders.describe_unfitted(encoder, writer))


def load(path: "str | PathLike[str]") -> Any:
    """Read an encoder that `save` wrote, on any machine, with a GPU or without.

    The content of the file is checked, and nothing in it is ever executed.

    Parameters
    ----------
    path : path

    Returns
    -------
    encoder
        A fitted encoder; its `transform` gives the same bits as that of the saved encoder.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model, is damaged, or has a format that is newer than this release can read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gpu_encode import TargetEncoder, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     TargetEncoder(smooth=None).fit([["a"], ["b"]], [1.0, 2.5]).save(Path(folder) / "codes")
    ...     load(Path(folder) / "codes").transform([["b"]]).tolist()
    [[2.5]]
    """
    if Path(path).is_dir():
        raise IsADirectoryError(
            f"{printable(path)} is a folder, and no model. gpu-encode transform --model and transform_dataset take the "
            "folders that tables on disk make."
        )
    with Path(path).open("rb") as file:
        try:
            reader = archive.Reader(file)
            encoder = encoders.rebuild(reader)
            reader.check_all_used()
        except archive.UnreadableError as reason:
            raise ValueError(f"{printable(path)} {reason}") from None
        except Exception as reason:  # the errors of a damaged file's many readers have no common type
            said = one_line(reason).rstrip(".")
            if isinstance(reason, INTERNAL):
                said = f"its parts do not fit together ({type(reason).__name__}: {said})"
            raise ValueError(f"{printable(path)} is damaged: {said}. Save the encoder again.") from reason
    return encoder
