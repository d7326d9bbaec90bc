"""A fitted encoder as polars expressions, which encode lazy frames without this library."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpu_encode.encoders.base import Encoder
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.arrow import Output, as_array, as_json, outputs_of
from gpu_encode.serve.export.tables import KeyTable, LevelTable, some_rows, tables_to_leave
from gpu_encode.tables.categories.hierarchy import Bits, Parts, Prefixes

if TYPE_CHECKING:
    import polars as pl

# Most bits of a number that polars can compare and divide as an Int64.
WIDEST = 63


def to_polars(encoder: Encoder, *, min_count: float = 0, hash_key: bytes | None = None) -> "list[pl.Expr]":
    """Give a fitted encoder as polars expressions, one for each output, that encode frames and lazy frames.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder, whose encodings depend on single keys, of text, bytes, numbers or dates.
    min_count : float, default=0
        Categories, levels above and missing values with less weight are left out, and treated as unknown.
    hash_key : bytes, optional
        The expressions hold `hash_values` with this key instead of values, and read columns of these hashes. At least
        16 bytes.

    Returns
    -------
    list of polars.Expr
        In the order of the outputs, with their names; columns that pass through are last.  The expressions contain the
        categories, read columns by their names at fit (x0, x1 and so on, if they had none), and need neither a join nor
        this library when they run.

    Raises
    ------
    TypeError
        If encodings do not depend on single keys, or polars cannot represent the categories or the hierarchy.
    ValueError
        If the encoder refuses unknown or missing values, which expressions cannot do.  For `hash_key` as in `to_arrow`.
    ImportError
        If polars is not installed.

    Notes
    -----
    Values are compared as in `transform`: 2.0 equals 2, dates of different units are equal if they are the same
    instant, categoricals equal their text, null and NaN are missing.  A column of another kind than at fit is an error
    of polars: no "text column x". A column without any value, of type Null, fits
    every kind.  An infinite number, which `transform` refuses, is unknown.

    Examples
    --------
    >>> import polars as pl
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import to_polars
    >>> X = pl.DataFrame({"tree": ["oak", "oak", "elm"]})
    >>> encoder = TargetEncoder(smooth=0.0).fit(X, [0, 1, 1])
    >>> new = pl.LazyFrame({"tree": ["elm", "oak", "yew"]})
    >>> new.select(to_polars(encoder)).collect()["tree"].to_list()
    [1.0, 0.5, 0.6666666666666666]
    """
    try:
        import polars as pl
        import polars.selectors as cs
    except ImportError as error:
        raise ImportError("to_polars needs polars: pip install polars") from error
    tables = tables_to_leave(encoder, min_count, hash_key)
    made: dict[str, pl.Expr] = {}
    for number, key in enumerate(tables.keys):
        if key.width is None:
            made |= key_expressions(key, outputs_of(encoder, tables, number), encoder._model.indicators)
        else:
            made |= one_hot_expressions(key, tables.names[len(made) :], tables.dtype)
    # The name of a column that passes through may equal the name of one of them.
    return [*(made[name] for name in tables.names[: len(tables.order)]), *map(cs.by_name, tables.passed)]


def key_expressions(key: KeyTable, outputs: Sequence[Output], indicators: Sequence[str]) -> "dict[str, pl.Expr]":
    """Give an expression for each output of a key."""
    import polars as pl

    answers = [answer for level in key.levels for answer in level.present] + [key.unknown[0], key.missing]
    check_answers(key, answers)
    columns = columns_of(key)
    lacks, index = lacks_value(key, columns), answer_index(key, columns)
    if len(columns) == 1 or not key.missing_is_category:
        index = pl.when(lacks).then(len(answers) - 1).otherwise(index)
    made = {}
    for output in outputs[: len(outputs) - len(indicators)]:
        made[output.name] = chosen(index, answers, output)
    for name, output in zip(indicators, outputs[len(made) :], strict=True):
        flag = lacks.cast(chosen_type(output)) if name == "missing" else chosen(index, answers, output)
        made[output.name] = flag.alias(output.name)
    return made


def check_answers(key: KeyTable, answers: Sequence[Any]) -> None:
    """Raise ValueError if some rows are refused."""
    if None in answers:
        raise messages.cannot_refuse("polars", key.columns)


def columns_of(key: KeyTable) -> "list[Column]":
    """List the columns that a key reads."""
    return [Column(name, column_values(key, number)) for number, name in enumerate(key.columns)]


def lacks_value(key: KeyTable, columns: "Sequence[Column]") -> "pl.Expr":
    """Give the expression that a row lacks a value of the key itself."""
    import polars as pl

    return pl.any_horizontal([column.missing for column in columns[key.n_above :]])


def one_hot_expressions(key: KeyTable, names: Sequence[str], dtype: Any) -> "dict[str, pl.Expr]":
    """Give an expression for each column of zeros and ones of a key; `names` begins with their names."""
    import polars as pl

    kind = chosen_type(Output("", "", pa.from_numpy_dtype(dtype), 0))
    (level,), made = key.levels, {}
    check_answers(key, [*level.present, key.unknown[0], key.missing])
    assert key.width is not None
    for number, name in enumerate(names[: key.width]):
        # Only the categories of this column; if it is the column of unknown values, all categories of other columns.
        own, of_unknown = [answer == (number,) for answer in level.present], key.unknown[0] == (number,)
        of_column = key._replace(levels=[some_rows(level, np.array(own, bool) != of_unknown)])
        columns = columns_of(of_column)
        (known,) = of_column.levels
        if len(columns) == 1:
            # Ten times as fast as looking up numbers.
            has_one = columns[0].typed.is_in(columns[0].values.implode()).fill_null(value=False)
        else:
            has_one = answer_index(of_column, columns) < len(known.values)
        has_one = has_one != of_unknown
        if len(columns) == 1 or not key.missing_is_category:
            has_one = pl.when(lacks_value(key, columns)).then(key.missing == (number,)).otherwise(has_one)
        made[name] = has_one.cast(kind).alias(name)
    return made


def chosen(index: "pl.Expr", answers: Sequence[Any], output: Output) -> "pl.Expr":
    """Give one output of the answer with this index."""
    import polars as pl

    values = pl.Series(values=as_array([as_json(answer[output.number]) for answer in answers], output.type))
    return index.replace_strict(pl.Series(np.arange(len(answers))), values).alias(output.name)


def chosen_type(output: Output) -> Any:
    """Give the polars type of an output."""
    import polars as pl

    return pl.Series(values=as_array([], output.type)).dtype


def column_values(key: KeyTable, number: int) -> Any:
    """Give the distinct values of a column of a key, on all levels that have it, without null."""
    name = key.columns[number]
    levels = key.levels[:1] if key.rule else [level for level in key.levels if name in level.values.column_names]
    chunks = [chunk for level in levels for chunk in level.values[name].chunks]
    return pa.chunked_array(chunks, levels[0].values[name].type).unique().drop_null()


def answer_index(key: KeyTable, columns: "Sequence[Column]") -> "pl.Expr":
    """Give the index, among a key's answers, of a row's category, or its nearest known level, or the unknown value."""
    import polars as pl

    found, start = [], 0
    for depth, level in enumerate(key.levels):
        if len(columns) == 1:
            known = pl.Series(values=level.values[key.columns[0]])
            code = columns[0].typed if not depth else label_of(key, depth, columns[0])
            known = columns[0].as_typed(known) if not depth else known
        else:
            code, known = joint_code(level, columns)
        indices = pl.Series(np.arange(start, start + len(level.values)))
        found.append(code.replace_strict(known, indices, default=None, return_dtype=pl.Int64))
        start += len(level.values)
    return pl.coalesce([*found, pl.lit(start, pl.Int64)])


def joint_code(level: LevelTable, columns: "Sequence[Column]") -> "tuple[pl.Expr, pl.Series]":
    """Give the number of a row's values in several columns, and the number for each row of a level.

    Columns are joined from the left, and the result is numbered again each time, so that no product is large.
    """
    import polars as pl

    code, known = columns[0].code, columns[0].codes_of(level.values.column(0))
    for number, column in enumerate(columns[1 : level.values.num_columns], 1):
        if number > 1:
            distinct, known = np.unique(known, return_inverse=True)
            code = code.replace_strict(
                pl.Series(distinct), pl.Series(np.arange(len(distinct))), default=None, return_dtype=pl.Int64
            )
        size = len(column.values) + 1
        code = code * size + column.code
        known = known * size + column.codes_of(level.values.column(number))
    return code, pl.Series(known)


class Column:
    """The expressions for a column that a key reads.

    Parameters
    ----------
    name : str
    values : pyarrow.Array
        The known distinct values, without null.

    Attributes
    ----------
    missing : polars.Expr
        Whether a row has no value.
    typed : polars.Expr
        The value in the type of the known values; null if this type cannot hold it.
    """

    def __init__(self, name: str, values: Any) -> None:
        import polars as pl
        import polars.selectors as cs

        self.values = pl.Series(values=values)
        dtype = self.values.dtype
        if dtype == pl.Null:
            self.values = self.values.cast(pl.String)
            dtype, kind, allowed = pl.String(), "any", cs.all()
        elif dtype == pl.String:
            kind, allowed = "text", cs.string(include_categorical=True) | cs.by_dtype(pl.Enum)
        elif dtype == pl.Binary:
            kind, allowed = "bytes", cs.binary()
        elif dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean:
            kind, allowed = "number", cs.integer() | cs.float() | cs.boolean()
        elif isinstance(dtype, pl.Date | pl.Datetime):
            zoned = zone_of(dtype) is not None
            kind, allowed = (
                ("moment", cs.datetime(time_zone="*")) if zoned else ("date", cs.datetime(time_zone=None) | cs.date())
            )
        else:
            raise messages.not_exact(f"Values of type {dtype}", name, "polars")
        # A column of another type is an error of polars: no "text column x".  Names are not read as patterns.
        self.values = self.as_typed(self.values)
        wanted = self.values.dtype
        empty = (cs.by_name(name) & (cs.by_dtype(pl.Null) - allowed)).cast(wanted)
        found = [each.name.prefix(f"{kind} column ") for each in (cs.by_name(name) & allowed, empty)]
        given = pl.struct(*found, pl.lit(None).alias("other")).struct.field(f"{kind} column {name}")
        self.missing, self.typed = given.is_null(), given.cast(wanted, strict=False)
        if wanted.is_numeric():
            self.missing = given.cast(pl.Float64).fill_nan(None).is_null()
            whole = [value.cast(pl.Int128, strict=False) for value in (given, self.typed)]
            self.typed = pl.when(self.typed == given, whole[0].eq_missing(whole[1])).then(self.typed)
        elif isinstance(wanted, pl.Datetime):
            same = self.typed.dt.timestamp("ns") == given.dt.timestamp("ns")
            self.typed = pl.when(same).then(self.typed)

    def as_typed(self, values: "pl.Series") -> "pl.Series":
        """Give known values in the type in which all values of their kind are compared."""
        import polars as pl

        dtype = values.dtype
        if isinstance(dtype, pl.Date | pl.Datetime):
            unit = "ns" if isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns" else "us"
            return values.cast(pl.Datetime(unit, zone_of(dtype) and "UTC"))
        if dtype.is_float():
            return values.cast(pl.Float64)
        if dtype.is_integer() or dtype == pl.Boolean:
            return values.cast(pl.UInt64 if dtype == pl.UInt64 else pl.Int64)
        return values

    @property
    def code(self) -> "pl.Expr":
        """Number of a row's value among the known ones; the next number if it is missing; null if it is unknown."""
        import polars as pl

        codes = pl.Series(np.arange(len(self.values)))
        known = self.typed.replace_strict(self.values, codes, default=None, return_dtype=pl.Int64)
        return pl.when(self.missing).then(len(self.values)).otherwise(known)

    def codes_of(self, values: Any) -> Any:
        """Give the same numbers for some values."""
        import polars as pl

        typed = self.as_typed(pl.Series(values=values).cast(self.values.dtype))
        codes = typed.replace_strict(self.values, pl.Series(np.arange(len(self.values))), default=None)
        return codes.cast(pl.Int64).fill_null(len(self.values)).to_numpy()


def zone_of(dtype: Any) -> str | None:
    """Give the time zone of a polars type, if it has one."""
    return getattr(dtype, "time_zone", None)


def label_of(key: KeyTable, depth: int, column: Column) -> "pl.Expr":
    """Give the label of a row's value on a level above that a rule makes."""
    import polars as pl

    rule, value = key.rule, column.typed
    if isinstance(rule, Prefixes):
        length = rule.lengths[depth - 1]
        return pl.when(value.str.len_chars() > length).then(value.str.slice(0, length))
    if isinstance(rule, Parts):
        kept, parts = len(key.levels) - depth, value.str.split(rule.separator)
        top = parts.list.tail(kept) if rule.from_end else parts.list.head(kept)
        return pl.when(parts.list.len() > kept).then(top.list.join(rule.separator))
    assert isinstance(rule, Bits)
    if not column.values.dtype.is_numeric() or rule.width > WIDEST:
        raise messages.not_exact(f"Levels by {rule}", key.columns[0], "polars")
    whole = value.cast(pl.Int64, strict=False)
    inside = whole.is_between(0, (1 << rule.width) - 1) & (whole == value)
    return pl.when(inside).then(whole // (1 << (rule.width - rule.lengths[depth - 1])))
