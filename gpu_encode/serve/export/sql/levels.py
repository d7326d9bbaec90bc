"""The categories of a level of a key as SQL rows: their values, and those of their answers that differ between rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_encode.serve.export import messages
from gpu_encode.serve.export.sql.names import column, identifier
from gpu_encode.serve.export.sql.values import Written, write, write_comparable
from gpu_encode.serve.export.tables import LevelTable


class LevelRows:
    """The rows of one level.

    Parameters
    ----------
    level : LevelTable
    columns : list of str
        Columns of the key.
    dialect : str
    name : str
        Name of the rows in joins.

    Attributes
    ----------
    fills : list of Expression or None
        For each column, the value that replaces nulls, which a flag marks; None if there are no nulls, and NULL if
        there are only nulls.
    """

    def __init__(self, level: LevelTable, columns: Sequence[str], dialect: str, name: str) -> None:
        self.dialect, self.name = dialect, name
        self.held: dict[str, Written] = {}
        self.fills: list[Any] = []
        for number, values in enumerate(level.values.columns):
            self._add_values(number, values.combine_chunks(), columns[number])
        both = zip(zip(*level.present, strict=True), zip(*level.lacking, strict=True), strict=True)
        # For each output, the answers for rows that have all values of the key, and for the others.
        self.answers = [self._add_answers(output, columns[-1], *answers) for output, answers in enumerate(both)]

    def _add_values(self, number: int, values: Any, name: str) -> None:
        """Add the values of one column; a null becomes another value with a flag."""
        written, are_null = write_comparable(values, name, self.dialect), values.is_null().to_pylist()
        fill = None
        if any(are_null):
            filler = exp.convert(0) if all(are_null) else written.literals[are_null.index(False)]
            fill = exp.null() if all(are_null) else written.typed(filler.copy())
            self.held[f"missing_{number}"] = Written([exp.convert(int(is_null)) for is_null in are_null])
            both = zip(are_null, written.literals, strict=True)
            filled = [filler.copy() if is_null else one for is_null, one in both]
            written = Written(filled, None if all(are_null) else written.type)
        self.fills.append(fill)
        self.held[f"value_{number}"] = written

    def _add_answers(self, output: int, name: str, present: Sequence[Any], lacking: Sequence[Any]) -> tuple[Any, Any]:
        """Add one encoding or indicator, unless it is the same in all rows."""
        if is_constant(present):
            of_present = write_answers(present[:1], name, self.dialect).one()
        else:
            self.held[f"answer_{output}"] = write_answers(present, name, self.dialect)
            of_present = column(f"answer_{output}", self.name)
        # Only indicators differ, and these are the same in all rows of a level.
        return of_present, write_answers(lacking[:1], name, self.dialect).one() if is_constant(lacking) else of_present

    @property
    def found(self) -> Any:
        """Whether a row has one of the categories."""
        return exp.not_(is_null(column("value_0", self.name)))

    def select(self, start: int = 0, stop: int | None = None) -> Any:
        """Give a range of the rows as a SELECT."""
        rows = zip(*(written.literals[start:stop] for written in self.held.values()), strict=True)
        # SQLite gives these names to the columns of VALUES, and accepts no others.
        names = [f"column{number + 1}" for number in range(len(self.held))]
        alias = exp.TableAlias(this=identifier("held"))
        if self.dialect != "sqlite":
            alias.set("columns", [*map(identifier, names)])
        values = exp.Values(expressions=[exp.Tuple(expressions=list(row)) for row in rows], alias=alias)
        typed = [
            written.typed(column(one, "held")).as_(identifier(name))
            for one, (name, written) in zip(names, self.held.items(), strict=True)
        ]
        return exp.select(*typed, copy=False).from_(values, copy=False)


def is_constant(answers: Sequence[Any]) -> bool:
    """Whether all answers are the same, including the sign of zeros."""
    return len(set(map(repr, answers))) == 1


def write_answers(answers: Sequence[Any], name: str, dialect: str) -> Written:
    """Write encodings or indicators of one kind."""
    held = pa.array(answers)
    if pa.types.is_temporal(held.type):
        raise messages.not_exact("Dates as encodings", name, dialect)
    return write(held, name, dialect)


def is_null(value: Any) -> Any:
    """Whether a value is null."""
    return exp.Is(this=value, expression=exp.null())
