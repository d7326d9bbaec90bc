"""A model as JSON and arrays, and back; every size and number is checked against the others."""

import json
from dataclasses import asdict, fields, replace
from itertools import product
from typing import Any

import numpy as np

from cpu_fallback.exact import Limbs
from cpu_fallback.types import MISSING, Layout, Window
from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.parameters import check_indicators, list_indicators
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.infrequent import Infrequent
from gpu_encode.formulas.scales import check_scale
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.storage.archive import NUMBER_BYTES, TEXT_BYTES, Reader, Writer
from gpu_encode.storage.json_fields import pair, read_count, read_counts, read_field, read_list, read_option
from gpu_encode.storage.keys import describe_key, describe_spec, read_key, read_spec, read_vocabulary
from gpu_encode.storage.parameters import decode, decode_array, encode, encode_array
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.distributions import Distribution
from gpu_encode.sums.pairs import PairSums
from gpu_encode.sums.targets import KINDS, LABELLED, NO_TARGET, UNDECIDED, counted_classes
from gpu_encode.tables.categories.keys import CategoryIndex, code_missing
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.parameters import MOST_COLUMNS

LARGEST = 1 << 31
# Products of three float64 numbers have binary positions from -3300 to 3100; a digit has 32 of them.
FURTHEST_DIGIT = 128
# Fields of an encoding rule, by their names in files.
RULE = {
    "readout": "statistic",
    "prior": "prior",
    "unseen": "unseen",
    "missing": "missing",
    "min_count": "min_count",
    "scale": "scale",
}
MISSING_POLICIES = ("category", "prior", "nan", "error")
DTYPES = ("float64", "float32")
# By kind of target, the least and the largest number of first classes without an output: a binary target has one such,
# and drop="first" makes one.
FIRST_OUTPUTS = {"binary": (1, 1), "continuous": (0, 0), "multiclass": (0, 1), NO_TARGET: (1, 1)} | dict.fromkeys(
    (UNDECIDED, *LABELLED), (0, 0)
)


def describe(model: Model, writer: Writer) -> dict[str, Any]:
    """Give a model as JSON; its arrays go to the writer."""
    selection, refused = model.selection, [rule.refuses_unknown for rule in model.rules]
    return {
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "entries": [describe_spec(entry, writer) for entry in selection.entries],
        "passed": selection.passed,
        "training_only": selection.training_only,
        "everything": selection.everything,
        "targets": [describe_target(info, writer) for info in model.targets],
        "keys": [describe_key(key, writer) for key in model.keys],
        "statistics": [[describe_sums(sums, writer) for sums in per_target] for per_target in model.statistics],
        "formulas": [describe_rule(rule, writer) for rule in model.rules],
        # If all keys have the same value, it is written once.
        "unknown_is_error": refused if len(set(refused)) > 1 else refused[0],
        "indicators": list(model.indicators),
        "dtype": model.dtype,
        "permutations": model.permutations,
        **({"dates": selection.dates} if selection.dates else {}),
        **({"partial_scheme": model.partial_scheme} if model.partial_scheme else {}),
    } | describe_pairs(model, writer)


def describe_pairs(model: Model, writer: Writer) -> dict[str, Any]:
    """Give the sums of pairs of keys as JSON, with the pairs; an empty document for a model without pairs."""
    if not model.selection.pairs:
        return {}
    sums = [
        {
            "keys": list(pairs.keys),
            "first": encode_array(pairs.first, writer),
            "second": encode_array(pairs.second, writer),
            "n_rows": pairs.n_rows,
            "sums": describe_sums(pairs.sums, writer),
        }
        for pairs in model.pairs
    ]
    return {
        "pairs": [list(pair) for pair in model.selection.pairs],
        "others": model.selection.others,
        "pair_sums": sums,
    }


def read_refusals(document: dict[str, Any], n_keys: int) -> list[bool]:
    """Read for each key whether it refuses unknown values."""
    refused = document.get("unknown_is_error")
    listed: list[Any] = refused if isinstance(refused, list) else [refused] * n_keys
    if len(listed) != n_keys or any(type(one) is not bool for one in listed):
        raise ValueError(f"the field 'unknown_is_error' holds {refused!r}")
    return listed


def describe_rule(rule: EncodingRule, writer: Writer) -> dict[str, Any]:
    """Give an encoding rule as JSON."""
    dropped = {} if rule.drop is None else {"drop": encode(rule.drop, writer)}
    return {name: encode(getattr(rule, field), writer) for name, field in RULE.items()} | {
        "rare": asdict(rule.infrequent or Infrequent()),
        **dropped,
    }


def describe_target(info: TargetInfo, writer: Writer) -> dict[str, Any]:
    """Give the description of a target as JSON."""
    classes = None if info.classes is None else encode_array(info.classes, writer)
    described = {"name": info.name, "kind": info.kind, "classes": classes}
    if info.vocabulary is not None:
        described["vocabulary"] = {"array": writer.add(info.vocabulary.to_arrow()), **info.vocabulary.metadata()}
    return described


def describe_sums(statistics: CategorySums, writer: Writer) -> dict[str, Any]:
    """Give sums as JSON."""
    statistics = statistics.to_canonical()
    spec, counted = statistics.spec, statistics.distribution
    values = {field.name: getattr(counted, field.name) for field in fields(Distribution)} if counted else {}
    return {
        "cells": encode_array(statistics.accumulators, writer),
        "windows": describe_layout(spec.layout),
        "first_output": spec.first_output,
        "added": statistics.added,
        "distribution": counted and {name: encode_array(array, writer) for name, array in values.items()},
    }


def describe_layout(layout: Layout) -> list[Any]:
    """Give the digit positions of sums as JSON."""
    windows = (layout.count, layout.total, layout.square)
    return [None if window is None else [window.low, window.width, window.whole] for window in windows]


def rebuild(document: dict[str, Any], reader: Reader) -> Model:
    """Make the model that `describe` has described; a ValueError says what does not fit."""
    n_features = read_count(document, "n_features", 1, LARGEST)
    # Columns without names get names when they are asked for.
    reader.spend(TEXT_BYTES * n_features)
    selection = read_selection(document, n_features, reader)
    targets = [read_target(described, reader) for described in read_list(document, "targets", dict)]
    keyed = pair(selection.entries, read_list(document, "keys", dict))
    keys = [read_key(described, entry, reader) for entry, described in keyed]
    rules = read_rules(document, len(keys), reader)
    statistics = [
        [
            read_sums(described, key, info, rule.of_target(number), reader)
            for number, (info, described) in enumerate(pair(targets, per_target))
        ]
        for (key, per_target), rule in zip(pair(keys, read_list(document, "statistics", list)), rules, strict=True)
    ]
    check_alike(statistics)
    permutations = read_count(document, "permutations", 1, MOST_COLUMNS)
    # A row of the output has to have room, whatever number of columns the rules ask for.
    reader.spend(NUMBER_BYTES * permutations * count_outputs(statistics, rules))
    names = read_names(document, "feature_names", n_features)
    check_dates(selection, targets, rules, names)
    return Model(
        selection,
        n_features,
        names,
        targets,
        keys,
        statistics,
        rules,
        indicators=read_indicators(document),
        dtype=read_option(document, "dtype", DTYPES),
        permutations=permutations,
        pairs=read_pairs(document, keys, selection.pairs, reader),
        # Only files of models whose new rows see some rows alone have it.
        partial_scheme=read_field({"partial_scheme": "", **document}, "partial_scheme", str),
    )


def count_outputs(statistics: list[list[CategorySums]], rules: list[EncodingRule]) -> int:
    """Count the encodings of a row, of one order."""
    return sum(
        sums.n_views * rule.of_target(number).statistic.n_outputs(sums.shape[2])
        for rule, per_target in zip(rules, statistics, strict=True)
        for number, sums in enumerate(per_target)
    )


def read_pairs(
    document: dict[str, Any], keys: list[CategoryIndex], asked: list[tuple[int, int]], reader: Reader
) -> list[PairSums]:
    """Read the sums of pairs of keys: of all requested pairs, or of none."""
    read = []
    for described in read_list(document, "pair_sums", dict) if "pair_sums" in document else []:
        one, other = read_pair(described["keys"], len(keys))
        first, second = (decode_array(read_field(described, name, dict), reader) for name in ("first", "second"))
        counts = read_field(described, "sums", dict)
        spec = SumSpec(read_layout(counts), True, 1)
        sums = read_digits(counts, spec, (len(first), 1), keys[one].entry.name, reader)
        for codes, key in ((first, keys[one]), (second, keys[other])):
            inside = codes.dtype == np.int32 and codes.shape == (sums.n_categories,)
            if not inside or ((codes < MISSING) | (codes >= key.n_categories)).any():
                raise ValueError(f"pairs of {key.entry.name!r} have categories that the key lacks")
        cells = code_missing(first, keys[one].n_categories).astype(np.int64) * (LARGEST + 1) + code_missing(
            second, keys[other].n_categories
        )
        if (np.diff(cells) <= 0).any():
            raise ValueError(f"pairs of {keys[one].entry.name!r} are out of order")
        read.append(PairSums((one, other), first, second, sums, read_count(described, "n_rows", 0, 1 << 62)))
    counted = {pairs.keys for pairs in read}
    if read and not all({pair, pair[::-1]} & counted for pair in asked):
        raise ValueError("it lacks the counts of some pairs of keys")
    return read


def read_pair(document: Any, n_keys: int) -> tuple[int, int]:
    """Read the indices of two keys."""
    if (
        not isinstance(document, list)
        or len(document) != 2
        or not all(type(key) is int and 0 <= key < n_keys for key in document)
    ):
        raise ValueError(f"a pair of keys is {document!r}, of {n_keys} keys")
    return document[0], document[1]


def read_indicators(document: dict[str, Any]) -> tuple[str, ...]:
    """Read the kinds of indicators; files of releases with only one kind hold true or false."""
    indicators: tuple[str, ...] = list_indicators(read_field(document, "indicators", bool, list))
    try:
        check_indicators("the model", indicators)
    except ValueError as reason:
        raise ValueError(f"the field 'indicators' holds {list(indicators)!r}") from reason
    return indicators


def read_names(document: Any, name: str, n_features: int) -> list[str] | None:
    """Read the names of all columns, if they have names."""
    if read_field(document, name, list, None) is None:
        return None
    names = read_list(document, name, str)
    if len(names) != n_features:
        raise ValueError(f"it has {len(names)} names for {n_features} columns")
    return names


def check_alike(statistics: list[list[CategorySums]]) -> None:
    """Raise ValueError unless all keys have the same outputs."""
    outputs = {tuple((sums.n_views, sums.spec.first_output) for sums in entry) for entry in statistics}
    views = {view for entry in outputs for view, _ in entry}
    if len(outputs) != 1 or len(views) != 1 or 0 in views:
        raise ValueError("it has no columns or no targets, or its columns differ in their outputs")


def check_dates(
    selection: Selection, targets: list[TargetInfo], rules: list[EncodingRule], names: list[str] | None
) -> None:
    """Raise ValueError for statistics that text or dates do not have, and for dates without a column of dates."""
    dates = [f"x{column}" if names is None else names[column] for column in selection.dates]
    for rule, (number, info) in product(rules, enumerate(targets)):
        statistic = rule.of_target(number).statistic
        if info.kind in LABELLED:
            statistic.check_labelled("the model", info.name, info.kind)
            if statistic.needs.dates and info.name not in dates:
                raise ValueError(f"the column {info.name!r} of dates is not among those that are read")


def read_selection(document: dict[str, Any], n_features: int, reader: Reader) -> Selection:
    """Read which columns are encoded."""
    entries = [read_spec(entry, n_features, reader) for entry in read_list(document, "entries", dict)]
    passed, training_only = (read_counts(document, name, 0, n_features - 1) for name in ("passed", "training_only"))
    pairs = [read_pair(pair, len(entries)) for pair in document.get("pairs", [])]
    others = read_count(document, "others", 0, len(entries) - 1) if pairs else 0
    dates = read_counts(document, "dates", 0, n_features - 1) if "dates" in document else []
    return Selection(entries, passed, training_only, read_field(document, "everything", bool), pairs, others, dates)


def read_target(document: dict[str, Any], reader: Reader) -> TargetInfo:
    """Read the description of a target."""
    kind = read_option(document, "kind", (*KINDS, NO_TARGET, UNDECIDED, *LABELLED))
    name = read_field(document, "name", str, None)
    described = read_field(document, "classes", dict, None)
    if kind in LABELLED:
        return TargetInfo(name, kind, None, read_labels(read_field(document, "vocabulary", dict), kind, reader))
    if kind in ("continuous", NO_TARGET, UNDECIDED) and described is None:
        return TargetInfo(name, kind, None)
    classes = decode_array(described, reader)
    most = {"binary": 2, "multiclass": LARGEST}.get(kind, 0)
    if classes.ndim != 1 or not 0 < len(classes) <= most:
        raise ValueError(f"a {kind} target has class labels of shape {classes.shape}")
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("class labels are not sorted, or one is there twice")
    return TargetInfo(name, kind, classes)


def read_labels(document: dict[str, Any], kind: str, reader: Reader) -> Vocabulary:
    """Read the text or the dates of a column of values."""
    labels = read_vocabulary(document, reader)
    if labels.kind != kind or not labels.is_sorted:
        raise ValueError(f"values of a column of {kind} are of {labels.kind}, or out of order")
    return labels


def read_rules(document: dict[str, Any], n_keys: int, reader: Reader) -> list[EncodingRule]:
    """Read the encoding rule of each key; keys of equal rules share one."""
    rules, made = [], {}
    for refused, described in pair(read_refusals(document, n_keys), read_list(document, "formulas", dict)):
        text = json.dumps((refused, described), sort_keys=True)
        if text not in made:
            made[text] = replace(read_rule(described, reader), refuses_unknown=refused)
        rules.append(made[text])
    return rules


def read_rule(document: dict[str, Any], reader: Reader) -> EncodingRule:
    """Read an encoding rule."""
    statistic, prior, unseen, _, least, scale = (decode(document[name], reader) for name in RULE)
    if not isinstance(statistic, Statistic):
        raise ValueError(f"{type(statistic).__name__} is no smoothing")
    statistic.check()
    if not isinstance(prior, (float, int, np.floating, np.integer)) and prior not in (None, "mean", "category_mean"):
        raise ValueError(f"the prior is {prior!r}")
    if type(least) is not float or not (unseen is None or type(unseen) is float):
        raise ValueError("min_count, or the encoding of unknown values, is no number")
    check_scale(type(statistic).__name__, scale)
    rare = Infrequent(**read_field(document, "rare", dict))
    numbers = (rare.min_frequency, rare.max_categories)
    if any(not isinstance(number, int | float | None) for number in numbers) or type(rare.pooled) is not bool:
        raise ValueError(f"infrequent categories are told by {rare}")
    missing = read_option(document, "missing", MISSING_POLICIES)
    infrequent = None if numbers == (None, None) else rare
    drop = decode(document["drop"], reader) if "drop" in document else None
    return EncodingRule(statistic, prior, unseen, missing, least, infrequent, scale, drop=drop)


def read_sums(document: Any, key: CategoryIndex, info: TargetInfo, rule: EncodingRule, reader: Reader) -> CategorySums:
    """Read the sums of one key and target."""
    layout = read_layout(document)
    powers = [power for _, power, _ in layout.measures()]
    counts_only = info.kind not in ("continuous", UNDECIDED)
    expected = [[0]] if counts_only else [[0, 1, 2], [0, 1]][: 1 if rule.statistic.needs.squares else 2]
    if powers not in expected:
        raise ValueError(f"the sums do not fit a {info.kind} target and {type(rule.statistic).__name__}")
    spec = SumSpec(layout, counts_only, read_count(document, "first_output", *FIRST_OUTPUTS[info.kind]))
    n_classes = max(counted_classes(info.kind, info.classes), rule.statistic.needs.terms)
    sums = read_digits(document, spec, (key.n_categories, n_classes), key.entry.name, reader)
    if not rule.statistic.needs.distribution:
        return sums
    values = read_distribution(read_field(document, "distribution", dict), sums, reader)
    ends = values.values[[0, -1]].tolist() if len(values.values) else [0, -1]
    if info.vocabulary is not None and not 0 <= ends[0] <= ends[1] + 1 <= len(info.vocabulary):
        raise ValueError(f"counts of the values of {info.name!r} name values that it does not have")
    return replace(sums, distribution=values)


def read_digits(
    document: dict[str, Any], spec: SumSpec, sizes: tuple[int, int], name: str, reader: Reader
) -> CategorySums:
    """Read the digits of sums by category and class, whose numbers are `sizes`."""
    accumulators = decode_array(read_field(document, "cells", dict), reader)
    shape = (sizes[0] + 2, *accumulators.shape[1:2], sizes[1], spec.layout.width)
    if accumulators.dtype != np.int64 or accumulators.shape != shape:
        raise ValueError(f"the sums of {name!r} are {accumulators.dtype} of shape {accumulators.shape}, not {shape}")
    window, _, columns = spec.layout.measures()[0]
    if (Limbs(accumulators[..., columns], window.low).magnitude()[0] < 0).any():
        raise ValueError(f"a category of {name!r} has a negative count")
    return CategorySums(accumulators, spec, read_count(document, "added", 0, LARGEST))


def read_distribution(document: dict[str, Any], sums: CategorySums, reader: Reader) -> Distribution:
    """Read the counts of values."""
    distribution = Distribution(
        **{field.name: decode_array(read_field(document, field.name, dict), reader) for field in fields(Distribution)}
    )
    types = [getattr(distribution, field.name).dtype.str[1:] for field in fields(Distribution)]
    if types not in (["f8", "i4", "i8", "i8"], ["i8", "i4", "i8", "i8"]):
        raise ValueError(f"counts of values are of {types}")
    pairs = (len(distribution.category),)
    if (
        distribution.values.ndim != 1
        or distribution.value.shape != pairs
        or distribution.counts.shape != (*pairs, sums.n_views)
    ):
        raise ValueError("counts of values do not fit one another")
    in_order = (np.diff(distribution.values) > 0).all() and (np.diff(distribution.keys) > 0).all()
    inside = ((distribution.category >= -2) & (distribution.category < sums.n_categories)).all()
    inside &= ((distribution.value >= 0) & (distribution.value < len(distribution.values))).all()
    if not (in_order and inside and (distribution.counts >= 0).all() and np.isfinite(distribution.values).all()):
        raise ValueError("counts of values are out of order, negative, or of categories that do not exist")
    return distribution


def read_layout(document: dict[str, Any]) -> Layout:
    """Read the digit positions of sums."""
    windows = [read_window(window) for window in read_list(document, "windows", list, None)]
    return Layout(*windows)  # type: ignore[arg-type]


def read_window(document: list[Any] | None) -> Window | None:
    """Read the digit positions of a sum."""
    if document is None:
        return None
    window = dict(zip(("low", "width", "whole"), document, strict=True))
    low = read_count(window, "low", -FURTHEST_DIGIT, FURTHEST_DIGIT)
    width, whole = read_count(window, "width", 1, 2 * FURTHEST_DIGIT), read_field(window, "whole", bool)
    if whole and (low, width) != (0, 1):
        raise ValueError(f"a whole number is kept at the digits {low} to {low + width}")
    return Window(low, width, whole)
