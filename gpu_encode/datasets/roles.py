"""What each column of a source is for."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_encode import frames
from gpu_encode.datasets.source import Chunk
from gpu_encode.errors import datasets as errors
from gpu_encode.fitting import columns
from gpu_encode.parts import Part


@dataclass(frozen=True)
class Roles:
    """What each column of a source is for.

    Parameters
    ----------
    names : list of str
        All columns.
    targets : list of str
        What is learned from.
    several : bool
        Whether the target was given as a list, so that y is a table.
    weight, groups : str or None
    """

    names: list[str]
    targets: list[str]
    several: bool
    weight: str | None
    groups: str | None

    @cached_property
    def aside(self) -> list[str]:
        """Columns that are no features, in the order of the source."""
        taken = {*self.targets, self.weight, self.groups}
        return [name for name in self.names if name in taken]

    @cached_property
    def features(self) -> list[str]:
        """Columns that are given to the encoder."""
        return [name for name in self.names if name not in self.aside]

    def part(self, chunk: Chunk) -> Part:
        """Give a chunk as the encoder takes it."""
        table = chunk.table
        return Part(
            table.select(self.features),
            self._target(table),
            None if self.weight is None else table.column(self.weight),
            None if self.groups is None else table.column(self.groups),
            chunk.first_row,
        )

    def _target(self, table: Any) -> Any:
        """Give y of a chunk."""
        if not self.targets:
            return None
        return table.select(self.targets) if self.several else table.column(self.targets[0])

    @contextlib.contextmanager
    def explain_missing_target(self, chunk: Chunk) -> Iterator[None]:
        """Say of rows without a target, which nothing can be learned from, how to leave them out."""
        try:
            yield
        except ValueError as error:
            if any(pc.any(pc.is_null(chunk.table[name], nan_is_null=True)).as_py() for name in self.targets):
                error.add_note(errors.LEAVE_OUT)
            raise

    def selected(self, encoder: Any, schema: Any) -> columns.Selection:
        """Read which columns are encoded against the features, before there are any rows."""
        parameters = encoder._parameters()
        features = pa.schema([schema.field(name) for name in self.features]).empty_table()
        used = parameters.training_columns
        return columns.select(frames.read(features), parameters.columns, parameters.hierarchy, used)

    def measured(self, selected: columns.Selection) -> list[str]:
        """Columns that are read to sum rows."""
        places = [*selected.needed, *selected.training_only]
        return [*(self.features[place] for place in places), *self.aside]


def roles(schema: Any, target: Any, weight: Any, groups: Any) -> Roles:
    """Find the columns that are no features.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, or one has two roles.

    Examples
    --------
    >>> roles(pa.schema({"city": pa.string(), "sold": pa.int64()}), "sold", None, None).features
    ['city']
    """
    several = isinstance(target, (list, tuple))
    targets = [] if target is None else list(target) if several else [target]
    named = [("the target", name) for name in targets]
    named += [(role, name) for role, name in (("the weight", weight), ("the groups", groups)) if name is not None]
    seen: dict[str, str] = {}
    for role, name in named:
        if not isinstance(name, str):
            raise errors.not_a_column_name(role.removeprefix("the "), name)
        if name not in schema.names:
            raise errors.no_such_column(role.removeprefix("the "), name, schema.names)
        if name in seen:
            raise ValueError(f"column {name!r} is {seen[name]} and {role}. Give each its own column.")
        seen[name] = role
    result = Roles(list(schema.names), targets, several, weight, groups)
    if (several and not targets) or not result.features:
        raise ValueError(
            "The source has no columns but those of the target, weight and groups: nothing is left to encode."
        )
    return result


def with_columns(encoded: Any, others: Any) -> Any:
    """Return `encoded` with the columns of `others` after its own.

    Examples
    --------
    >>> with_columns(pa.table({"city": [0.5]}), pa.table({"y": [1]})).column_names
    ['city', 'y']
    """
    for field, column in zip(others.schema, others.columns, strict=True):
        if field.name in encoded.column_names:
            raise ValueError(f"the output would have two columns named {field.name!r}: rename it in the input")
        encoded = encoded.append_column(field, column)
    return encoded


def without_columns(table: Any, names: Sequence[str]) -> Any:
    """Return `table` without those of the named columns that it has."""
    return table.drop_columns([name for name in names if name in table.column_names])
