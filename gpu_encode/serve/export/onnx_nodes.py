"""Keys of a fitted encoder as nodes of an ONNX graph: columns become codes, and codes choose a row of a table."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.tables import EncoderTables, KeyTable

# The newest operator sets that are used.
OPSET, ML, ML_OPSET = 15, "ai.onnx.ml", 2
# Code of an unknown value; codes of values begin with 1, and the code of a missing value is the last.
UNKNOWN_CODE = 0
_WHOLE = 1 << 63


class Nodes(Protocol):
    """A graph to which nodes can be added; each method gives the name of the node's output."""

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node."""

    def constant(self, array: Array) -> str:
        """Add a constant."""


class InputColumn(NamedTuple):
    """An input column of a graph.

    Parameters
    ----------
    label : str
    tensor : str
        Name of a tensor of shape (n_rows,).
    type : numpy.dtype
        Type of its values; object for text.
    """

    label: str
    tensor: str
    type: np.dtype[Any]


class Codes(NamedTuple):
    """Codes of a column's values.

    Parameters
    ----------
    tensor : str
        Name of an int64 tensor of shape (n_rows,).
    missing : int
        Code of a missing value.
    may_miss : bool
        Whether values may be missing at all.
    """

    tensor: str
    missing: int
    may_miss: bool


def write_encodings(
    nodes: Nodes,
    tables: EncoderTables,
    columns: Mapping[str, InputColumn],
    passed: Sequence[str],
    dtype: np.dtype[Any],
    missing_text: str | None,
) -> str:
    """Write all outputs of an encoder as one matrix; give the name of its tensor.

    Parameters
    ----------
    nodes : Nodes
    tables : EncoderTables
    columns : dict of str to InputColumn
        All columns that are read.
    passed : list of str
        Columns that pass through.
    dtype : numpy.dtype
        Type of the matrix.
    missing_text : str, optional
        The text that means a missing value.
    """
    if text := [label for label in passed if columns[label].type.kind == "O"]:
        raise TypeError(
            f"Columns {text} of text pass through, and the output of a graph of ONNX is one matrix of numbers. Leave "
            "columns that pass through out with passed=False."
        )
    parts = [write_key(nodes, key, [columns[name] for name in key.columns], dtype, missing_text) for key in tables.keys]
    matrix = joined(nodes, parts)
    if tables.order != sorted(tables.order):
        matrix = nodes.add("Gather", matrix, nodes.constant(np.array(tables.order)), axis=1)
    if passed:
        one_column = nodes.constant(np.array([-1, 1]))
        values = [cast(nodes, columns[name].tensor, columns[name].type, dtype) for name in passed]
        matrix = joined(nodes, [matrix, *(nodes.add("Reshape", tensor, one_column) for tensor in values)])
    return matrix


def needed_columns(tables: EncoderTables, passed: Sequence[str]) -> list[str]:
    """List the columns that a graph reads: those of all keys, and those that pass through."""
    return list(dict.fromkeys([*(label for key in tables.keys for label in key.columns), *passed]))


def joined(nodes: Nodes, parts: Sequence[str]) -> str:
    """Join matrices side by side."""
    return parts[0] if len(parts) == 1 else nodes.add("Concat", *parts, axis=1)


def cast(nodes: Nodes, tensor: str, dtype: np.dtype[Any], to: np.dtype[Any]) -> str:
    """Give a tensor in another type."""
    from onnx.helper import np_dtype_to_tensor_dtype

    return tensor if dtype == to else nodes.add("Cast", tensor, to=np_dtype_to_tensor_dtype(to))


def write_key(
    nodes: Nodes, key: KeyTable, columns: Sequence[InputColumn], dtype: np.dtype[Any], missing_text: str | None
) -> str:
    """Write the encodings of one key: a matrix of shape (n_rows, n_outputs of the key)."""
    if key.width is None:
        return write_answers(nodes, key, columns, dtype, missing_text)
    code = write_answers(nodes, key, columns, np.dtype(np.int64), missing_text)
    ones = nodes.add("Equal", code, nodes.constant(np.arange(key.width)))
    return cast(nodes, ones, np.dtype(bool), dtype)


def write_answers(
    nodes: Nodes, key: KeyTable, columns: Sequence[InputColumn], dtype: np.dtype[Any], missing_text: str | None
) -> str:
    """Write the encodings and indicators of rows for one key, from its tables."""
    present, lacking = answer_tables(key, dtype)
    if key.rule is not None:
        label = columns[0].label
        raise TypeError(
            f"The levels above {label!r} follow from its values by {key.rule!r}, for which ONNX has no operator. Write "
            f"them into columns, and fit with hierarchy={{{label!r}: [...]}}."
        )
    coded = [code_values(key, number) for number in range(len(columns))]
    codes = [
        write_codes(nodes, column, values, missing_text) for column, (values, _) in zip(columns, coded, strict=True)
    ]
    if len(codes) == 1:
        # Unknown, the categories, and missing: the rows of the table, in its order.
        return nodes.add("Gather", nodes.constant(present), codes[0].tensor, axis=0)
    row = write_row(nodes, key, codes, [of_levels for _, of_levels in coded])
    lacks = [
        nodes.add("Equal", code.tensor, nodes.constant(np.array(code.missing)))
        for code in codes[key.n_above :]
        if code.may_miss
    ]
    same = key.missing_is_category and np.array_equal(present, lacking, equal_nan=True)
    if not lacks or same:
        return nodes.add("Gather", nodes.constant(present), row, axis=0)
    table = np.concatenate([present, lacking]) if key.missing_is_category else present
    if key.missing_is_category:
        # The second table follows the first one.
        instead = nodes.add("Add", row, nodes.constant(np.array(len(present))))
    else:
        instead = nodes.constant(np.array(len(present) - 1))
    row = nodes.add("Where", reduce(lambda one, other: nodes.add("Or", one, other), lacks), instead, row)
    return nodes.add("Gather", nodes.constant(table), row, axis=0)


def answer_tables(key: KeyTable, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Give the rows of the tables: of unknown values, of levels from the top, of categories, then of missing values.

    There are two such tables: for rows with all values of the key, and for rows that lack some.
    """
    levels = key.levels[::-1]
    present = [key.unknown[0], *(answer for level in levels for answer in level.present), key.missing]
    lacking = [key.unknown[1], *(answer for level in levels for answer in level.lacking), key.missing]
    if None in present or None in lacking:
        raise messages.cannot_refuse("ONNX", key.columns[key.n_above :])
    if any(not isinstance(value, int | float) for answer in present if answer is not None for value in answer):
        raise messages.not_exact("Text or dates as encodings", key.columns[-1], "ONNX")
    return np.array(present, dtype), np.array(lacking, dtype)


def code_values(key: KeyTable, number: int) -> tuple[Any, list[NDArray[np.int64]]]:
    """Give the distinct values of a column of a key, and their codes in each level that has this column."""
    columns = [level.values.column(number) for level in key.levels if number < level.values.num_columns]
    chunks = [chunk for column in columns for chunk in column.chunks]
    every = pa.chunked_array(chunks, columns[0].type).combine_chunks().dictionary_encode()
    codes = pc.fill_null(every.indices, len(every.dictionary)).to_numpy().astype(np.int64) + 1
    return every.dictionary, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def write_codes(nodes: Nodes, column: InputColumn, values: Any, missing_text: str | None) -> Codes:
    """Write the codes of a column's values, by exact comparisons for all types."""
    missing, kind = len(values) + 1, values.type
    is_text = pa.types.is_large_string(kind)
    if not (is_text or is_number(kind) or pa.types.is_null(kind)):
        raise messages.not_exact(f"Values of type {kind}", column.label, "ONNX")
    if not pa.types.is_null(kind) and is_text != (column.type.kind == "O"):
        fitted, given = "text" if is_text else "numbers", "str" if column.type.kind == "O" else column.type.name
        raise TypeError(f"Column {column.label!r} was fitted on {fitted}, but the type of its input is {given!r}.")
    if column.type.kind == "O":
        codes = {text: code for code, text in enumerate(values.cast(pa.large_binary()).to_pylist(), 1)}
        if missing_text is not None and codes.setdefault(missing_text.encode(), missing) != missing:
            raise ValueError(
                f"missing_text={missing_text!r} is a category of column {column.label!r}, and would be a missing value "
                "as well. Choose another text, and write it where values are missing."
            )
        return Codes(look_up(nodes, column.tensor, "keys_strings", codes), missing, missing_text is not None)
    numbers: list[Any] = [] if pa.types.is_null(kind) else values.to_numpy(zero_copy_only=False).tolist()
    if column.type.kind in "biu":
        whole = {int(number): code for code, number in enumerate(numbers, 1) if int(number) == number}
        inside = {number: code for number, code in whole.items() if -_WHOLE <= number < _WHOLE}
        tensor = cast(nodes, column.tensor, column.type, np.dtype(np.int64))
        return Codes(look_up(nodes, tensor, "keys_int64s", inside), missing, False)
    return Codes(write_codes_of_floats(nodes, column, numbers, missing), missing, True)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is a type of numbers that NumPy has, too."""
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def write_codes_of_floats(nodes: Nodes, column: InputColumn, numbers: Sequence[Any], missing: int) -> str:
    """Write the codes of a column of floats, in which NaN is a missing value."""
    nearest = rounded(numbers, column.type)
    # No row can have a number that the column's type cannot hold.
    held = {near: code for code, (near, number) in enumerate(zip(nearest, numbers, strict=True), 1) if near == number}
    single = cast(nodes, column.tensor, column.type, np.dtype(np.float32))
    if column.type != np.float64:
        codes = look_up(nodes, single, "keys_floats", held)
    else:
        codes = write_codes_of_doubles(nodes, column.tensor, single, held)
    return nodes.add("Where", nodes.add("IsNaN", single), nodes.constant(np.array(missing)), codes)


def write_codes_of_doubles(nodes: Nodes, tensor: str, single: str, held: Mapping[float, int]) -> str:
    """Write the codes of float64 numbers, which most runtimes can only look up as float32.

    The nearest float32 leaves only a few candidates for a number, and these are compared with it.
    """
    groups: dict[float, list[float]] = {}
    for near, number in zip(rounded(list(held), np.dtype(np.float32)), held, strict=True):
        groups.setdefault(near, []).append(number)
    # NaN does not equal anything.
    members = np.full((len(groups) + 1, max(map(len, groups.values()), default=1)), np.nan)
    codes = np.full(members.shape, UNKNOWN_CODE)
    for row, of_row in enumerate(groups.values(), 1):
        members[row, : len(of_row)], codes[row, : len(of_row)] = of_row, [held[number] for number in of_row]
    group = look_up(nodes, single, "keys_floats", {near: row for row, near in enumerate(groups, 1)})
    one_column = nodes.add("Reshape", tensor, nodes.constant(np.array([-1, 1])))
    equal = nodes.add("Equal", nodes.add("Gather", nodes.constant(members), group, axis=0), one_column)
    of_group = nodes.add("Gather", nodes.constant(codes), group, axis=0)
    found = nodes.add("Where", equal, of_group, nodes.constant(np.array(UNKNOWN_CODE)))
    return nodes.add("ReduceSum", found, nodes.constant(np.array([1])), keepdims=0)


def rounded(numbers: Sequence[Any], dtype: np.dtype[Any]) -> list[float]:
    """Round each number to a type of floats; numbers beyond its largest become infinity."""
    with np.errstate(over="ignore"):
        return [float(dtype.type(number)) for number in numbers]


def look_up(nodes: Nodes, tensor: str, keys: str, codes: Mapping[Any, int]) -> str:
    """Write a look-up from values to codes; other values get the code of an unknown value."""
    # A table needs at least one row.
    nothing: Any = {"keys_strings": b"", "keys_int64s": 0, "keys_floats": 0.0}[keys]
    rows = codes or {nothing: UNKNOWN_CODE}
    values = {"values_int64s": [*rows.values()], "default_int64": UNKNOWN_CODE}
    return nodes.add("LabelEncoder", tensor, domain=ML, **{keys: [*rows]}, **values)


def write_row(nodes: Nodes, key: KeyTable, codes: Sequence[Codes], of_levels: Sequence[Sequence[Array]]) -> str:
    """Write the number of the table's row for each row's category, or for its nearest known level above.

    Columns are joined one by one, as `CategoryIndex.prefixes` does; the number of a prefix that occurs, times the codes
    of the next column, stays far below the limit of int64.  Levels follow each other in the table from the top, so the
    highest row number is that of the nearest level.
    """
    first = np.cumsum([1, *(len(level.values) for level in key.levels[:0:-1])])[::-1]
    prefix, n_prefixes, found = codes[0].tensor, codes[0].missing, []
    # For each level that has the columns so far: the prefix of each of its rows.
    prefixes = list(of_levels[0])
    for depth, code in enumerate(codes):
        if depth:
            radix = code.missing + 1
            keys = [prefixes[level] * radix + of_level for level, of_level in enumerate(of_levels[depth])]
            distinct = np.unique(np.concatenate(keys))
            shifted = nodes.add("Mul", prefix, nodes.constant(np.array(radix)))
            together = nodes.add("Add", shifted, code.tensor)
            prefix = look_up(
                nodes, together, "keys_int64s", dict(zip(distinct.tolist(), range(1, len(distinct) + 1), strict=True))
            )
            prefixes, n_prefixes = [np.searchsorted(distinct, each) + 1 for each in keys], len(distinct)
        for level, table in enumerate(key.levels):
            if table.values.num_columns == depth + 1:
                rows = np.zeros(n_prefixes + 1, np.int64)
                rows[prefixes[level]] = first[level] + np.arange(len(table.values))
                found.append(nodes.add("Gather", nodes.constant(rows), prefix, axis=0))
    return found[0] if len(found) == 1 else nodes.add("Max", *found)
