"""The categories of a level of a key as SQL rows: their values, and those of their answers that differ between rows."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from gpu_encode.serve.export import messages
from gpu_encode.serve.export.sql.names import column, identifier
from gpu_encode.serve.export.sql.values import Written, write, write_comparable
from gpu_encode.serve.export.tables import LevelTable

# sqlglot writes two rows of marks, and the rows of a level stand in their place, since trees of many rows take minutes.
# No name and no value holds this character.
MARK = "\0"
# What the source of the rows is called.
HELD = "held"


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
        # For each output, the answers for rows that have all values of the key, and for the others; none is refused.
        both: Any = level.present, level.lacking
        self.answers = [
            self._add_answers(output, columns[-1], *([row[output] for row in rows] for rows in both))
            for output in range(len(both[0][0]))
        ]

    def _add_values(self, number: int, values: Any, name: str) -> None:
        """Add the values of one column; a null becomes another value with a flag."""
        written, are_null = write_comparable(values, name, self.dialect), values.is_null().to_pylist()
        fill = None
        if any(are_null):
            known = None if all(are_null) else are_null.index(False)
            fill = exp.null() if known is None else written.typed(written.literal(known))
            filler = "0" if known is None else written.literals[known]
            self.held[f"missing_{number}"] = Written([str(int(is_null)) for is_null in are_null], self.dialect)
            filled = [filler if literal is None else literal for literal in written.literals]
            written = Written(filled, self.dialect) if known is None else written._replace(literals=filled)
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

    def texts(self) -> list[list[str]]:
        """Give the literals of each column as SQL."""
        return [written.texts() for written in self.held.values()]

    def select(self) -> Any:
        """Give the rows as a SELECT of two rows of marks, which `with_rows` replaces."""
        # SQLite gives these names to the columns of VALUES, and accepts no others.
        names = [f"column{number + 1}" for number in range(len(self.held))]
        alias = exp.TableAlias(this=identifier(HELD))
        if self.dialect != "sqlite":
            alias.set("columns", [*map(identifier, names)])
        # Two short rows would stand on one line.
        mark = MARK * max(1, 40 // len(names) ** 2)
        marks = [exp.Tuple(expressions=[exp.Var(this=mark) for _ in names]) for _ in range(2)]
        values = [written.typed(column(one, HELD)) for one, written in zip(names, self.held.values(), strict=True)]
        return self.select_from(exp.Values(expressions=marks, alias=alias), values)

    def select_from(self, source: Any, values: Sequence[Any]) -> Any:
        """Give the SELECT of the columns of the rows from a source, given as expressions."""
        named = (value.as_(identifier(name)) for name, value in zip(self.held, values, strict=True))
        return exp.select(*named, copy=False).from_(source, copy=False)


def with_rows(statement: str, levels: Iterable[Sequence[Sequence[str]]]) -> str:
    r"""Replace the rows of marks in a statement by the rows of each level, given as columns of literals.

    Examples
    --------
    >>> with_rows("VALUES (\0, \0), (\0, \0)", [[["1", "2", "3"], ["'a'", "'b'", "'c'"]]])
    "VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    """
    pieces = iter(re.split(f"{MARK}+", statement))
    written = [next(pieces)]
    for columns in levels:
        inside = [next(pieces) for _ in columns[1:]]
        between, *_ = [next(pieces) for _ in columns]
        row = "%s".join(["", *(piece.replace("%", "%%") for piece in inside), ""])
        written += [between.join(map(row.__mod__, zip(*columns, strict=True))), next(pieces)]
    return "".join(written)


def is_constant(answers: Sequence[Any]) -> bool:
    """Whether all answers are the same, including the sign of zeros."""
    first = repr(answers[0])
    return all(repr(answer) == first for answer in answers)


def write_answers(answers: Sequence[Any], name: str, dialect: str) -> Written:
    """Write encodings or indicators of one kind."""
    held = pa.array(answers)
    if pa.types.is_temporal(held.type):
        raise messages.not_exact("Dates as encodings", name, dialect)
    return write(held, name, dialect)


def is_null(value: Any) -> Any:
    """Whether a value is null."""
    return exp.Is(this=value, expression=exp.null())
