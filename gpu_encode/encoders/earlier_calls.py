"""What must stay the same from one call of `partial_fit` to the next: columns, parameters, kinds of targets."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from gpu_encode import errors, targets
from gpu_encode.cells import Array
from gpu_encode.encoders.options import Options
from gpu_encode.formula import Formula
from gpu_encode.frames import Frame, Pieces
from gpu_encode.jobs import Job
from gpu_encode.keys import Key
from gpu_encode.model import Model, TargetInfo
from gpu_encode.ops import Ops
from gpu_encode.readouts.base import Readout
from gpu_encode.readouts.ranks import Ranks
from gpu_encode.readouts.summaries import Summaries
from gpu_encode.selection import Selection
from gpu_encode.smoothing import Smoothing
from gpu_encode.statistics import Measured
from gpu_encode.targets import Target

# Parameters of readouts that are called otherwise than those of their encoders.
OTHERWISE = {
    "smoothing": "smooth",
    "unknown": "unknown_value",
    "missing": "encoded_missing_value",
}


def check_same(known: Model, frame: Frame | Pieces, selection: Selection) -> None:
    """Raise ValueError if a later call has other columns than the first."""
    if frame.n_columns != known.n_features:
        raise errors.other_width(frame.n_columns, known.n_features)
    if frame.names != known.feature_names:
        raise errors.other_columns(known.feature_names, frame.names)
    before, now = (
        [tuple(map(frame.label, entry.columns)) for entry in each.entries] for each in (known.selection, selection)
    )
    if before != now:
        raise errors.other_columns(before, now)


def check_same_targets(known: Model, targets: Sequence[Target]) -> None:
    """Raise ValueError if a later call sums other columns of X than the first."""
    before, now = [info.name for info in known.targets], [target.name for target in targets]
    if targets and before != now:
        of_columns = any(formula.readout.names_targets for formula in known.formulas)
        raise errors.other_parameters("values", before if of_columns else None, now)


def check_same_readout(known: Model, options: Options) -> None:
    """Raise ValueError if what is read off the sums has changed since the first call."""
    if not known.formulas:
        return
    before, now = known.formulas[0].readout, options.readout
    earlier, later = of_readout(before), of_readout(now)
    name = first_other(earlier, later)
    if name is None:
        return
    if isinstance(before, Summaries) and isinstance(now, Summaries):
        earlier |= as_given(before, keys_of(known), values_of(known) if before.of_columns else None)
        later |= as_given(now, options.columns, options.values)
    raise errors.other_parameters(name, earlier[name], later[name])


def first_other(earlier: dict[str, Any], later: dict[str, Any]) -> str | None:
    """Name of the first parameter that is another than it was."""
    others = (name for name in later if name in earlier and not alike(earlier[name], later[name]))
    return next(others, None)


def alike(one: Any, other: Any) -> bool:
    """Whether two values of a parameter say the same: equal numbers do, of whatever type."""
    equal = isinstance(one, Real) and isinstance(other, Real) and bool(one == other)
    return equal or repr(one) == repr(other)


def as_given(readout: Summaries, keys: Any, values: Any) -> dict[str, Any]:
    """Give statistics and values as the user does: with pairs, the one is a dict that says the other, too."""
    if readout.pairs is None:
        return {"statistics": readout.statistics, "values": values if readout.of_columns else None}
    pairs = {
        (key, value): statistics
        for key, own in zip(keys, readout.pairs, strict=True)
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
    known: Model, options: Options, formulas: list[Formula], jobs: list[Job], keys: list[Key]
) -> None:
    """Raise ValueError if a parameter that shapes the codes has changed since the first call; `jobs` of one entry."""
    before = {
        "indicators": known.indicators,
        "dtype": known.dtype,
        "drop": dropped([each.measured for each in known.statistics[0]]),
    }
    now = {
        "indicators": options.indicators,
        "dtype": options.dtype,
        "drop": dropped([job.measured for job in jobs]),
    }
    unknown_is_error = options.handle_unknown == "error"
    for old_formula, formula, old_key, key in zip(known.formulas, formulas, known.keys, keys, strict=True):
        earlier = by_parameter(old_formula, old_key, options.as_unseen, known.unknown_is_error, before)
        later = by_parameter(formula, key, options.as_unseen, unknown_is_error, now)
        name = first_other(earlier, later)
        if name is not None:
            raise errors.other_parameters(name, earlier[name], later[name])


def dropped(measured: Sequence[Measured]) -> str | None:
    """Give `drop` of an encoder, by the class that each target's outputs begin with."""
    return "first" if any(each.first_output for each in measured) else None


def by_parameter(
    formula: Formula, key: Key, as_unseen: str, unknown_is_error: bool, of_all: dict[str, Any]
) -> dict[str, Any]:
    """Give what must stay the same of an entry between calls, by the names that an encoder's parameters have."""
    rare, asked = formula.rare, of_readout(formula.readout)
    others = {
        "handle_unknown": "error" if unknown_is_error else as_unseen if formula.unseen is None else formula.unseen,
        "handle_missing": as_unseen if formula.missing == "prior" else formula.missing,
        "prior": formula.prior,
        "min_count": formula.min_count,
        "min_frequency": rare.min_frequency,
        "max_categories": rare.max_categories,
        "handle_infrequent": "category" if rare.pooled else as_unseen,
        "scale": formula.scale,
        "hierarchy": key.entry.rule,
        "categories": key.vocabularies[0].to_numpy().tolist() if key.given else "auto",
    }
    # Where the readout has a parameter of that name, only it is the user's.
    return {name: value for name, value in {**others, **of_all}.items() if name not in asked}


def of_readout(readout: Readout) -> dict[str, Any]:
    """Give what a readout was asked for, by the names that an encoder's parameters have."""
    if isinstance(readout, Smoothing):
        return {"smooth": readout}
    if isinstance(readout, Summaries):
        statistics = readout.statistics if readout.pairs is None else readout.pairs
        return {"statistics": statistics, "values": readout.of_columns, "ddof": readout.ddof}
    names = OTHERWISE | ({"seed": "random_state"} if isinstance(readout, Ranks) else {})
    # Whether categories were listed shows in those that were.
    given = {name: value for name, value in readout.get_params(deep=False).items() if name != "listed"}
    return {names.get(name, name): value for name, value in given.items()}


def more_targets(
    ops: Ops, named: Sequence[tuple[str | None, Array]], target_type: Any, infos: Sequence[TargetInfo]
) -> list[Target]:
    """Read targets as those of earlier calls."""
    if len(named) != len(infos):
        raise errors.other_number_of_targets(len(infos), len(named))
    found = []
    for (name, values), info in zip(named, infos, strict=True):
        if target_type not in ("auto", info.kind) and not isinstance(target_type, (list, tuple)):
            raise errors.other_target_type(info.kind, target_type)
        labels = info.kind != "continuous"
        if target_type == "auto" and labels and values.dtype.kind == "f" and targets.has_fractions(ops, values):
            raise errors.fractions_for_labels(info.kind)
        found.append(targets.make(name, targets.Labels(ops, values), info.kind, info.classes))
    return found
