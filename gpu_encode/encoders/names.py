"""Column names: those that scikit-learn compares, and those of the output."""

from typing import Any

import numpy as np

from gpu_encode import errors
from gpu_encode.frames import Frame, Pieces, parts_of
from gpu_encode.model import Model


def lacks_training_only(frame: Frame | Pieces, model: Model) -> bool:
    """Whether a frame has all fitted columns, in order, but for those that a scheme read."""
    names, absent = model.feature_names, model.selection.training_only
    if not absent or names is None or frame.names is None:
        return bool(absent) and frame.n_columns == model.n_features - len(absent)
    return frame.names == [name for position, name in enumerate(names) if position not in absent]


def frame_for_names(X: Any, frame: Frame | Pieces) -> Any:
    """Something that scikit-learn can read column names off: X itself, or the first of several tables."""
    first = parts_of(frame)[0]
    if first.kind == "pyarrow_batch":
        return first.native.schema.empty_table()
    return X if first.kind == "numpy" else first.native


def own_names(frame: Frame | Pieces, model: Model) -> list[str] | None:
    """Names of a frame's own columns where the model knows none; the frame has all columns, in the order of the fit."""
    return frame.names if model.feature_names is None and frame.n_columns == model.n_features else None


def check_unique(names: list[str]) -> None:
    """Raise ValueError if two outputs have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise errors.repeated_output(name)
        seen.add(name)


def remember_names(encoder: Any, model: Model) -> None:
    """Set the columns that scikit-learn compares, of a model of rows that are not at hand."""
    if model.feature_names is not None:
        encoder.feature_names_in_ = np.array(model.feature_names, dtype=object)
    elif hasattr(encoder, "feature_names_in_"):
        del encoder.feature_names_in_
    encoder.n_features_in_ = model.n_features
