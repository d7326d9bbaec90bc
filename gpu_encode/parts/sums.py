"""The second look at rows in parts: exact sums per category and fold, which add up in any order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_encode.encoders.merging import check_same_columns
from gpu_encode.encoders.work import Work
from gpu_encode.keys import Key
from gpu_encode.layouts import Reach
from gpu_encode.model import Model
from gpu_encode.parts.blueprints import Blueprint
from gpu_encode.parts.part import InFloats, Part
from gpu_encode.parts.stretches import Stretches, stretches_of
from gpu_encode.plans import FoldPlan, OrderedPlan, Plan, all_rows


@dataclass(frozen=True, eq=False)
class Sums:
    """Categories and exact sums of some parts; sums of parts are added up, in any order and any tree.

    Parameters
    ----------
    n_rows : int
    model : Model, optional
        Categories, and sums by fold; None of no rows.
    reach : list of Reach
        Per target, the digits that its rows touch.
    stretches : list of Stretches
        Per order of an ordered scheme, the sums of its rows between the places at which priors are taken.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, draft, measure, survey
    >>> encoder, parts = TargetEncoder(cv=KFold(2)), [Part([["a"], ["b"]], [1, 0]), Part([["c"]], [1], first_row=2)]
    >>> blueprint = draft(encoder, survey(encoder, parts[0]) + survey(encoder, parts[1]))
    >>> both = measure(blueprint, parts[1]) + measure(blueprint, parts[0])
    >>> both.n_rows, both.n_categories
    (3, [3])
    """

    n_rows: int = 0
    model: Model | None = None
    reach: list[Reach] = field(default_factory=list)
    stretches: list[Stretches] = field(default_factory=list)

    @property
    def n_categories(self) -> list[int]:
        """Categories of every entry."""
        return [] if self.model is None else [key.n_categories for key in self.model.keys]

    def __add__(self, other: "Sums") -> "Sums":
        return self.plus(other)

    def plus(self, other: "Sums", in_place: bool = False) -> "Sums":
        """Sums of both; in place, these are given up to hold the result, which spares a copy of them for every part."""
        if self.model is None or other.model is None:
            return other if self.model is None else self
        check_same_columns(self.model, other.model)
        return Sums(
            self.n_rows + other.n_rows,
            self.model.joined(other.model, in_place),
            [mine + theirs for mine, theirs in zip(self.reach, other.reach, strict=True)],
            [mine + theirs for mine, theirs in zip(self.stretches, other.stretches, strict=True)],
        )


def measure(blueprint: Blueprint, part: Part) -> Sums:
    """Sum the rows of a part per category and fold.

    Parameters
    ----------
    blueprint : Blueprint
    part : Part
        All columns of X that are encoded or that the scheme reads; the same columns in every part.

    Returns
    -------
    Sums
        Grows with the categories of the part, not with its rows.

    Raises
    ------
    ValueError, TypeError
        For values that cannot be categories, or that the policies refuse.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, draft, measure, survey
    >>> encoder, part = TargetEncoder(cv=KFold(2)), Part([["a"], ["b"], ["a"]], [1, 0, 1])
    >>> measure(draft(encoder, survey(encoder, part)), part).n_categories
    [2]
    """
    with part.named():
        work = work_on(blueprint, part)
        if work is None:
            return Sums()
        plan: Plan = all_rows()
        if isinstance(blueprint.plan, FoldPlan):
            plan = blueprint.plan_of(work, work.targets[0].values, part.first_row)
        assert isinstance(plan, FoldPlan)
        sums = [[job.measure(plan.folds, plan.n_folds) for job in jobs] for jobs in work.jobs]
        # In folds nothing is taken away from the sums, and no row is added to some of them.
        by_row = [] if isinstance(blueprint.plan, FoldPlan) else work.jobs[0]
        reach = [Reach.of(job.rows, job.measured.layout) for job in by_row]
        stretches = []
        if isinstance(blueprint.plan, OrderedPlan):
            stretches = stretches_of(blueprint, blueprint.plan, work, part.first_row)
        return Sums(work.frame.n_rows, work.model(sums), reach, stretches)


def work_on(blueprint: Blueprint, part: Part, keys: Sequence[Key] | None = None) -> Work | None:
    """Read a part, by known categories or its own; None where it has no rows."""
    given = InFloats(part, blueprint.floats, blueprint.float_weight)
    if not given.frame.n_rows:
        return None
    return Work(type(blueprint.encoder).__name__, blueprint.options, given, decided=blueprint.targets, keys=keys)
