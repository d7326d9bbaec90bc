"""What must stay the same from one call of `partial_fit` to the next: columns, parameters, kinds of targets."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from cpu_fallback.types import Array
from gpu_encode.categories.keys import CategoryIndex
from gpu_encode.errors.learned import (
    fractions_for_labels,
    other_columns,
    other_number_of_targets,
    other_parameters,
    other_target_type,
)
from gpu_encode.errors.tables import other_width
from gpu_encode.fitting.columns import Selection
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.ranks import Ranks
from gpu_encode.formulas.smoothing import Smoothing
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.formulas.summaries import Summaries
from gpu_encode.frames import Frame, Pieces
from gpu_encode.ops import Ops
from gpu_encode.sums import targets
from gpu_encode.sums.category_sums import SumSpec
from gpu_encode.sums.targets import Target
from gpu_encode.training.tasks import EncodingTask

# Parameters of readouts that are called otherwise than those of their encoders.
OTHERWISE = {
    "smoothing": "smooth",
    "unknown": "unknown_value",
    "missing": "encoded_missing_value",
}


def check_same(known: Model, frame: Frame | Pieces, selection: Selection) -> None:
    """Raise ValueError if a later call has other columns than the first."""
    if frame.n_columns != known.n_features:
        raise other_width(frame.n_columns, known.n_features)
    if frame.names != known.feature_names:
        raise other_columns(known.feature_names, frame.names)
    before, now = (
        [tuple(map(frame.label, entry.columns)) for entry in each.entries] for each in (known.selection, selection)
    )
    if before != now:
        raise other_columns(before, now)


def check_same_targets(known: Model, targets: Sequence[Target]) -> None:
    """Raise ValueError if a later call sums other columns of X than the first."""
    before, now = [info.name for info in known.targets], [target.name for target in targets]
    if targets and before != now:
        of_columns = any(rule.statistic.names_targets for rule in known.rules)
        raise other_parameters("values", before if of_columns else None, now)


def check_same_readout(known: Model, options: Parameters) -> None:
    """Raise ValueError if what is read off the sums has changed since the first call."""
    if not known.rules:
        return
    before, now = known.rules[0].statistic, options.statistic
    earlier, later = of_readout(before), of_readout(now)
    name = first_other(earlier, later)
    if name is None:
        return
    if isinstance(before, Summaries) and isinstance(now, Summaries):
        earlier |= as_given(before, keys_of(known), values_of(known) if before.of_columns else None)
        later |= as_given(now, options.columns, options.values)
    raise other_parameters(name, earlier[name], later[name])


def first_other(earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """Name of the first parameter that is another than it was."""
    others = (name for name in later if name in earlier and not alike(earlier[name], later[name]))
    return next(others, None)


def alike(one: Any, other: Any) -> bool:
    """Whether two values of a parameter say the same: equal numbers do, of whatever type."""
    equal = isinstance(one, Real) and isinstance(other, Real) and bool(one == other)
    return equal or repr(one) == repr(other)


def as_given(statistic: Summaries, keys: Any, values: Any) -> dict[str, Any]:
    """Give statistics and values as the user does: with pairs, the one is a dict that says the other, too."""
    if statistic.pairs is None:
        return {"statistics": statistic.statistics, "values": values if statistic.of_columns else None}
    pairs = {
        (key, value): statistics
        for key, own in zip(keys, statistic.pairs, strict=True)
        for value, statistics in zip(values, own, strict=True)
        if statistics
    }
    return {"statistics": pairs, "values": None}


def keys_of(known: Model) -> list[Any]:
    """Names, or else positions, of what is encoded."""
    names = known.feature_names or range(known.n_features)
    members = [tuple(names[position] for position in entry.members) for entry in known.selection.entries]
    return [each if len(each) > 1 else each[0] for each in members]


def values_of(known: Model) -> list[Any]:
    """Names, or else positions, of the columns of values; those without a name are called x0, x1 ..."""
    named = known.feature_names is not None
    return [info.name if named else int(str(info.name)[1:]) for info in known.targets]


def check_same_parameters(
    known: Model, options: Parameters, rules: list[EncodingRule], tasks: list[EncodingTask], keys: list[CategoryIndex]
) -> None:
    """Raise ValueError if a parameter that shapes the codes has changed since the first call; `tasks` of one entry."""
    before = {
        "indicators": known.indicators,
        "dtype": known.dtype,
        "drop": dropped([each.measured for each in known.statistics[0]]),
    }
    now = {
        "indicators": options.indicators,
        "dtype": options.dtype,
        "drop": dropped([task.measured for task in tasks]),
    }
    unknown_is_error = options.handle_unknown == "error"
    for old_formula, rule, old_key, key in zip(known.rules, rules, known.keys, keys, strict=True):
        earlier = by_parameter(old_formula, old_key, options.as_unseen, known.unknown_is_error, before)
        later = by_parameter(rule, key, options.as_unseen, unknown_is_error, now)
        name = first_other(earlier, later)
        if name is not None:
            raise other_parameters(name, earlier[name], later[name])


def dropped(measured: Sequence[SumSpec]) -> str | None:
    """Give `drop` of an encoder, by the class that each target's outputs begin with."""
    return "first" if any(each.first_output for each in measured) else None


def by_parameter(
    rule: EncodingRule, key: CategoryIndex, as_unseen: str, unknown_is_error: bool, of_all: dict[str, Any]
) -> dict[str, Any]:
    """Give what must stay the same of an entry between calls, by the names that an encoder's parameters have."""
    rare, asked = rule.infrequent, of_readout(rule.statistic)
    others = {
        "handle_unknown": "error" if unknown_is_error else as_unseen if rule.unseen is None else rule.unseen,
        "handle_missing": as_unseen if rule.missing == "prior" else rule.missing,
        "prior": rule.prior,
        "min_count": rule.min_count,
        "min_frequency": rare.min_frequency,
        "max_categories": rare.max_categories,
        "handle_infrequent": "category" if rare.pooled else as_unseen,
        "scale": rule.scale,
        "hierarchy": key.entry.rule,
        "categories": key.vocabularies[0].to_numpy().tolist() if key.given else "auto",
    }
    # Where the readout has a parameter of that name, only it is the user's.
    return {name: value for name, value in {**others, **of_all}.items() if name not in asked}


def of_readout(statistic: Statistic) -> dict[str, Any]:
    """Give what a readout was asked for, by the names that an encoder's parameters have."""
    if isinstance(statistic, Smoothing):
        return {"smooth": statistic}
    if isinstance(statistic, Summaries):
        statistics = statistic.statistics if statistic.pairs is None else statistic.pairs
        return {"statistics": statistics, "values": statistic.of_columns, "ddof": statistic.ddof}
    names = OTHERWISE | ({"seed": "random_state"} if isinstance(statistic, Ranks) else {})
    # Whether categories were listed shows in those that were.
    given = {name: value for name, value in statistic.get_params(deep=False).items() if name != "listed"}
    return {names.get(name, name): value for name, value in given.items()}


def more_targets(
    ops: Ops, named: Sequence[tuple[str | None, Array]], target_type: Any, infos: Sequence[TargetInfo]
) -> list[Target]:
    """Read targets as those of earlier calls."""
    if len(named) != len(infos):
        raise other_number_of_targets(len(infos), len(named))
    found = []
    for (name, values), info in zip(named, infos, strict=True):
        if target_type not in ("auto", info.kind) and not isinstance(target_type, (list, tuple)):
            raise other_target_type(info.kind, target_type)
        labels = info.kind != "continuous"
        if target_type == "auto" and labels and values.dtype.kind == "f" and targets.has_fractions(ops, values):
            raise fractions_for_labels(info.kind)
        found.append(targets.make(name, targets.Labels(ops, values), info.kind, info.classes))
    return found
