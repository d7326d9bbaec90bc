"""Targets on which the encodings of a training row depend, read from the scheme of an encoder of this library."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode import schemes
from gpu_encode.encoders.base import Encoder, asks_for_groups
from gpu_encode.encoders.codes import CodesEncoder
from gpu_encode.encoders.summed import SummedEncoder
from gpu_encode.fitting.fit import FitContext, plan_keys, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.schemes import Ordered, Scheme
from gpu_encode.schemes.plans import FoldPlan, LeaveOneOutPlan, OrderedPlan, Plan, SplitPlan, leak_of
from gpu_encode.study.leaks.trials import key_codes
from gpu_encode.tables.frames import Frame


@dataclass(frozen=True)
class Sight:
    """Which targets a training encoding depends on.

    Parameters
    ----------
    kind : str
        How a row's own target changes encodings, in the words of `Moves.kind`; "unread" if no target is used.
    words : str
        The rows that a training row sees, in words.
    by_order : bool
        Whether the order of rows in the table matters.
    """

    kind: str
    words: str
    by_order: bool = False


UNREAD = Sight("unread", "no target")


@dataclass(frozen=True, eq=False)
class Key:
    """The origin of an output, as far as it is known: a column or joint key, its rows, and what these see."""

    codes: NDArray[np.int64] | None = None
    members: tuple[int, ...] = ()
    sight: Sight | None = None
    name: str | None = None

    @classmethod
    def of(cls, name: str, frame: Frame, members: tuple[int, ...], sight: Sight | None = None) -> "Key":
        """Number the categories of several columns together."""
        return cls(key_codes(frame, members), members, sight, name)


def read_keys(encoder: Encoder, X: Any, y: Array, frame: Frame, vectors: dict[str, Any]) -> dict[str, Key]:
    """Read from the plans of the schemes what the training rows of each key see."""
    parameters = encoder._parameters()
    context = prepare(parameters, Inputs(X, y, **vectors))
    entries = context.selection.entries[: context.selection.n_encoded]
    sights = read_sights(parameters, context)
    return {
        str(entry.name): Key.of(str(entry.name), frame, entry.members, sight)
        for entry, sight in zip(entries, sights, strict=False)
    }


def has_keys(encoder: Encoder) -> bool:
    """Whether an encoder learns each key separately, rather than all keys together from rows in memory."""
    return isinstance(encoder, SummedEncoder) or not isinstance(encoder, CodesEncoder)


def read_sights(parameters: Parameters, context: FitContext) -> list[Sight]:
    """Say what the rows of each key see."""
    if not parameters.reads_target:
        return [UNREAD] * len(context.selection.entries)
    if not parameters.trains_apart:
        return [Sight("own", "all rows, itself among them")] * len(context.selection.entries)
    plans = plan_keys(context)
    chosen = parameters.scheme_of_each_key(context.selection, context.rows.frame)
    return [see(parameters, plan, scheme) for plan, scheme in zip(plans, chosen, strict=True)]


def see(parameters: Parameters, plan: Plan, scheme: Scheme) -> Sight:
    """Describe what the rows of one key see, from its plan."""
    by_order = getattr(scheme, "order", "random") != "random" or getattr(scheme, "shuffle", True) is False
    words = rows_seen(plan, scheme)
    if isinstance(plan, LeaveOneOutPlan):
        return Sight("alone", words)
    if leak_of(plan) is not None:
        return Sight("own", words, by_order)
    if parameters.cut is not None and parameters.cut.needs_all_rows:
        return Sight("shared", f"{words}; borders are quantiles of all targets", by_order)
    if scheme.reads_classes or (isinstance(scheme, schemes.Splits) and scheme.by_row_number() is None):
        return Sight("shared", f"{words}; folds may follow from all labels", by_order)
    return Sight("never", words, by_order)


def rows_seen(plan: Plan, scheme: Scheme) -> str:
    """Describe which rows a row sees.

    Examples
    --------
    >>> from gpu_encode.schemes import LeaveOneOut
    >>> rows_seen(LeaveOneOutPlan(), LeaveOneOut())
    'all rows but itself'
    """
    if isinstance(plan, LeaveOneOutPlan):
        return "all rows but itself"
    if isinstance(plan, OrderedPlan):
        assert isinstance(scheme, Ordered)
        where = "in time" if scheme.time is not None else "in a random order" if scheme.shuffle else "as they stand"
        return f"the rows before it, {where}"
    if isinstance(plan, SplitPlan):
        return f"the training rows of its split, one of {len(plan.training)}"
    if isinstance(plan, FoldPlan) and plan.blow_up:
        return f"in each of {plan.n_folds} columns all folds but one, its own among them in all columns but one"
    if plan.n_folds == 1:
        return "all rows, itself among them"
    later = np.triu(plan.visibility).any()
    own = "some folds, its own among them" if plan.visibility.diagonal().any() else "other folds"
    return f"{own if later else 'earlier folds'}, of {plan.n_folds}"


def takes_groups(encoder: Any) -> bool:
    """Whether the scheme of an encoder needs groups in addition to X."""
    return isinstance(encoder, Encoder) and asks_for_groups(getattr(encoder, "cv", None))
