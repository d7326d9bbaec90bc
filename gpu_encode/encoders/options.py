"""The parameters of a target encoder, read and checked once per call, at fit."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gpu_encode import devices, errors
from gpu_encode.cells import Array
from gpu_encode.formula import Formula
from gpu_encode.frames import Frame, Pieces, with_piece
from gpu_encode.notices import warn
from gpu_encode.plans import FoldPlan, OrderedPlan, Plan
from gpu_encode.schemes import Holdout, KFold, Scheme
from gpu_encode.selection import Selection, locate
from gpu_encode.smoothing import Smoothing


@dataclass(frozen=True, eq=False)
class Options:
    """Checked parameters."""

    categories: Any
    target_type: Any
    smoothing: Smoothing
    scheme: Scheme
    integer_folds: int | None
    columns: Any
    prior: Any
    handle_unknown: Any
    handle_missing: str
    min_count: float
    hierarchy: Any
    indicators: bool
    drop: str | None
    dtype: str
    device: str

    @property
    def new_rows_see_folds(self) -> bool:
        """Whether new rows see some of the folds, or each apart, rather than all rows."""
        return isinstance(self.scheme, Holdout) or (isinstance(self.scheme, KFold) and self.scheme.blow_up)

    def check(self) -> None:
        """Raise ValueError for unknown options and numbers out of range."""
        owner = "TargetEncoder"
        if not isinstance(self.handle_unknown, Real) or isinstance(self.handle_unknown, bool):
            errors.check_option(owner, "handle_unknown", self.handle_unknown, ("prior", "nan", "error"), "a number")
        elif np.isinf(float(self.handle_unknown)):
            raise errors.infinite_code(owner, self.handle_unknown)
        errors.check_option(owner, "handle_missing", self.handle_missing, ("category", "prior", "nan", "error"))
        errors.check_number(owner, "min_count", self.min_count, low=0.0)
        errors.check_option(owner, "indicators", self.indicators, (True, False))
        errors.check_option(owner, "drop", self.drop, (None, "first"))
        errors.check_option(owner, "dtype", self.dtype, ("float64", "float32"))
        errors.check_option(owner, "device", self.device, devices.DEVICES)
        if isinstance(self.prior, str):
            errors.check_option(owner, "prior", self.prior, ("mean", "category_mean"))
        elif not isinstance(self.prior, (Real, dict)) or isinstance(self.prior, bool):
            raise errors.bad_option(
                owner, "prior", self.prior, ("'mean'", "'category_mean'", "a number", "a dict of one number per column")
            )
        elif isinstance(self.prior, dict):
            for column, value in self.prior.items():
                errors.check_number(owner, f"prior[{column!r}]", value, low=-np.inf)
        else:
            errors.check_number(owner, "prior", self.prior, low=-np.inf)
        if not (isinstance(self.categories, list) or (isinstance(self.categories, str) and self.categories == "auto")):
            raise errors.bad_option(
                owner, "categories", self.categories, ("'auto'", "a list of one list of categories per column")
            )

    def formulas(self, selection: Selection, frame: Frame | Pieces) -> list[Formula]:
        """Formula of every entry."""
        priors = self._priors(selection, frame)
        unknown = (
            {"prior": None, "nan": float("nan"), "error": None}.get(self.handle_unknown)
            if isinstance(self.handle_unknown, str)
            else float(self.handle_unknown)
        )
        return [Formula(self.smoothing, prior, unknown, self.handle_missing, float(self.min_count)) for prior in priors]

    def _priors(self, selection: Selection, frame: Frame | Pieces) -> list[Any]:
        """Prior of every entry: one for all, or one a column, the others by the mean."""
        if not isinstance(self.prior, dict):
            return [self.prior] * len(selection.entries)
        given = {}
        for column, value in self.prior.items():
            members = column if isinstance(column, tuple) else (column,)
            given[tuple(locate(frame, member, "prior:") for member in members)] = value
        entries = [entry.members for entry in selection.entries]
        if stray := [members for members in given if members not in entries]:
            raise errors.not_encoded("prior", frame.label(stray[0][0]))
        return [given.get(members, "mean") for members in entries]

    def given_categories(self, selection: Selection) -> list[Any]:
        """Categories that the user gave for each entry, or None."""
        if isinstance(self.categories, str):
            return [None] * len(selection.entries)
        if len(self.categories) != len(selection.entries):
            raise errors.uneven_categories(len(self.categories), len(selection.entries))
        found: list[Any] = []
        for given, entry in zip(self.categories, selection.entries, strict=True):
            if given is None or (isinstance(given, str) and given == "auto"):
                found.append(None)
                continue
            if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
                raise errors.not_a_list_of_categories(entry.name, given)
            if len(entry.columns) > 1 or entry.rule is not None:
                raise errors.categories_of_many(entry.name)
            found.append(given)
        return found

    def refuse_unknown(self, codes: Array, name: str, frame: Frame | Pieces) -> None:
        """Raise ValueError for training rows outside of given categories where the policy is "error"."""
        if self.handle_unknown == "error" and bool((codes == -2).any()):
            raise with_piece(frame, errors.outside_given_categories(repr(name), np.flatnonzero(codes == -2)))

    def warn_of_nothing_seen(self, columns: list[Array], plan: Plan) -> None:
        """Warn once of rows that see no rows at all; `columns` are codes whose prior is a mean of what is seen."""
        if isinstance(plan, OrderedPlan) and plan.burn_in:
            return
        if "nan" not in (self.handle_unknown, self.handle_missing):
            # The smallest number is NaN where any is.
            blind = [column for column in columns if len(column) and bool(np.isnan(column.min()))]
            if blind:
                empty = np.isnan(blind[0])
                for column in blind[1:]:
                    empty |= np.isnan(column)
                self.warn_of_blind_rows(int(empty.sum()), plan)

    def warn_of_blind_rows(self, number: object, plan: Plan) -> None:
        """Warn of so many rows that see no rows at all, unless codes are NaN for other reasons, too."""
        if "nan" not in (self.handle_unknown, self.handle_missing):
            why = (
                "their earlier folds or times hold no rows"
                if isinstance(plan, (FoldPlan, OrderedPlan))
                else "there are no other rows"
            )
            warn(f"{number} rows see no rows at all and get NaN: {why}.")
