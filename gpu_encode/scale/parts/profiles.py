"""The first pass over rows in parts: their number, the values of y, and counts of the values that the scheme reads."""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder, check_encoder
from gpu_encode.fitting.fit import ValueCounts
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale.parts.part import Part
from gpu_encode.seam import ops
from gpu_encode.seam.ops import Ops
from gpu_encode.sums import targets
from gpu_encode.tables.frames import Incomplete, NumberedLabels
from gpu_encode.words.errors.parameters import wrong_type
from gpu_encode.words.errors.targets import merge_of_other_targets, no_target, nothing_to_stratify, unknown_target_type


@dataclass(frozen=True, eq=False)
class TargetProfile:
    """A summary of a target in some rows.

    Parameters
    ----------
    name : str or None
    labels : array or None
        Sorted labels; None for a quantity.
    counts : int64 array
        Rows of each label.
    are_floats : bool
        Whether some of the numbers are floats; if so, there are no labels, unless the user asks to take floats for
        labels.
    n_missing : int
        Rows without a value.
    is_empty : bool
        Whether no row has a value.
    """

    name: str | None
    labels: Array | None
    counts: NDArray[np.int64]
    are_floats: bool = False
    n_missing: int = 0
    is_empty: bool = False

    def __add__(self, other: "TargetProfile") -> "TargetProfile":
        n_missing = self.n_missing + other.n_missing
        if self.is_empty or other.is_empty:
            return replace(other if self.is_empty else self, n_missing=n_missing)
        return replace(self._add_values(other), n_missing=n_missing)

    def _add_values(self, other: "TargetProfile") -> "TargetProfile":
        if self.labels is None or other.labels is None:
            quantity = self if self.labels is None else other
            return replace(quantity, are_floats=self.are_floats or other.are_floats)
        labels = targets.join_labels(self.labels, other.labels)
        counts = np.zeros(len(labels), np.int64)
        for part in (self, other):
            counts[np.searchsorted(labels, part.labels)] += part.counts  # type: ignore[arg-type]
        return replace(self, labels=labels, counts=counts, are_floats=self.are_floats or other.are_floats)

    def kind(self) -> str:
        """Kind of target that the values of all rows suggest, as if they were one array."""
        if self.labels is None:
            return "continuous"
        if self.labels.dtype.kind in "OUS":
            targets.refuse_stray_labels(self.labels, self.counts)
        if self.labels.dtype.kind == "O":
            # Each label is given several times: scikit-learn warns if most rows have a label of their own.
            kind = str(type_of_target(np.repeat(self.labels, 3), input_name="y"))
            if kind not in targets.KINDS:
                raise unknown_target_type(kind, targets.KINDS)
        targets.check_many_classes(self.labels)
        return "binary" if len(self.labels) <= 2 else "multiclass"


@dataclass(frozen=True, eq=False)
class Profile:
    """A summary of rows, made before they are summed; profiles of parts can be added, in any order.

    Parameters
    ----------
    n_rows : int
    targets : list of TargetProfile
    some_weight : bool
        Whether a weight is above zero, or no weights are given.
    float_weight : bool
        Whether some of the weights are floats.
    values : dict of (column, str) to ValueCounts
        Keyed by the column that a scheme reads, and its role in the scheme.
    classes_from : dict of int to TargetProfile
        By the first row of each part, the classes of its rows; for folds that are dealt out within classes.
    checksum : int
        The engine's checksum of the rows, modulo 2**64; 0 if it makes none.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.parts import Part, profile
    >>> encoder = TargetEncoder()
    >>> both = profile(encoder, Part([["a"]], [0])) + profile(encoder, Part([["b"], ["c"]], [1, 1], first_row=1))
    >>> both.n_rows
    3
    """

    n_rows: int = 0
    targets: list[TargetProfile] = field(default_factory=list)
    some_weight: bool = False
    float_weight: bool = False
    values: dict[tuple[Any, str], ValueCounts] = field(default_factory=dict)
    classes_from: dict[int, TargetProfile] = field(default_factory=dict)
    checksum: int = 0

    def __add__(self, other: "Profile") -> "Profile":
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        if [target.name for target in self.targets] != [target.name for target in other.targets]:
            raise merge_of_other_targets()
        return Profile(
            self.n_rows + other.n_rows,
            [mine + theirs for mine, theirs in zip(self.targets, other.targets, strict=True)],
            self.some_weight or other.some_weight,
            self.float_weight or other.float_weight,
            {read: mine + other.values[read] for read, mine in self.values.items()},
            self.classes_from | other.classes_from,
            (self.checksum + other.checksum) % 2**64,
        )

    def moved(self, first_row: int) -> "Profile":
        """Give the profile of a part whose first row was unknown when the profile was made."""
        return replace(self, classes_from={first_row + row: counts for row, counts in self.classes_from.items()})


def scheme_columns(encoder: Encoder) -> list[Any]:
    """List the columns of X that `profile` reads: the columns of the encoder's schemes, each once.

    Examples
    --------
    >>> from gpu_encode import GroupKFold, TargetEncoder
    >>> from gpu_encode.parts import scheme_columns
    >>> scheme_columns(TargetEncoder(cv=GroupKFold(groups="shop")))
    ['shop']
    """
    check_encoder(encoder)
    schemes = encoder._parameters().every_scheme
    return list(dict.fromkeys(column for scheme in schemes for column in scheme.used_columns()))


def profile(encoder: Encoder, part: Part) -> Profile:
    """Summarise the targets, the weights and the values that the scheme reads.

    Parameters
    ----------
    encoder : TargetEncoder
        Only its parameters matter.
    part : Part
        X needs only the columns `scheme_columns`.

    Returns
    -------
    Profile

    Raises
    ------
    ValueError, TypeError
        For bad parameters, targets or weights.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.parts import Part, profile
    >>> profile(TargetEncoder(), Part([["a"], ["b"], ["a"]], ["x", "y", "x"])).targets[0].labels.tolist()
    ['x', 'y']
    """
    check_encoder(encoder)
    if not isinstance(part, Part):
        raise wrong_type("profile", "part", part, Part)
    return profile_rows(encoder._parameters(), part)


def profile_rows(parameters: Parameters, part: Part) -> Profile:
    """Make the profile of a part, with parameters that were read once for all parts."""
    with part.named():
        given = part.given()
        if parameters.reads_target and not given.has_target:
            raise no_target(parameters.owner)
        if not given.frame.n_rows:
            return Profile()
        backend = ops.resolve(given.frame.n_rows, given.device(parameters.device))
        named = given.targets(parameters.missing_target == "keep") if parameters.reads_target else []
        if parameters.cut is not None:
            parameters.cut.check_fixed()
            named = parameters.cut.buckets(backend, named)
        # Only all rows together show whether the kind that the user asks for is possible.
        asked = parameters.target_type
        asked = asked if isinstance(asked, (list, tuple)) and len(asked) == len(named) else [asked] * len(named)
        profiles = [profile_target(backend, *target, kind) for target, kind in zip(named, asked, strict=True)]
        weight = given.weight()
        some = weight is None or bool(targets.check_weight(backend, weight, all_rows=False).any())
        values: dict[tuple[Any, str], ValueCounts] = {}
        for scheme in parameters.every_scheme:
            with parameters.naming_scheme(scheme):
                for column, role in scheme.reads_of_rows():
                    source = given.groups() if column is None else column
                    if (column, role) not in values:
                        values[column, role] = replace(ValueCounts.of(given.frame, source, role, backend), codes=None)
    if parameters.reads_classes and not profiles:
        raise nothing_to_stratify()
    within = {part.first_row: profiles[0]} if parameters.reads_classes else {}
    floats = weight is not None and weight.dtype.kind == "f"
    return Profile(given.frame.n_rows, profiles, some, floats, values, within)


def profile_target(backend: Ops, name: str | None, values: Any, asked: Any) -> TargetProfile:
    """Make the profile of one target; its labels are numbered unless it is, or is asked to be, a quantity."""
    if isinstance(values, Incomplete):
        with values.naming_rows():
            present = profile_target(backend, name, values.values, asked)
        return replace(present, n_missing=int(values.missing.sum()), is_empty=bool(values.missing.all()))
    quantity = TargetProfile(name, None, np.zeros(0, np.int64), values.dtype.kind == "f")
    if not len(values):
        return quantity
    if isinstance(values, NumberedLabels):
        if asked == "continuous":
            targets.refuse_text(values)
    else:
        targets.check_numbers(values)
        if asked == "continuous" or (asked == "auto" and targets.is_quantity(backend, values)):
            return quantity
    labels, codes = targets.distinct(backend, values)
    counts = backend.to_host(np.bincount(backend.to_device(codes), minlength=len(labels)))
    return TargetProfile(name, labels, counts, values.dtype.kind == "f")


def together(profiles: "list[Profile]") -> Profile:
    """Add up profiles."""
    return reduce(lambda one, other: one + other, profiles, Profile())
