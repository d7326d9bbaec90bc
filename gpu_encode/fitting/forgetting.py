"""Take rows out of a model again: sums are exact, so the result is a model of the other rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import MISSING
from gpu_encode.fitting.fit import FitContext
from gpu_encode.fitting.model import Model, TargetInfo, join_targets, widen_classes
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.targets import UNDECIDED, counted_classes, is_quantity
from gpu_encode.tables.categories.keys import CategoryIndex, categories_as_numpy
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.errors.values import in_one_line


def forget(known: Model, gone: Model, rows: FitContext) -> Model:
    """Give a model without the rows of a call, which it has learned, and of which `gone` is the model.

    Raises
    ------
    ValueError
        If the model cannot have learned the rows, if no row would be left, or if `fit` on the rows that are left might
        find another kind of target.
    """
    targets = [check_labels(mine, theirs) for mine, theirs in zip(known.targets, gone.targets, strict=True)]
    keys, statistics = [], []
    for number, (mine, theirs) in enumerate(zip(known.keys, gone.keys, strict=True)):
        codes, left = codes_in(mine, theirs), []
        triples = zip(known.statistics[number], gone.statistics[number], targets, strict=True)
        for target, (sums, lost, info) in enumerate(triples):
            left.append(take_out(sums, widen_classes(lost, gone.targets[target], info), codes))
        check_left(mine, left)
        key, kept = without_unused(mine, theirs, codes, left)
        keys.append(key)
        statistics.append([pick(sums, kept) for sums in left])
    if known.rules[0].statistic.needs.sums and not any(sums.accumulators.any() for sums in statistics[0]):
        raise ValueError(
            "forget would leave no rows. Give the new rows to partial_fit first, or call fit, which starts again."
        )
    targets, statistics = without_unused_values(targets, gone.targets, statistics)
    # Given borders make the same labels whatever the rows.
    labels = [
        None if rows.parameters.cut is not None else used_labels(info, theirs, statistics[0][target])
        for target, (info, theirs) in enumerate(zip(targets, gone.targets, strict=True))
    ]
    statistics = [[pick_labels(*each) for each in zip(of_key, targets, labels, strict=True)] for of_key in statistics]
    targets = [
        info if numbers is None or info.classes is None else replace(info, classes=info.classes[numbers])
        for info, numbers in zip(targets, labels, strict=True)
    ]
    check_kinds(rows, targets, statistics[0])
    return replace(known, targets=targets, keys=keys, statistics=statistics).to_canonical()


def check_kinds(gone: FitContext, targets: Sequence[TargetInfo], left: Sequence[CategorySums]) -> None:
    """Raise ValueError if ``target_type="auto"`` might find another kind of target in the rows that are left."""
    asked = gone.parameters.target_type
    for number, (info, target, sums) in enumerate(zip(targets, gone.targets, left, strict=True)):
        if (asked[number] if isinstance(asked, (list, tuple)) else asked) != "auto":
            continue
        if info.kind == "multiclass" and info.classes is not None and len(info.classes) <= 2:
            raise _other_kind(info, "of no more than two labels, which fit takes for a binary target")
        if info.kind == "continuous" and is_quantity(gone.rows.ops, target.values) and has_whole_sums(sums):
            raise _other_kind(info, "whose targets may all be whole numbers, which fit takes for labels")


def has_whole_sums(sums: CategorySums) -> bool:
    """Tell whether the summed target of each category is a whole number."""
    window, _, columns = sums.spec.layout.measures()[1]
    return window.whole or not sums.accumulators[..., columns][..., : max(-window.low, 0)].any()


def _other_kind(info: TargetInfo, left: str) -> ValueError:
    """Give the error for a target that another kind would be found for."""
    return ValueError(
        f"forget would leave rows {left}, but this encoder has learned a {info.kind} target. If it is to stay one, "
        f'call encoder.set_params(target_type="{info.kind}") first.'
    )


def check_labels(mine: TargetInfo, theirs: TargetInfo) -> TargetInfo:
    """Give the facts about a target; raise ValueError for labels that the target never had."""
    joined = join_targets(mine, theirs)
    if mine.kind == UNDECIDED != theirs.kind:
        raise ValueError(
            "forget was given rows with a target, but this encoder has learned only rows without one. Give rows as "
            "they were given to fit or partial_fit."
        )
    if joined.vocabulary is not None and mine.vocabulary is not None and len(joined.vocabulary) > len(mine.vocabulary):
        new = np.flatnonzero(mine.vocabulary.positions(joined.vocabulary, mine.name) < 0)
        raise _never_learned_label(joined.vocabulary.values.take(new[:1]).to_numpy()[0])
    if joined.classes is not None and mine.classes is not None and len(joined.classes) > len(mine.classes):
        raise _never_learned_label(np.setdiff1d(joined.classes, mine.classes)[0])
    return mine


def _never_learned_label(label: object) -> ValueError:
    """Give the error for rows that have a label which was never learned."""
    return ValueError(
        f"forget was given the label {in_one_line(label)}, which this encoder has not learned. Give rows as they were "
        "given to fit or partial_fit, each once."
    )


def codes_in(mine: CategoryIndex, theirs: CategoryIndex) -> NDArray[np.int32]:
    """Give the code that each category has in another index; raise ValueError for a category that the index lacks."""
    joined, own, codes = mine.union(theirs)
    if joined.n_categories > mine.n_categories:
        new = np.setdiff1d(np.arange(joined.n_categories), own)[0]
        raise _never_learned(mine.entry.name, categories_as_numpy(joined)[new])
    if theirs.has_missing and not mine.has_missing:
        raise _never_learned(mine.entry.name, None)
    return codes


def take_out(sums: CategorySums, gone: CategorySums, codes: NDArray[np.int32]) -> CategorySums:
    """Subtract sums, digit by digit; `codes` are the codes of the categories that lose rows."""
    values = gone.distribution
    values = None if values is None else replace(values, counts=-values.counts)
    lost = replace(gone, accumulators=-gone.accumulators, distribution=values)
    same = np.arange(sums.n_categories, dtype=np.int32)
    return sums.plus(lost, same, codes, sums.n_categories).to_canonical()


def check_left(key: CategoryIndex, left: Sequence[CategorySums]) -> None:
    """Raise ValueError for a category whose sums no set of rows can have."""
    for sums in left:
        bad = cannot_be(sums)
        if sums.distribution is not None:
            bad[sums.distribution.category[(sums.distribution.counts < 0).any(axis=1)]] = True
        if bad.any():
            code = int(np.flatnonzero(bad)[0])
            raise _never_learned(key.entry.name, categories_as_numpy(key)[code] if code < key.n_categories else None)


def _never_learned(key: str, category: object) -> ValueError:
    """Give the error for rows that were never learned."""
    return ValueError(
        f"forget was given rows of {key!r} that this encoder has not learned, or has not learned so many of: the rows "
        f"of {category!r} would leave impossible sums. Give rows as they were given to fit or partial_fit, each once."
    )


def cannot_be(sums: CategorySums) -> NDArray[np.bool_]:
    """Tell for each category whether its sums are impossible: counts or squares below 0, or a sum without rows."""
    n_lines, n_classes = len(sums.accumulators), sums.accumulators.shape[2]
    measures = [sums.accumulators[:, 0, :, columns] for _, _, columns in sums.spec.layout.measures()]
    empty = ~measures[0].any(axis=-1)
    bad = np.zeros((n_lines, n_classes), np.bool_)
    for power, measure in enumerate(measures):
        if power:
            bad |= empty & measure.any(axis=-1)
        if power % 2 == 0:
            # The highest canonical digit has the sign.
            bad |= measure[..., -1] < 0
    if len(measures) > 2 and n_classes == 1:
        bad |= host(n_lines).moments(sums.accumulators[:, 0], sums.spec.layout, 0, True).fraction < 0
    return np.logical_or.reduce(bad, axis=1)


def without_unused(
    key: CategoryIndex, gone: CategoryIndex, codes: NDArray[np.int32], left: Sequence[CategorySums]
) -> tuple[CategoryIndex, NDArray[np.int64]]:
    """Give a key without the categories that have lost all their weight, and the codes of the categories that stay."""
    used = np.zeros(key.n_categories + 2, np.bool_)
    for sums in left:
        used |= np.logical_or.reduce(sums.accumulators, axis=(1, 2, 3))
    stays = np.ones(key.n_categories, np.bool_)
    stays[codes] = used[codes] | key.given
    kept = np.flatnonzero(stays)
    has_missing = key.has_missing and (key.given or not gone.has_missing or bool(used[MISSING]))
    left_over = key if len(kept) == key.n_categories else key.pick(kept)
    return replace(left_over, has_missing=has_missing), kept


def pick(sums: CategorySums, kept: NDArray[np.int64]) -> CategorySums:
    """Give the sums of some categories, and of unknown and missing values."""
    if len(kept) == sums.n_categories:
        return sums
    values = sums.distribution
    if values is not None:
        codes = np.full(sums.n_categories, MISSING, np.int32)
        codes[kept] = np.arange(len(kept))
        values = values.renumber(values.values, codes)
    return replace(sums, accumulators=sums.accumulators[np.append(kept, [-2, -1])], distribution=values)


def without_unused_values(
    targets: Sequence[TargetInfo], gone: Sequence[TargetInfo], statistics: Sequence[Sequence[CategorySums]]
) -> tuple[list[TargetInfo], list[list[CategorySums]]]:
    """Give the targets without the text or dates that have lost all their rows, and the sums without them."""
    kept, left = list(targets), [list(of_key) for of_key in statistics]
    for number, (info, lost) in enumerate(zip(targets, gone, strict=True)):
        values = [of_key[number].distribution for of_key in statistics]
        if info.vocabulary is None or lost.vocabulary is None or any(counted is None for counted in values):
            continue
        used = np.ones(len(info.vocabulary), np.bool_)
        used[info.vocabulary.positions(lost.vocabulary, info.name)] = False
        for counted in values:
            used[counted.values] = True  # type: ignore[union-attr]
        kept[number] = replace(info, vocabulary=Vocabulary(info.vocabulary.values.take(np.flatnonzero(used))))
        for of_key in left:
            of_key[number] = widen_classes(of_key[number], info, kept[number])
    return kept, left


def used_labels(info: TargetInfo, gone: TargetInfo, sums: CategorySums) -> NDArray[np.int64] | None:
    """Give the numbers of the labels that have not lost all their weight; None for a target without labels."""
    if info.classes is None or gone.classes is None:
        return None
    used = np.logical_or.reduce(sums.accumulators, axis=(0, 1, 3))[: len(info.classes)]
    return np.flatnonzero(used | ~np.isin(info.classes, gone.classes))


def pick_labels(sums: CategorySums, info: TargetInfo, labels: NDArray[np.int64] | None) -> CategorySums:
    """Give the sums of some labels; for a binary target the first label has the first of two numbers."""
    if labels is None or info.classes is None or len(labels) == len(info.classes):
        return sums
    picked = sums.accumulators[:, :, labels]
    room = counted_classes(info.kind, info.classes[labels]) - len(labels)
    return replace(sums, accumulators=np.pad(picked, ((0, 0), (0, 0), (0, room), (0, 0))))
