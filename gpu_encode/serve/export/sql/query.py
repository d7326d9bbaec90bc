"""The query of an encoder: it joins the columns of the keys with the levels of each key, and gives encodings."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from gpu_encode.serve.export.sql.columns import comparable, raise_error
from gpu_encode.serve.export.sql.levels import LevelRows, is_null, write_answers
from gpu_encode.serve.export.sql.names import LevelIndex, column, identifier, level_table
from gpu_encode.serve.export.tables import Answer, EncoderTables, KeyTable, LevelTable

# A condition, and the value that is given if the condition holds.
Case = tuple[Any, Any]
# The name of the table of rows in the statement.
TABLE = "given"


class Query:
    """The query of an encoder.

    Parameters
    ----------
    tables : EncoderTables
    dialect : str
    prefix : str
        Beginning of the names that the statement gives to its parts.
    category_tables : Table, optional
        Beginning of the names of tables of categories, if the database has them already.
    """

    def __init__(self, tables: EncoderTables, dialect: str, prefix: str, category_tables: Any = None) -> None:
        self.tables, self.dialect, self.prefix, self.category_tables = tables, dialect, prefix, category_tables
        # The columns that are read from the table, by the names that they get.
        self.read: dict[str, Any] = {}
        self.levels: dict[LevelIndex, LevelRows] = {
            index: LevelRows(level, tables.keys[index[0]].columns, dialect, f"{prefix}_{index[0]}_{index[1]}")
            for index, level in levels_of(tables)
        }

    def select(self, table: Any, keep: Sequence[str]) -> Any:
        """Give the query of the rows of a table."""
        answers = [answer for number in range(len(self.tables.keys)) for answer in self.answers(number)]
        outputs = [self.read_column(name) for name in keep]
        outputs += [answers[number] for number in self.tables.order]
        outputs += [self.read_column(name) for name in self.tables.passed]
        named = zip(outputs, [*keep, *self.tables.names], strict=True)
        query = exp.select(*(exp.alias_(value, identifier(name), copy=False) for value, name in named), copy=False)
        query.from_(exp.Table(this=identifier(self.prefix)), copy=False)
        for index, rows in self.levels.items():
            held = exp.Table(this=identifier(rows.name))
            if self.category_tables is not None:
                held = level_table(self.category_tables, index).as_(identifier(rows.name), table=True)
            query.join(held, on=exp.and_(*self.conditions(index)), join_type="left", copy=False)
        # Now all columns that are read are known.
        read = exp.select(*(value.as_(identifier(name)) for name, value in self.read.items()))
        read.from_(table.as_(identifier(TABLE), table=True), copy=False)
        query.with_(identifier(self.prefix), as_=read, copy=False)
        for rows in self.levels.values() if self.category_tables is None else ():
            query.with_(identifier(rows.name), as_=rows.select(), copy=False)
        return query

    def read_column(self, name: str, values: Any = None, length: int | None = None) -> Any:
        """Read a column of the table, unchanged or in a form to compare with `values`; with `length`, only a prefix."""
        value = column(name, TABLE)
        if values is not None:
            value = comparable(name, value, values, self.dialect, length)
        same = [known for known, one in self.read.items() if one == value]
        alias = same[0] if same else f"column_{len(self.read)}"
        self.read[alias] = value
        return column(alias, self.prefix)

    def columns(self, index: LevelIndex) -> list[Any]:
        """Give the expressions that are compared with the columns of a level."""
        number, depth = index
        key = self.tables.keys[number]
        length = key.rule.lengths[depth - 1] if key.rule is not None and depth else None
        columns = key.levels[depth].values.columns
        return [self.read_column(name, values, length) for name, values in zip(key.columns, columns, strict=False)]

    def conditions(self, index: LevelIndex) -> list[Any]:
        """Give the condition that a row belongs to a level: only equalities, which every engine joins in one pass."""
        rows, conditions = self.levels[index], []
        for number, (own, fill) in enumerate(zip(self.columns(index), rows.fills, strict=True)):
            value = column(f"value_{number}", rows.name)
            if fill is None:
                conditions.append(own.eq(value))
                continue
            is_missing = exp.case().when(is_null(own), exp.convert(1)).else_(exp.convert(0))
            conditions.append(is_missing.eq(column(f"missing_{number}", rows.name)))
            if not isinstance(fill, exp.Null):
                conditions.append(exp.Coalesce(this=own.copy(), expressions=[fill.copy()]).eq(value))
        return conditions

    def answers(self, number: int) -> list[Any]:
        """Give the answers of a key: an expression for each of its encodings and indicators."""
        key = self.tables.keys[number]
        lacks = exp.or_(*map(is_null, self.columns((number, 0))[key.n_above :]))
        levels = [rows for index, rows in self.levels.items() if index[0] == number]
        missing_first = len(key.columns) == 1 or not key.missing_is_category
        found = []
        for output in range(width_of(key)):
            of_unknown, if_lacking, of_missing = (self.literal(key, one, output) for one in (*key.unknown, key.missing))
            cases = until_last([(rows.found, rows.answers[output][0]) for rows in levels], of_unknown)
            of_lacking = until_last([(rows.found, rows.answers[output][1]) for rows in levels], if_lacking)
            if missing_first:
                cases = [(lacks, of_missing), *cases]
            elif (of_lacking, if_lacking) != (cases, of_unknown):
                of_lacking = [(exp.and_(lacks, is_known), value) for is_known, value in of_lacking]
                cases = [*of_lacking, (lacks, if_lacking), *cases]
            found.append(self.choose(until_last(cases, of_unknown), of_unknown, number))
        if key.width is None:
            return found
        zero, one = (write_answers([value], "", self.dialect).one() for value in np.arange(2, dtype=self.tables.dtype))
        are_ones = [exp.EQ(this=found[0].copy(), expression=exp.convert(code)) for code in range(key.width)]
        return [exp.case().when(is_one, one.copy(), copy=False).else_(zero.copy(), copy=False) for is_one in are_ones]

    def literal(self, key: KeyTable, answer: Answer, output: int) -> Any:
        """Write one encoding or indicator; None if rows are refused."""
        return None if answer is None else write_answers([answer[output]], key.columns[-1], self.dialect).one()

    def choose(self, cases: Sequence[Case], default: Any, number: int) -> Any:
        """Give the value of the first case that holds, by the rules that `tables` states; without a case, an error."""
        if not cases and default is not None:
            return default
        whole, name = exp.case(), ", ".join(self.tables.keys[number].columns)
        told = f"transform refuses this unknown or missing value of {name!r}: "
        refused = raise_error(told, self.columns((number, 0))[-1], self.dialect)
        for condition, value in cases:
            if value is None:
                whole.when(exp.case().when(condition.copy(), refused.copy()), exp.null(), copy=False)
            else:
                whole.when(condition.copy(), value.copy(), copy=False)
        if default is None:
            return whole.when(refused, exp.null(), copy=False).else_(exp.null(), copy=False)
        return whole.else_(default, copy=False)


def width_of(key: KeyTable) -> int:
    """Give the number of encodings and indicators of a key."""
    answers = [*(answer for level in key.levels for answer in level.present[:1]), *key.unknown, key.missing]
    widths = [len(answer) for answer in answers if answer is not None]
    if not widths:
        name = ", ".join(key.columns)
        raise ValueError(f"No category of {name!r} is left, and a policy refuses all other rows. Lower min_count.")
    return widths[0]


def until_last(cases: list[Case], default: Any) -> list[Case]:
    """Remove the last cases if their value is the default."""
    n_kept = len(cases)
    while n_kept and cases[n_kept - 1][1] == default:
        n_kept -= 1
    return cases[:n_kept]


def levels_of(tables: EncoderTables) -> Iterator[tuple[LevelIndex, LevelTable]]:
    """Give the levels that hold categories, each with the number of its key and its depth."""
    for number, key in enumerate(tables.keys):
        for depth, level in enumerate(key.levels):
            if len(level.values):
                yield (number, depth), level
