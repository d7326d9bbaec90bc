"""The last pass over rows in parts: their training encodings."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cpu_fallback.types import Array, KeyEncodings
from gpu_encode.fitting.columns import FEWEST_TOGETHER, ColumnMap, map_columns
from gpu_encode.fitting.fit import train
from gpu_encode.fitting.inputs import Inputs, TrainingRows, look_up_known, read_fixed_targets, refuse_unknown_rows
from gpu_encode.fitting.ordered import average
from gpu_encode.fitting.tasks import EncodingTask, OutputColumns, in_type, look_up, make_room, missing_rows
from gpu_encode.formulas.encoding_rule import EncodingTable
from gpu_encode.scale.parts.orders import RowEncodings
from gpu_encode.scale.parts.part import Part
from gpu_encode.scale.parts.plans import EncodingPlan
from gpu_encode.scale.parts.sums import prepare_part
from gpu_encode.scale.parts.tables import EncodingTables
from gpu_encode.schemes.plans import FoldPlan, LeaveOneOutPlan, OrderedPlan
from gpu_encode.seam import ops
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.words import notices
from gpu_encode.words.errors.parameters import wrong_type
from gpu_encode.words.errors.targets import no_target


def encode(tables: EncodingTables, part: Part, by_order: Sequence[Sequence[RowEncodings]] | None = None) -> Any:
    """Encode the training rows of a part.

    Parameters
    ----------
    tables : EncodingTables
    part : Part
        The same rows that were measured; y is only needed for schemes in which the encoding of a row depends on its own
        y.
    by_order : list of list of RowEncodings, optional
        For an ordered scheme: for each order, the encodings of these rows, from one or more calls of `OrderedScan`.

    Returns
    -------
    table of shape (n_rows, n_outputs)
        A table of X's kind, with X's index: encoded columns, indicators, columns that pass through.

    Raises
    ------
    ValueError
        If the rows are not the rows that were measured.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.parts import Part, plan, encode, fit, measure, profile
    >>> encoder = TargetEncoder(cv=KFold(2, order="interleaved"), smooth=None, target_type="continuous")
    >>> parts = [Part([["a"], ["a"]], [1.0, 2.5]), Part([["a"], ["a"]], [6.0, 4.5], first_row=2)]
    >>> encoding_plan = plan(encoder, profile(encoder, parts[0]) + profile(encoder, parts[1]))
    >>> tables = fit(encoder, encoding_plan, measure(encoding_plan, parts[0]) + measure(encoding_plan, parts[1]))
    >>> [encode(tables, part).ravel().tolist() for part in parts]
    [[3.5, 3.5], [3.5, 3.5]]
    """
    if not isinstance(tables, EncodingTables):
        raise wrong_type("encode", "tables", tables, EncodingTables)
    if not isinstance(part, Part):
        raise wrong_type("encode", "part", part, Part)
    plan = tables.encoding_plan.plan
    with part.named():
        given = part.given()
        if not given.frame.n_rows:
            with notices.kept():  # Without this, warnings would come about encodings that no row of this part gets.
                return tables.encoder.transform(part.X)
        if not tables.encoding_plan.parameters.trains_apart:
            tables.model.check_columns(given.frame)
            return tables.encoder.transform(part.X)
        if isinstance(plan, OrderedPlan):
            if by_order is None:
                raise ValueError(
                    "Rows of an ordered scheme are encoded from those before them: pass what OrderedScan gave for "
                    "their groups, encode(tables, part, by_order)."
                )
            return by_rank(tables, part, given, plan, by_order)
        coded = code_rows(tables, part, given)
        return tables.encoder._assemble(given.frame, encode_rows(tables, coded, part.first_row), coded.columns)


class CodedRows(NamedTuple):
    """The rows of a part with the codes of their categories.

    Parameters
    ----------
    rows : TrainingRows
    columns : ColumnMap
    codes : list of int32 array
        Code of each row's category, for each key; empty if every key has a table by folds.
    labels : array
        Class of each row, if folds depend on classes.
    tasks : list of list of EncodingTask
        A list for each key, with a task for each target; empty if every key has a table by folds.
    """

    rows: TrainingRows
    columns: ColumnMap
    codes: list[Array]
    labels: Array
    tasks: list[list[EncodingTask]]


def code_rows(tables: EncodingTables, part: Part, given: Inputs) -> CodedRows:
    """Look up the categories of a part; read its target only if the encoding of a row depends on its own target."""
    encoding_plan, model = tables.encoding_plan, tables.model
    model.check_columns(given.frame)
    if not encoding_plan.by_folds:
        context = prepare_part(encoding_plan, part, model.keys)
        assert context is not None
        codes = [categories.codes for categories in context.categories]
        return CodedRows(context.rows, context.columns, codes, context.targets[0].labels, context.tasks)
    rows = TrainingRows.of(given, ops.resolve(given.frame.n_rows, given.device(encoding_plan.parameters.device)))
    columns = map_columns(rows.frame).remember([key.entry for key in model.keys])
    return CodedRows(rows, columns, [], labels_of(encoding_plan, given, rows), [[] for _ in model.keys])


def encode_rows(tables: EncodingTables, coded: CodedRows, first_row: int) -> list[Array]:
    """Encode rows by category and fold, or from all sums without the row itself; give encodings, then indicators."""
    model, backend = tables.model, coded.rows.ops
    plans = tables.encoding_plan.fold_plans(model.selection, coded.rows, coded.labels, first_row)
    width = sum(
        task.n_outputs
        for tasks, table in zip(coded.tasks, tables.encodings, strict=True)
        if table is None
        for task in tasks
    )
    width += sum(table.values.shape[2] for table in tables.encodings if table is not None)
    output = OutputColumns(make_room(backend, coded.rows.n_rows, width, model.dtype, model.targets), model.indicators)
    together: set[int] = set()
    if tables.encoding_plan.by_folds and len(plans) >= FEWEST_TOGETHER:
        together = look_up_together(tables, coded, plans[0], output.matrix)
    for entry, plan in enumerate(plans):
        table, key, missing = tables.encodings[entry], model.keys[entry], model.rules[entry].missing
        if entry in together and table is not None:
            output.next(table.values.shape[2])
            continue
        codes = coded.codes[entry] if coded.codes else look_up_known(key, coded.columns, backend, missing)
        if table is None:
            unseen = leave_out(tables, entry, coded.tasks[entry], output)
        else:
            unseen = look_up_key(tables, entry, coded, codes, plan, output)
        output.add_indicators(unseen, partial(missing_rows, key, codes, coded.columns, backend, missing == "category"))
    return output.to_list()


def look_up_together(tables: EncodingTables, coded: CodedRows, plan: FoldPlan, matrix: Array) -> set[int]:
    """Write the encodings of the keys that are looked up together, and give their numbers."""
    if (joint := tables.joint) is None:
        return set()
    widths = [0 if table is None else table.values.shape[2] for table in tables.encodings]
    out = KeyEncodings(matrix.T, np.cumsum([0, *widths]).tolist())
    unknown = joint.look_up(coded.columns, coded.rows.ops, plan.lookup_folds, 1, out)
    for entry, n_rows in unknown.items():
        refuse_unknown_rows(tables.model.keys[entry], n_rows)
    return set(unknown)


def look_up_key(
    tables: EncodingTables, entry: int, coded: CodedRows, codes: Array, plan: FoldPlan, output: OutputColumns
) -> Array | None:
    """Look up rows in the table of one key by categories and folds; if indicators need it, say which are unseen."""
    backend, encodings = coded.rows.ops, tables.encodings[entry]
    assert encodings is not None
    table = EncodingTable(backend.to_device(encodings.values), backend.to_device(encodings.unseen))
    out = output.next(encodings.values.shape[2])
    unseen = look_up(backend, table, codes, plan.lookup_folds, out, "unseen" in tables.model.indicators)
    tables.model.write_elapsed(tables.elapsed[entry], backend, codes, plan.lookup_folds, coded.columns, out)
    return unseen


def leave_out(tables: EncodingTables, entry: int, tasks: Sequence[EncodingTask], output: OutputColumns) -> Array | None:
    """Encode each row for one key from the sums of all other rows; if indicators need it, say which rows are unseen."""
    model, unseen = tables.model, None
    for target, (task, sums, in_order) in enumerate(zip(tasks, tables.sums[entry], tables.others[entry], strict=True)):
        first = target == model.rules[entry].statistic.first_target
        known = replace(align(task, sums, model.targets[target].vocabulary), in_order=in_order)
        done = train(known, LeaveOneOutPlan(), output.next(task.n_outputs), first and "unseen" in model.indicators)
        unseen = done.unseen if first else unseen
    return unseen


def labels_of(encoding_plan: EncodingPlan, given: Inputs, rows: TrainingRows) -> Array:
    """Give the classes of the rows of a part; read the target only if folds depend on it."""
    if not encoding_plan.needs_labels:
        return np.zeros(0, np.int32)
    if not given.has_target:
        raise no_target(type(encoding_plan.encoder).__name__)
    parameters = encoding_plan.parameters
    named, cut = given.targets(parameters.missing_target == "keep"), parameters.cut
    named = named if cut is None else cut.buckets(rows.ops, named)
    return read_fixed_targets(rows.ops, named, encoding_plan.targets)[0].labels


def align(task: EncodingTask, whole: CategorySums, vocabulary: Vocabulary | None) -> EncodingTask:
    """Give a part's task the sums of all rows and their layout; its values get indices among the values of all rows."""
    rows = task.rows
    if task.vocabulary is not None and vocabulary is not None:
        # A row without a value has index -1: the last one, after those of all values.
        indices = np.append(vocabulary.positions(task.vocabulary, task.key.entry.name), np.int32(-1)).astype(np.int64)
        rows = replace(rows, target=task.ops.to_device(indices)[rows.target])
    return replace(task, spec=whole.spec, rows=rows, sums=whole.to_device(task.ops), vocabulary=vocabulary)


def by_rank(
    tables: EncodingTables, part: Part, given: Inputs, plan: OrderedPlan, by_order: Sequence[Sequence[RowEncodings]]
) -> Any:
    """Sort the encodings of every order by row number; average over the orders, if the scheme says so."""
    model, n_rows = tables.model, given.frame.n_rows
    backend = ops.resolve(n_rows, given.device(tables.encoding_plan.parameters.device))
    orders = [sort_by_row(pieces, part.first_row, n_rows) for pieces in by_order]
    width = orders[0].values.shape[1]
    if plan.average or len(orders) == 1:
        values = np.empty((n_rows, width), np.float64, "F")
        for column in range(width):
            values[:, column] = average(np.stack([order.values[:, column] for order in orders]))
    else:
        values = np.stack([order.values for order in orders], axis=2).reshape(n_rows, -1)
    matrix = backend.to_device(np.asfortranarray(in_type(values, model.dtype, ops.host(n_rows))))
    unseen = np.logical_and.reduce([order.unseen for order in orders])
    tables.model.check_columns(given.frame)
    columns, output = map_columns(given.frame), OutputColumns(matrix, model.indicators)
    for entry, (key, rule) in enumerate(zip(model.keys, model.rules, strict=True)):
        flags = backend.to_device(unseen[:, entry]) if unseen.shape[1] else None
        output.add_indicators(flags, partial(look_up_missing, key, rule.missing, columns, backend))
    return tables.encoder._assemble(given.frame, output.to_list(), columns)


def look_up_missing(key: CategoryIndex, policy: str, columns: ColumnMap, backend: Ops) -> Array:
    """Look up which rows have no value."""
    return missing_rows(key, look_up_known(key, columns, backend, policy), columns, backend, policy == "category")


def sort_by_row(pieces: Sequence[RowEncodings], first_row: int, n_rows: int) -> RowEncodings:
    """Join the encodings of one order, and sort them by row number."""
    rows = np.concatenate([piece.rows for piece in pieces]) - first_row
    position = np.full(n_rows, -1, np.int64)
    inside = len(rows) == n_rows and (not n_rows or (rows.min() >= 0 and rows.max() < n_rows))
    if inside:
        position[rows] = np.arange(n_rows)
    if not inside or (position < 0).any():
        raise ValueError(
            f"The encodings are not those of rows {first_row} to {first_row + n_rows - 1}, each once per order. "
            "Pass what OrderedScan gave for the groups of this part, RowEncodings.between(first, last + 1) of each."
        )
    values, unseen = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("values", "unseen"))
    return RowEncodings(rows + first_row, values[position], unseen[position])
