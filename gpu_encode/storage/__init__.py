"""Save and load fitted encoders: one ZIP of Arrow arrays and JSON, never pickle."""

from os import PathLike
from pathlib import Path
from typing import Any

from gpu_encode.storage import archive, encoders


def save(encoder: Any, path: "str | PathLike[str]") -> None:
    """Write a fitted encoder to one file, whole or not at all.

    Parameters
    ----------
    encoder : encoder
    path : path
        The file; a file that is there already is replaced at the end.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the encoder is not fitted.
    TypeError
        If a parameter that `transform` needs cannot be written, such as a smoothing of the user's own class.

    Warns
    -----
    UserWarning
        For a parameter that only matters for training and cannot be written: a scikit-learn splitter, splits or fold
        numbers row by row, a random generator.  The loaded encoder has its default instead.

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


def load(path: "str | PathLike[str]") -> Any:
    """Read an encoder that `save` wrote, on any machine, with a GPU or without.

    The file is checked by its content and nothing in it is ever executed.

    Parameters
    ----------
    path : path

    Returns
    -------
    encoder
        Fitted; `transform` gives the same bits as the saved encoder's.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no model, is damaged, or was written in a format newer than this release reads.

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
    with Path(path).open("rb") as file:
        try:
            reader = archive.Reader(file)
            encoder = encoders.rebuild(reader)
            reader.check_all_used()
        except archive.UnreadableError as reason:
            raise ValueError(f"{path} {reason}") from None
        except Exception as reason:  # what a damaged file makes its many readers raise has no common type
            raise ValueError(f"{path} is damaged: {archive.one_line(reason)}. Save the encoder again.") from reason
    return encoder
