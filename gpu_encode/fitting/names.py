"""Column names: those that scikit-learn compares, and those of the output."""

from typing import Any

import numpy as np

from gpu_encode.errors.columns import repeated_output
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.frames import Frame, Pieces, parts_of


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
            raise repeated_output(name)
        seen.add(name)


def remember_names(encoder: Any, model: Model) -> None:
    """Set the columns that scikit-learn compares, of a model of rows that are not at hand."""
    if model.feature_names is not None:
        encoder.feature_names_in_ = np.array(model.feature_names, dtype=object)
    elif hasattr(encoder, "feature_names_in_"):
        del encoder.feature_names_in_
    encoder.n_features_in_ = model.n_features


def encoded_names(model: Model, names: Any) -> list[str]:
    """Names of the encoded columns and the indicators."""
    selection = model.selection.named([str(name) for name in names])
    found = [
        f"{entry.name}{target_part}{suffix}{wide}"
        for entry, rule in zip(selection.entries, model.rules, strict=True)
        for number, info in enumerate(model.targets)
        for target_part in target_parts(model, number, info)
        for suffix in rule.statistic.of_target(number).suffixes()
        for wide in columns_per_output(model)
    ]
    flags = [f"{entry.name}_{each}" for entry in selection.entries for each in model.indicators]
    return [*found, *flags]


def target_parts(model: Model, number: int, info: TargetInfo) -> list[str]:
    """Parts of an output name that name the target and the class, as they apply."""
    alone = len(model.targets) == 1 and not model.rules[0].statistic.names_targets
    target = "" if alone else f"_{info.name if info.name is not None else number}"
    if info.kind != "multiclass" or info.classes is None:
        return [target]
    first = model.statistics[0][number].measured.first_output
    return [f"{target}{part}" for part in model.rules[0].statistic.label_parts(info.classes, first)]


def columns_per_output(model: Model) -> list[str]:
    """Suffixes of the columns per output: those of folds or permutations that stand apart."""
    views = model.statistics[0][0].n_views
    if views > 1:
        return [f"_fold{i}" for i in range(views)]
    return [f"_perm{i}" for i in range(model.permutations)] if model.permutations > 1 else [""]
