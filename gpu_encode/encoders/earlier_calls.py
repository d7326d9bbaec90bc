"""What must stay the same from one call of `partial_fit` to the next: columns, parameters, kinds of targets."""

from collections.abc import Sequence
from typing import Any

from gpu_encode import errors, targets
from gpu_encode.cells import Array
from gpu_encode.encoders.options import Options
from gpu_encode.formula import Formula
from gpu_encode.frames import Frame, Pieces
from gpu_encode.jobs import Job
from gpu_encode.keys import Key
from gpu_encode.model import Model
from gpu_encode.ops import Ops
from gpu_encode.selection import Selection
from gpu_encode.targets import Target


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
    if targets and [info.name for info in known.targets] != [target.name for target in targets]:
        raise errors.other_parameters()


def check_same_parameters(
    known: Model, options: Options, formulas: list[Formula], jobs: list[Job], keys: list[Key]
) -> None:
    """Raise ValueError if a parameter that shapes the codes has changed since the first call; `jobs` of one entry."""
    first = [each.measured.first_output for each in known.statistics[0]]
    before = (known.formulas, known.unknown_is_error, known.indicators, known.dtype, first, traits(known.keys))
    first = [job.measured.first_output for job in jobs]
    unknown_is_error = options.handle_unknown == "error"
    now = (formulas, unknown_is_error, options.indicators, options.dtype, first, traits(keys))
    if repr(before) != repr(now):
        raise errors.other_parameters()


def traits(keys: list[Key]) -> list[Any]:
    """What must stay the same of keys between calls: rules, and categories that the user gave."""
    return [(repr(key.entry.rule), key.vocabularies[0].to_numpy().tolist() if key.given else None) for key in keys]


def more_targets(ops: Ops, named: Sequence[tuple[str | None, Array]], target_type: Any, known: Model) -> list[Target]:
    """Read targets as those of earlier calls."""
    if len(named) != len(known.targets):
        raise errors.other_number_of_targets(len(known.targets), len(named))
    found = []
    for (name, values), info in zip(named, known.targets, strict=True):
        if target_type not in ("auto", info.kind) and not isinstance(target_type, (list, tuple)):
            raise errors.other_target_type(info.kind, target_type)
        labels = info.kind != "continuous"
        if target_type == "auto" and labels and values.dtype.kind == "f" and targets.has_fractions(ops, values):
            raise errors.fractions_for_labels(info.kind)
        found.append(targets.make(name, targets.Labels(ops, values), info.kind, info.classes))
    return found
