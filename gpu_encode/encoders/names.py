"""Column names: those that scikit-learn compares, and those of the output."""

from typing import Any

from gpu_encode import errors
from gpu_encode.frames import Frame
from gpu_encode.model import Model


def lacks_training_only(frame: Frame, model: Model) -> bool:
    """Whether a frame has all fitted columns, in order, but for those that a scheme read."""
    names, absent = model.feature_names, model.selection.training_only
    if not absent or names is None or frame.names is None:
        return bool(absent) and frame.n_columns == model.n_features - len(absent)
    return frame.names == [name for position, name in enumerate(names) if position not in absent]


def frame_for_names(X: Any, frame: Frame) -> Any:
    """Something that scikit-learn can read column names off."""
    if frame.kind == "pyarrow_batch":
        return frame.native.schema.empty_table()
    return X if frame.kind == "numpy" else frame.native


def check_unique(names: list[str]) -> None:
    """Raise ValueError if two outputs have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise errors.repeated_output(name)
        seen.add(name)
