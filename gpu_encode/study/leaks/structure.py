"""What the scheme of an encoder of this library says of each training row: whose targets its encodings follow from."""

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
    """Whose targets a training encoding follows from.

    Parameters
    ----------
    kind : str
        What the row's own target does, in the words of `Moves.kind`; "unread" where no target plays a part.
    words : str
        Which rows it sees.
    by_order : bool
        Whether it matters where rows stand in the table.
    """

    kind: str
    words: str
    by_order: bool = False


UNREAD = Sight("unread", "no target")


@dataclass(frozen=True, eq=False)
class Key:
    """What an output is made of, as far as that is known: a column or joint key, its rows, and what these see."""

    codes: NDArray[np.int64] | None = None
    members: tuple[int, ...] = ()
    sight: Sight | None = None
    name: str | None = None

    @classmethod
    def of(cls, name: str, frame: Frame, members: tuple[int, ...], sight: Sight | None = None) -> "Key":
        """Number the categories of some columns together."""
        return cls(key_codes(frame, members), members, sight, name)


def read_keys(encoder: Encoder, X: Any, y: Array, frame: Frame, vectors: dict[str, Any]) -> dict[str, Key]:
    """Read what the training rows of each key see off the plans of their schemes."""
    parameters = encoder._parameters()
    context = prepare(parameters, Inputs(X, y, **vectors))
    entries = context.selection.entries[: context.selection.n_encoded]
    sights = read_sights(parameters, context)
    return {
        str(entry.name): Key.of(str(entry.name), frame, entry.members, sight)
        for entry, sight in zip(entries, sights, strict=False)
    }


def has_keys(encoder: Encoder) -> bool:
    """Tell whether an encoder has keys that learn apart, and not all together from rows in memory."""
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
    """Say what the rows of one key see, by its plan."""
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
    """Say which rows a row sees.

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
    """Tell whether an encoder's scheme asks for groups beside X."""
    return isinstance(encoder, Encoder) and asks_for_groups(getattr(encoder, "cv", None))
