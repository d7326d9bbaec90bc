"""A model as JSON and arrays, and back, with every size and number checked against the others."""

from typing import Any

import numpy as np

from cpu_fallback.exact import Limbs
from gpu_encode.cells import Layout, Window
from gpu_encode.formula import Formula
from gpu_encode.keys import Key
from gpu_encode.model import Model, TargetInfo
from gpu_encode.selection import Selection
from gpu_encode.smoothing import Smoothing
from gpu_encode.statistics import Measured, Statistics
from gpu_encode.storage.archive import Reader, Writer
from gpu_encode.storage.fields import count, counts, field, listed, option, paired
from gpu_encode.storage.keys import describe_entry, describe_key, read_entry, read_key
from gpu_encode.storage.parameters import decode, decode_array, encode, encode_array
from gpu_encode.targets import KINDS, counted_classes

LARGEST = 1 << 31
# Products of three float64 lie between the binary places -3300 and 3100, at 32 to a digit.
FURTHEST_DIGIT = 128
FORMULA = ("smoothing", "prior", "unseen", "missing", "min_count")
MISSING_POLICIES = ("category", "prior", "nan", "error")
DTYPES = ("float64", "float32")
# Classes before this one have no output: a binary target has one, and drop="first" leaves one out.
FIRST_OUTPUTS = {"binary": (1, 1), "continuous": (0, 0), "multiclass": (0, 1)}


def describe(model: Model, writer: Writer) -> dict[str, Any]:
    """Give a model as JSON; its arrays go to the writer."""
    selection = model.selection
    return {
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "entries": [describe_entry(entry, writer) for entry in selection.entries],
        "passed": selection.passed,
        "training_only": selection.training_only,
        "everything": selection.everything,
        "targets": [describe_target(info, writer) for info in model.targets],
        "keys": [describe_key(key, writer) for key in model.keys],
        "statistics": [[describe_statistics(each, writer) for each in entry] for entry in model.statistics],
        "formulas": [{name: encode(getattr(each, name), writer) for name in FORMULA} for each in model.formulas],
        "unknown_is_error": model.unknown_is_error,
        "indicators": model.indicators,
        "dtype": model.dtype,
        "permutations": model.permutations,
    }


def describe_target(info: TargetInfo, writer: Writer) -> dict[str, Any]:
    """Give what is known of a target as JSON."""
    classes = None if info.classes is None else encode_array(info.classes, writer)
    return {"name": info.name, "kind": info.kind, "classes": classes}


def describe_statistics(statistics: Statistics, writer: Writer) -> dict[str, Any]:
    """Give sums as JSON."""
    statistics = statistics.carried()
    measured = statistics.measured
    windows = (measured.layout.count, measured.layout.total, measured.layout.square)
    return {
        "cells": encode_array(statistics.cells, writer),
        "windows": [None if each is None else [each.low, each.width, each.whole] for each in windows],
        "first_output": measured.first_output,
        "added": statistics.added,
    }


def rebuilt(document: dict[str, Any], reader: Reader) -> Model:
    """Give the model that `describe` described; ValueError says what does not fit."""
    n_features = count(document, "n_features", 1, LARGEST)
    selection = read_selection(document, n_features, reader)
    targets = [read_target(each, reader) for each in listed(document, "targets", dict)]
    keyed = paired(selection.entries, listed(document, "keys", dict))
    keys = [read_key(each, entry, reader) for entry, each in keyed]
    formulas = [read_formula(each, reader) for _, each in paired(keys, listed(document, "formulas", dict))]
    statistics = [
        [read_statistics(each, key, info, formula, reader) for info, each in paired(targets, per_target)]
        for (key, per_target), formula in zip(paired(keys, listed(document, "statistics", list)), formulas, strict=True)
    ]
    check_alike(statistics)
    return Model(
        selection,
        n_features,
        read_names(document, "feature_names", n_features),
        targets,
        keys,
        statistics,
        formulas,
        unknown_is_error=field(document, "unknown_is_error", bool),
        indicators=field(document, "indicators", bool),
        dtype=option(document, "dtype", DTYPES),
        permutations=count(document, "permutations", 1, LARGEST),
    )


def read_names(document: Any, name: str, n_features: int) -> list[str] | None:
    """Read the names of all columns, if they have names."""
    if field(document, name, list, None) is None:
        return None
    names = listed(document, name, str)
    if len(names) != n_features:
        raise ValueError(f"it has {len(names)} names for {n_features} columns")
    return names


def check_alike(statistics: list[list[Statistics]]) -> None:
    """Raise ValueError unless all entries have the same outputs."""
    outputs = {tuple((each.n_views, each.measured.first_output) for each in entry) for entry in statistics}
    views = {view for entry in outputs for view, _ in entry}
    if len(outputs) != 1 or len(views) != 1 or 0 in views:
        raise ValueError("it has no columns or no targets, or its columns differ in their outputs")


def read_selection(document: dict[str, Any], n_features: int, reader: Reader) -> Selection:
    """Read which columns are encoded."""
    entries = [read_entry(each, n_features, reader) for each in listed(document, "entries", dict)]
    passed, training_only = (counts(document, name, 0, n_features - 1) for name in ("passed", "training_only"))
    return Selection(entries, passed, training_only, field(document, "everything", bool))


def read_target(document: dict[str, Any], reader: Reader) -> TargetInfo:
    """Read what is known of a target."""
    kind, name = option(document, "kind", KINDS), field(document, "name", str, None)
    described = field(document, "classes", dict, None)
    if kind == "continuous" and described is None:
        return TargetInfo(name, kind, None)
    classes = decode_array(described, reader)
    if kind == "continuous" or classes.ndim != 1 or not len(classes) or (kind == "binary" and len(classes) > 2):
        raise ValueError(f"a {kind} target has class labels of shape {classes.shape}")
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("class labels are not sorted, or one is there twice")
    return TargetInfo(name, kind, classes)


def read_formula(document: dict[str, Any], reader: Reader) -> Formula:
    """Read how sums become codes."""
    smoothing, prior, unseen, _, least = (decode(document[name], reader) for name in FORMULA)
    if not isinstance(smoothing, Smoothing):
        raise ValueError(f"{type(smoothing).__name__} is no smoothing")
    smoothing.check()
    if not isinstance(prior, (float, int, np.floating, np.integer)) and prior not in ("mean", "category_mean"):
        raise ValueError(f"the prior is {prior!r}")
    if type(least) is not float or not (unseen is None or type(unseen) is float):
        raise ValueError("min_count, or the code of unknown values, is no number")
    return Formula(smoothing, prior, unseen, option(document, "missing", MISSING_POLICIES), least)


def read_statistics(document: Any, key: Key, info: TargetInfo, formula: Formula, reader: Reader) -> Statistics:
    """Read the sums of one entry and target."""
    layout = Layout(*(read_window(each) for each in listed(document, "windows", list, None)))  # type: ignore[arg-type]
    powers = [power for _, power, _ in layout.measures()]
    expected = [[0]] if info.classes is not None else [[0, 1, 2], [0, 1]][: 1 if formula.smoothing.needs_squares else 2]
    if powers not in expected:
        raise ValueError(f"the sums do not fit a {info.kind} target and {type(formula.smoothing).__name__}")
    measured = Measured(layout, info.classes is not None, count(document, "first_output", *FIRST_OUTPUTS[info.kind]))
    n_classes = counted_classes(info.kind, info.classes)
    cells = decode_array(field(document, "cells", dict), reader)
    shape = (key.n_categories + 2, *cells.shape[1:2], n_classes, layout.width)
    if cells.dtype != np.int64 or cells.shape != shape:
        raise ValueError(f"the sums of {key.entry.name!r} are {cells.dtype} of shape {cells.shape}, not {shape}")
    window, _, columns = layout.measures()[0]
    if (Limbs(cells[..., columns], window.low).magnitude()[0] < 0).any():
        raise ValueError(f"a category of {key.entry.name!r} has a negative count")
    return Statistics(cells, measured, count(document, "added", 0, LARGEST))


def read_window(document: list[Any] | None) -> Window | None:
    """Read the digit positions of a sum."""
    if document is None:
        return None
    window = dict(zip(("low", "width", "whole"), document, strict=True))
    low = count(window, "low", -FURTHEST_DIGIT, FURTHEST_DIGIT)
    width, whole = count(window, "width", 1, FURTHEST_DIGIT), field(window, "whole", bool)
    if whole and (low, width) != (0, 1):
        raise ValueError(f"a whole number is kept at the digits {low} to {low + width}")
    return Window(low, width, whole)
