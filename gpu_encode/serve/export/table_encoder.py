"""Encoders from Arrow tables, with the bits of the encoder from which the tables were made."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, Array
from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.ordinal.encoder import in_number_type
from gpu_encode.encoders.row_encoder import order_of
from gpu_encode.fitting.columns import ColumnMap, Selection
from gpu_encode.fitting.model import LookupTable, Model, TargetInfo
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.seam.ops import Ops, host
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.arrow import RULES, VERSION, as_array
from gpu_encode.sums.targets import NO_TARGET
from gpu_encode.tables import frames
from gpu_encode.tables.categories import hierarchy
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words.annotations import Device

# A column of text or dates: its values, and its name for messages.
Labels = tuple[Vocabulary, str] | None


def from_arrow(tables: Any) -> "TableEncoder":
    """Give an encoder that uses tables of `to_arrow`, with the same bits.

    Parameters
    ----------
    tables : dict or other collection of pyarrow.Table
        All tables of one encoder, in any order, with their metadata: read from Parquet files, Feather files or a
        stream. Their rows may be in any order; if rows were removed, their categories are unknown.

    Returns
    -------
    TableEncoder
        It transforms frames of every kind, in memory, of Dask, Spark and Ray, and from files, and has a `row_encoder`.
        It cannot learn, since the tables have no sums.

    Raises
    ------
    ValueError
        If tables lack their metadata, belong to several encoders, or contain a category twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode import TargetEncoder
    >>> from gpu_encode.export import from_arrow, to_arrow
    >>> X = pd.DataFrame({"tree": ["oak", "oak", "elm"]})
    >>> tables = to_arrow(TargetEncoder(smooth=0.0).fit(X, [0, 1, 1]))
    >>> from_arrow(tables).transform(pd.DataFrame({"tree": ["oak", "yew"]}))
           tree
    0  0.500000
    1  0.666667
    """
    if isinstance(tables, str | pa.Table) or not isinstance(tables, Iterable):
        tables = [tables]
    try:
        model = make_model(*read_rules(list(tables.values() if isinstance(tables, Mapping) else tables)))
    except (LookupError, TypeError, AttributeError, pa.ArrowInvalid, json.JSONDecodeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"The tables do not fit their own rules ({reason}). Export the encoder anew.") from error
    encoder = TableEncoder()
    encoder._model, encoder.device_, encoder.n_features_in_ = model, "cpu", model.n_features
    if model.feature_names is not None:
        encoder.feature_names_in_ = np.array(model.feature_names, dtype=object)
    return encoder


@dataclass(eq=False, repr=False, kw_only=True)
class TableEncoder(Encoder):
    """An encoder from tables, as `from_arrow` makes it.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}, default="auto"
    """

    device: Device = "auto"

    def _parameters(self) -> Parameters:
        raise messages.tables_cannot_learn()

    def merge(self, *_: Encoder) -> "TableEncoder":
        """Refuse to merge other encoders."""
        raise messages.tables_cannot_learn()

    def _encoded_names(self, model: Model, names: Any) -> list[str]:
        assert isinstance(model, TableModel)
        entries = model.selection.names(names)
        encoded = [
            f"{name}{suffix}" for name, suffixes in zip(entries, model.suffixes, strict=True) for suffix in suffixes
        ]
        flags = [f"{name}_{indicator}" for name in entries for indicator in model.indicators]
        return in_order(model, [*encoded, *flags])

    def _finish(self, model: Model, arrays: list[Array]) -> list[Any]:
        return in_order(model, super()._finish(model, in_number_type(arrays, self._output_type)))

    @property
    def _output_type(self) -> np.dtype[Any]:
        assert isinstance(self._model, TableModel)
        return np.dtype(self._model.output_type)


@dataclass(frozen=True, eq=False)
class TableModel(Model):
    """A model with encodings instead of the sums from which they were computed.

    Parameters
    ----------
    held : list of LookupTable
        The look-up table of each key, on the host.
    labels : list of list of (Vocabulary, str) or None
        For each key and output, the values that its encodings number, and their column; None for numbers.
    suffixes : list of list of str
        For each key, what follows the name of the key in the names of its encodings.
    output_type : str
        Type of numeric encodings.
    of_keys : list of list of int, optional
        For each key the positions of its encodings in the output; None: key after key, and indicators last.
    """

    held: list[LookupTable] = field(default_factory=list)
    labels: list[list[Labels]] = field(default_factory=list)
    suffixes: list[list[str]] = field(default_factory=list)
    output_type: str = "float64"
    of_keys: list[list[int]] | None = None

    def positions(self) -> list[list[int]] | None:
        """Give for each key the positions of its values in the output, if they were exported."""
        return self.of_keys

    def values_of(self, entry: int) -> list[Labels]:
        """Give for each encoding of a key the values that it numbers, and their column; None for numbers."""
        return self.labels[entry]

    def _lookup_of(self, entry: int, ops: Ops) -> LookupTable:
        held = self.held[entry]
        return LookupTable(ops.to_device(held.encodings), None if held.unseen is None else ops.to_device(held.unseen))


def read_rules(tables: Collection[Any]) -> tuple[dict[str, Any], dict[tuple[int, int], Any]]:
    """Give the rules of all tables, and each table by its key and level."""
    shared: list[dict[str, Any]] = []
    levels: dict[tuple[int, int], Any] = {}
    for table in tables:
        if not isinstance(table, pa.Table) or RULES not in (table.schema.metadata or {}):
            raise ValueError(
                "from_arrow takes tables that to_arrow made, whose schema's metadata hold 'gpu_encode'. Got a "
                f"{type(table).__name__} without it. Read files with pyarrow, which keeps it."
            )
        told = json.loads(table.schema.metadata[RULES])
        if told["version"] > VERSION:
            raise ValueError(
                f"These tables were made by a newer gpu-encode (version {told['version']}); this one reads up to "
                f"{VERSION}: upgrade."
            )
        index = told.pop("key"), told.pop("level")
        if index in levels or told != (shared or [told])[0]:
            raise _other_tables()
        shared.append(told)
        levels[index] = table
    if not shared:
        raise _other_tables()
    expected = {(number, depth) for number, key in enumerate(shared[0]["keys"]) for depth in range(key["levels"])}
    if expected != set(levels):
        raise _other_tables()
    return shared[0], levels


def _other_tables() -> ValueError:
    """Error for tables that do not all belong to one encoder."""
    return ValueError("from_arrow takes all tables of one encoder, each once, as one call of to_arrow gave them.")


def make_model(told: dict[str, Any], levels: Mapping[tuple[int, int], Any]) -> TableModel:
    """Make the model that rules and tables describe."""
    columns, indicators, described = told["columns"], tuple(told["indicators"]), told["keys"]
    dtype = "float32" if told["dtype"] == "float32" else "float64"
    read = [
        read_key(one, columns, [levels[number, depth] for depth in range(one["levels"])], indicators, dtype)
        for number, one in enumerate(described)
    ]
    entries = [key.entry for key, _, _ in read]
    labelled = [label for _, _, labels in read for label in labels if label is not None]
    targets = [TargetInfo(name, values.kind, None, values) for values, name in labelled]
    return TableModel(
        Selection(entries, told["passed"], told["training_only"], everything=told["everything"]),
        len(columns),
        columns if told["columns_have_names"] else None,
        targets or [TargetInfo(None, NO_TARGET, None)],
        [key for key, _, _ in read],
        statistics=[],
        rules=[read_rule(one) for one in described],
        indicators=indicators,
        dtype=dtype,
        held=[lookup for _, lookup, _ in read],
        labels=[labels for _, _, labels in read],
        suffixes=[[name.removeprefix(one["name"]) for name in one["encodings"]] for one in described],
        output_type=told["dtype"],
        of_keys=told.get("positions"),
    )


def in_order(model: Model, outputs: list[Any]) -> list[Any]:
    """Sort the outputs of all keys, laid side by side, into the order in which the encoder gave them."""
    if model.positions() is None:
        return outputs
    return [outputs[position] for position in order_of(model)]


def read_rule(described: Mapping[str, Any]) -> EncodingRule:
    """Read the policies of a key; its statistic is not used."""
    otherwise = "error" if described["missing"] is None else "prior"
    missing = "category" if described["missing_is_category"] else otherwise
    return EncodingRule(Statistic(), missing=missing, refuses_unknown=described["unknown"] is None)


def read_key(
    described: Mapping[str, Any], columns: Sequence[str], tables: Sequence[Any], indicators: Sequence[str], dtype: str
) -> tuple[CategoryIndex, LookupTable, list[Labels]]:
    """Read the categories of a key, its look-up table, and the values that encodings number."""
    key, rows = find_rows(read_entry(described), described, columns, tables)
    unknown, missing = (described[name] or {} for name in ("unknown", "missing"))
    encodings = np.empty((len(rows), 1, len(described["encodings"])), dtype)
    labels: list[Labels] = []
    for number, name in enumerate(described["encodings"]):
        values, of_values = read_output(tables, f"{name}_encoding", [unknown.get(name), missing.get(name)], name)
        encodings[:, 0, number] = values[rows]
        labels.append(of_values)
    unseen = None
    if "unseen" in indicators:
        name = f"{described['name']}_unseen"
        values, _ = read_output(tables, name, [unknown.get(name), missing.get(name)], name)
        unseen = values[rows, None] == 1
    return key, LookupTable(encodings, unseen), labels


def read_entry(described: Mapping[str, Any]) -> KeySpec:
    """Read the description of a key."""
    rule = described["rule"]
    if rule is not None:
        known = {kind.__name__: kind for kind in (hierarchy.Prefixes, hierarchy.Parts, hierarchy.Bits)}
        given = dict(rule["parameters"])
        rule = known[rule["class"]](*given.pop("lengths", ()), **given)
        rule.check()
    return KeySpec(described["name"], tuple(described["columns"]), tuple(described["above"]), rule)


def read_output(tables: Sequence[Any], column: str, others: Sequence[Any], name: str) -> tuple[Floats, Labels]:
    """Join a column of all tables and the values of other rows; text and dates become numbers of values."""
    type_ = tables[0][column].type
    chunks = [chunk for table in tables for chunk in table[column].cast(type_).chunks]
    values = pa.chunked_array([*chunks, as_array(others, type_)], type_)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        numbers = values.to_numpy()
        return numbers.astype(np.float64), None
    codes, vocabulary, _ = frames.read(pa.table({name: values})).keys(0, host(len(values)))
    return np.where(codes < 0, np.nan, codes), (vocabulary, name)


def find_rows(
    entry: KeySpec, described: Mapping[str, Any], columns: Sequence[str], tables: Sequence[Any]
) -> tuple[CategoryIndex, Array]:
    """Give the categories of a key, and for each line of its look-up table the row of the tables with its encodings.

    The rows of all tables are numbered in turn, followed by unknown and missing.
    """
    names = [columns[position] for position in entry.columns]
    starts = np.cumsum([0, *map(len, tables)])
    leaves = Leaves.of(tables, names, with_childless=bool(entry.above) and described["unknown"] is not None)
    at = ColumnMap(frames.read(leaves.values), {position: number for number, position in enumerate(entry.columns)})
    key, codes = CategoryIndex.fit(entry, at, host(len(leaves.values)), True)
    if key.n_categories < len(leaves.values):
        raise ValueError(f"The table of {entry.name!r} holds a category twice. Take one of the rows out.")
    key = replace(key, has_missing=described["missing_is_category"] and described["missing"] is not None)
    if entry.rule is not None:
        labels = [frames.read(table.select(names)).keys(0, host(len(table))) for table in tables[1:]]
        key = replace(key, labels=[of_level.vocabulary for of_level in reversed(labels)])
        codes_above = [of_level.codes for of_level in labels]
        sources = [np.arange(*ends) for ends in pairwise(starts[1:])]
    else:
        nearest_first = zip(reversed(key.levels), leaves.levels, strict=False)
        codes_above = [level.of_leaf[codes[below]] for level, (below, _) in nearest_first]
        sources = [of_level for _, of_level in leaves.levels]
    above = [start + of_level for start, of_level in zip(reversed(key.starts[1:-1]), codes_above, strict=False)]
    # A missing value at the top always has a line; if no rows had one, it is unknown there, like other values.
    rows = np.full(key.starts[-1] + 2, starts[-1])
    rows[np.concatenate([codes, *above, [MISSING]])] = np.concatenate([leaves.sources, *sources, [starts[-1] + 1]])
    return key, rows


class Leaves(NamedTuple):
    """Categories of a key, and substitutes for categories of levels above that have no category below them.

    If the categories below a level's category were removed, it gets a category without the values below, and one at
    each level between.  Such rows get the encoding of the level, in any case.

    Parameters
    ----------
    values : pyarrow.Table
    sources : int64 array (rows,)
        Numbers of the rows with their encodings; the rows of all tables are numbered in turn.
    levels : list of int64 array (2, categories)
        For each level, the nearest first: a row below each of its categories, and the row of the tables with the
        category's encodings.
    """

    values: Any
    sources: Array
    levels: list[Array]

    @classmethod
    def of(cls, tables: Sequence[Any], names: Sequence[str], *, with_childless: bool) -> Self:
        """Find the leaves of a key from the tables of its levels, the categories first."""
        values = tables[0].select(names)
        if not with_childless:
            return cls(values, np.arange(len(values)), [])
        widths = [sum(name in table.column_names for name in names) for table in tables]
        # The columns of a level come before those of the levels below it.
        rows = [*zip(*(column.to_pylist() for column in values.columns), strict=True)]
        sources, start = [*range(len(rows))], 0
        first = {row[:width]: number for number, row in enumerate(rows) for width in widths[1:]}
        levels: list[list[tuple[int, int]]] = [[] for _ in tables[1:]]
        for depth, table in enumerate(tables[1:], 1):
            start += len(tables[depth - 1])
            own = zip(*(table[name].to_pylist() for name in names[: widths[depth]]), strict=True)
            for source, row in enumerate(own, start):
                if row not in first:
                    first |= {row[:width]: len(rows) for width in widths[depth:]}
                    for between in levels[: depth - 1]:
                        between.append((len(rows), source))
                    rows.append((*row, *[None] * (len(names) - len(row))))
                    sources.append(source)
                levels[depth - 1].append((first[row], source))
        columns = [
            pa.array([row[number] for row in rows], values.schema.field(name).type) for number, name in enumerate(names)
        ]
        return cls(
            pa.table(dict(zip(names, columns, strict=True))),
            np.array(sources, np.int64),
            [np.array(pairs, np.int64).reshape(-1, 2).T for pairs in levels],
        )
