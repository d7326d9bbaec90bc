"""Everything of one call on training rows, as the modules that have not moved to `gpu_encode.fitting.fit` know it."""

from collections.abc import Sequence
from typing import Any

from gpu_encode.categories.keys import CategoryIndex
from gpu_encode.fitting.fit import FitContext, encode_rows, make_flags, make_model, plan_rows, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model, TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.schemes.plans import Plan


class Work:
    """A FitContext under older names."""

    def __init__(
        self,
        owner: str,  # noqa: ARG002
        options: Parameters,
        given: Inputs,
        known: Model | None = None,
        decided: Sequence[TargetInfo] | None = None,
        keys: Sequence[CategoryIndex] | None = None,
        sums_alone: bool = False,
    ) -> None:
        self.context: FitContext = prepare(options, given, known, decided, keys, sums_alone)
        self.options = options
        rows = self.context.rows
        self.given, self.frame, self.ops, self.weight, self.groups = (
            given,
            rows.frame,
            rows.ops,
            rows.weight,
            rows.groups,
        )
        self.selection, self.rules, self.tasks = self.context.selection, self.context.rules, self.context.tasks
        self.targets, self.place = self.context.targets, self.context.columns
        self.keyed = [(own.key, own.codes) for own in self.context.categories]

    def plan(self) -> Plan:
        return plan_rows(self.options.scheme, self.context.rows, self.targets)

    def train(self, plan: Plan) -> Any:
        return encode_rows(self.context, plan)

    def flags(self, entry: int, unseen: Any) -> Any:
        return make_flags(self.context, entry, unseen)

    def model(self, sums: Any) -> Model:
        return make_model(self.context, sums)
