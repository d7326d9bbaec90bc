"""Will it fit?  The most memory that a call on training rows takes, computed before the call."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from math import ceil, prod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from gpu_encode.fitting.columns import FEWEST_TOGETHER, MOST_NUMBERS, Selection, locate, most_numbers
from gpu_encode.fitting.fit import select_columns, specify_sums
from gpu_encode.fitting.inputs import Inputs, SummedColumn, TrainingRows, read_rows, read_summed
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.schemes import Holdout, LeaveOneOut, Ordered, Scheme, Splits
from gpu_encode.schemes.folds import FoldNumbers
from gpu_encode.schemes.plans import ValueFolds
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, n_threads
from gpu_encode.sums.category_sums import SumSpec
from gpu_encode.tables import frames
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.keys import KeySpec
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import check_count, no_ages
from gpu_encode.words.sizes import amount, read_size
from gpu_encode.words.terminal import printable

# All numbers below are upper bounds, for compiled kernels and GPUs; tests/encoders/test_memory_plan.py compares them
# with the memory of calls.

# Bytes of a row: for the codes of a column, and for each output while several orders are averaged.
CODES, ORDER = 8, 8
# Bytes of a row: for folds, for orders in time, and for the arrays into which target and weights are read.
FOLDS, TIMES, VECTORS = 12, 24, 20
# Bytes that a call takes for any number of rows.
LEAST = 32 << 20
# Bytes that are kept for a value and its index, and for each column of a combination of values.
VALUE, MEMBER = 64, 16
# Bytes of a value, and of a combination of values, while they are numbered.
VALUE_AT_WORK, MEMBERS_AT_WORK = 256, 64
# Bytes of an encoding of a category, a fold and an output: computed in one pass, by array expressions, or by a
# statistic of all categories at once.
IN_ONE_PASS, IN_ARRAYS, OF_ALL = 32, 160, 560
# Bytes of a digit of sums, and of a row whose value is counted for a median or another order statistic.
DIGIT, OCCURRENCE = 8, 96
# Where keys are encoded together, a thread holds the tables of one key, or of several with so many sums in all.
GROUP = 1 << 18
# Bytes of a sum in these tables: the sum, its copies in pieces and for new rows, and whether any row has it; of an
# encoding, in the table and before it is rounded; and of the number of a cell, twice.
SUM_TOGETHER, ENCODING_TOGETHER, CELL_TOGETHER = 25, 16, 16
# Bytes of a value of X and y, unless told: numbers of 32 bits.
VALUE_OF_INPUT = 4
# A GPU with less memory than this is a mistake of the unit.
LEAST_DEVICE = 10**6
# Rows or categories, and classes, that a plan may be asked for.
MOST_ROWS, MOST_CLASSES = 1 << 62, 1 << 20
# Numbers that need as many digits as those of most targets.
LIKELY_NUMBERS = (0.1, -1e6 / 3.0)


@dataclass(frozen=True)
class KeySize:
    """Upper bounds of the memory of one key.

    Parameters
    ----------
    name : str
    categories : int
        Largest number of distinct values; for a joint key, of combinations, which are never more than the rows.
    cells : int
        Categories times folds times classes: the number of cells that are counted or summed.
    table_bytes : int
        Bytes of the categories and their sums, which the encoder keeps.
    work_bytes : int
        Bytes that are free again once the key is encoded: encodings of the categories, and their index.
    output_bytes : int
        Bytes of the encodings of the rows.
    """

    name: str
    categories: int
    cells: int
    table_bytes: int
    work_bytes: int
    output_bytes: int

    @property
    def kept_bytes(self) -> int:
        """Bytes that stay when the next key is encoded."""
        return self.table_bytes + self.output_bytes


@dataclass(frozen=True)
class MemoryPlan:
    """The most memory that ``fit_transform`` takes, and that of X and y.

    Parameters
    ----------
    rows : int
    device : str
        The device whose memory is meant, "cpu" or "cuda".
    free_bytes : int
        Bytes of memory that are free.
    code_bytes : int
        Bytes of the codes of all encoded columns, for all rows.
    row_bytes : int
        Bytes of other arrays that grow with the rows while a key is encoded: folds, ranks, the target as numbers.
    together_bytes : int
        Bytes of the tables of all threads that encode keys together.
    keys : list of KeySize
    input_bytes : int
        Bytes of X and y, 4 for each value that is read; 0 if they are among the memory that is not free.
    not_counted : list of str
        Columns that `categories` does not name, so that all of their values may differ.
    """

    rows: int
    device: str
    free_bytes: int
    code_bytes: int
    row_bytes: int
    together_bytes: int
    keys: Sequence[KeySize]
    input_bytes: int = 0
    not_counted: Sequence[str] = ()

    @property
    def cells(self) -> int:
        """Categories times folds times classes, of all keys."""
        return sum(key.cells for key in self.keys)

    @property
    def output_bytes(self) -> int:
        """Bytes of the encodings of all rows."""
        return sum(key.output_bytes for key in self.keys)

    @property
    def table_bytes(self) -> int:
        """Bytes of the categories of all keys and their sums."""
        return sum(key.table_bytes for key in self.keys)

    @property
    def work_bytes(self) -> int:
        """Bytes that are free again at the end of the call."""
        return LEAST + self.row_bytes + max(self.together_bytes, *(key.work_bytes for key in self.keys))

    @property
    def peak_bytes(self) -> int:
        """Bytes that the call takes at most in addition to X and y."""
        return self.code_bytes + self.work_bytes + self.table_bytes + self.output_bytes

    @property
    def fits(self) -> bool:
        """Whether X, y and the call take no more than the free memory."""
        return self.input_bytes + self.peak_bytes <= self.free_bytes

    @property
    def batches(self) -> list[list[str]] | None:
        """Names of the keys, in the fewest batches of neighbours that each fit; None if a key alone does not fit."""
        room, taken = self.free_bytes - self.input_bytes - self.code_bytes - self.work_bytes, 0
        batches: list[list[str]] = []
        for key in self.keys:
            if key.kept_bytes > room:
                return None
            if not batches or taken + key.kept_bytes > room:
                batches.append([])
                taken = 0
            batches[-1].append(key.name)
            taken += key.kept_bytes
        return batches

    @property
    def parts(self) -> int | None:
        """The smallest number of parts of the rows that each fit; None if the tables alone do not fit."""
        room = self.free_bytes - self.table_bytes - (self.work_bytes - self.row_bytes)
        of_rows = self.input_bytes + self.code_bytes + self.row_bytes + self.output_bytes
        return ceil(of_rows / room) if room * self.rows >= of_rows else None

    def to_dict(self) -> dict[str, Any]:
        """Give all numbers, for JSON.

        Returns
        -------
        dict
            The fields and properties by their names, `keys` a list of dicts.
        """
        names: tuple[str, ...] = (
            "rows",
            "device",
            "cells",
            "code_bytes",
            "work_bytes",
            "table_bytes",
            "output_bytes",
            "peak_bytes",
        )
        names += ("input_bytes", "free_bytes", "fits", "batches", "parts")
        found = {name: getattr(self, name) for name in names}
        return found | {"not_counted": [*self.not_counted], "keys": [asdict(key) for key in self.keys]}

    def __repr__(self) -> str:
        largest = max(self.keys, key=lambda key: key.table_bytes)
        lines = [
            ("rows", f"{self.rows:,}"),
            ("keys", f"{len(self.keys):,}, the largest {largest.name} of at most {largest.categories:,} categories"),
            *([("all distinct", f"{', '.join(self.not_counted)} (not in categories)")] if self.not_counted else []),
            ("cells", f"{self.cells:,}"),
            *([("X and y", f"{amount(self.input_bytes)}, {VALUE_OF_INPUT} bytes a value")] if self.input_bytes else []),
            ("codes of columns", amount(self.code_bytes)),
            ("work", amount(self.work_bytes)),
            ("tables", amount(self.table_bytes)),
            ("output", amount(self.output_bytes)),
            ("in all, at most", amount(self.input_bytes + self.peak_bytes)),
            (f"free ({self.device})", amount(self.free_bytes)),
            ("fits", self._advice()),
        ]
        return "\n".join(f"{name:<18}{printable(said)}" for name, said in lines)

    def _advice(self) -> str:
        """Say whether the call fits, and what to do if it does not."""
        if self.fits:
            return "yes"
        ways = []
        if self.batches is not None:
            ways.append(f"in {len(self.batches)} batches of keys")
        if self.parts is not None:
            ways.append(f"in {self.parts} parts of rows (partial_fit, encode_dataset)")
        return f"no; {' or '.join(ways)}" if ways else "no, neither in batches of keys nor in parts of rows"


class Asked(NamedTuple):
    """The arguments of `CategoryEncoder.plan`."""

    X: Any
    y: Any
    rows: int | None
    categories: Any
    classes: int | None
    weight: Any
    device_memory: Any


def plan_memory(parameters: Parameters, given: Asked) -> MemoryPlan:
    """Tell the most memory of a call."""
    given = with_whole_numbers(given)
    X, y, rows, categories, classes, weight, device_memory = given
    check_given(given)
    free = None if device_memory is None else size_of_device(device_memory)
    # If the user says how much memory a GPU has, the GPU need not be there.
    asked = parameters if free is None else replace(parameters, device="cpu")
    if rows is None:
        inputs = Inputs(X)
        n_rows = inputs.frame.n_rows
        inputs = Inputs(X, made_target(asked, n_rows, classes) if y is None else y, weight)
    else:
        n_made = max(8, 2 * (classes or 2))
        inputs = Inputs(made_rows(asked, categories, n_made), made_target(asked, n_made, classes))
        n_rows = int(rows)
    read = read_rows(asked, inputs)
    summed = read_summed(asked, read)
    selection = select_columns(asked, read.frame)
    check_names(categories, selection, read.frame)
    sizes = count_values(selection, read.frame, read.ops) if rows is None else given_sizes(read, categories, n_rows)
    call = Call(asked, n_rows, sizes, summed, specify_sums(asked, read.ops, summed), read)
    device = "cuda" if free is not None else device_of(read.ops)
    if free is None:
        free = devices.cuda().free_bytes()[0] if device == "cuda" else devices.available_bytes()
    schemes, rules = asked.scheme_of_each_key(selection, read.frame), asked.rules(selection, read.frame)
    keys = [call.size_of(*of_key) for of_key in zip(selection.entries, schemes, rules, strict=True)]
    row_bytes = max(call.row_bytes(*of_key) for of_key in zip(schemes, rules, strict=True)) * n_rows
    code_bytes = CODES * len(selection.needed) * n_rows
    together_bytes = 0
    if device == "cpu" and len(keys) >= FEWEST_TOGETHER:
        tables = [call.together(*of_key) for of_key in zip(selection.entries, schemes, rules, strict=True)]
        # No more tables than those of all keys are in memory, however many threads there are.
        together_bytes = min(n_threads() * max(of_thread for of_thread, _ in tables), sum(own for _, own in tables))
    # Rows in memory are not among what is free, unless that is of another machine.
    n_read = len({*selection.needed, *selection.training_only}) + (0 if asked.values else len(summed))
    input_bytes = 0 if rows is None and device_memory is None else VALUE_OF_INPUT * n_read * n_rows
    labels = [] if rows is None else [str(read.frame.label(column)) for column in sorted(selection.needed)]
    not_counted = [label for label in labels if label not in (categories or {})]
    return MemoryPlan(n_rows, device, free, code_bytes, row_bytes, together_bytes, keys, input_bytes, not_counted)


def size_of_device(device_memory: Any) -> int:
    """Give the bytes of a GPU; ValueError for fewer than any GPU has."""
    free = read_size(device_memory, "device_memory")
    if free < LEAST_DEVICE:
        number = isinstance(device_memory, Integral) or str(device_memory).strip().isdecimal()
        said = f" Did you mean '{str(device_memory).strip()}GiB'?" if number else ""
        raise ValueError(f"device_memory={device_memory!r} is {free:,} bytes, less than any GPU has.{said}")
    return free


def with_whole_numbers(given: Asked) -> Asked:
    """Replace floats that are whole, such as 1e9, by integers."""

    def whole(count: Any) -> Any:
        return int(count) if isinstance(count, float) and count.is_integer() else count

    counts = given.categories
    if isinstance(counts, Mapping):
        counts = {name: whole(count) for name, count in counts.items()}
    return given._replace(rows=whole(given.rows), categories=counts)


def check_names(categories: Mapping[Any, int] | None, selection: Selection, frame: Frame | Pieces) -> None:
    """Raise ValueError if `categories` names a column that neither a key nor the scheme reads."""
    read = {*selection.needed, *selection.training_only}
    for name in categories or {}:
        if locate(frame, name, "categories:") not in read:
            names = ", ".join(repr(frame.label(position)) for position in sorted(read))
            raise ValueError(
                f"categories names the column {name!r}, which neither a key nor the scheme of this encoder reads. Name "
                f"only columns that are read: {names}."
            )


def check_given(given: Asked) -> None:
    """Raise ValueError for arguments of `plan` that do not go together, or are out of range."""
    X, y, rows, categories, classes, weight, _ = given
    if weight is not None and X is None:
        raise ValueError(
            "plan takes sample_weight beside X, one weight a row. Give X, or leave the weights out: whole weights take "
            "no more memory than none."
        )
    if (X is None) == (rows is None):
        raise ValueError("plan takes a table X or a number of rows. Give one of them.")
    if X is not None and categories is not None:
        raise ValueError("plan counts the categories of X itself. Leave `categories` out, or give `rows` and no X.")
    if y is not None and (X is None or classes is not None):
        raise ValueError("plan takes y beside X, and counts its classes. Give `classes` without y.")
    if categories is not None and not isinstance(categories, Mapping):
        raise ValueError(f"categories must be a dict of names and numbers of values. Got {categories!r} instead.")
    for name, count in {"rows": rows, "classes": classes}.items():
        if count is not None:
            check_count("plan", name, count, low=1, high=MOST_CLASSES if name == "classes" else MOST_ROWS)
    for column, count in (categories or {}).items():
        check_count("plan", f"categories[{column!r}]", count, low=1, high=MOST_ROWS)


def made_target(parameters: Parameters, n_rows: int, classes: int | None) -> Any:
    """Make a target for some rows: numbers for one class, else labels of `classes` classes, by default two."""
    if parameters.target_type is None or parameters.values is not None:
        return None
    kind = parameters.target_type
    if classes == 1 or (classes is None and kind == "continuous"):
        return np.resize(np.array(LIKELY_NUMBERS), n_rows)
    return np.resize(np.arange(classes or (3 if kind == "multiclass" else 2)), n_rows)


def made_rows(parameters: Parameters, categories: Mapping[Any, int] | None, n_rows: int) -> Any:
    """Make a few rows of the columns that the parameters name, and of the columns whose categories are given."""
    named = [*(categories or {}), *parameters.training_columns]
    for key in parameters.columns if isinstance(parameters.columns, list) else []:
        named += key if isinstance(key, tuple) else [key]
    for above in (parameters.hierarchy or {}).values():
        named += [] if isinstance(above, Derived) else [above] if isinstance(above, str) else above
    names: list[str] = []
    for column in named:
        names += column.columns if isinstance(column, ValueFolds) else [column]
    if not names:
        raise ValueError(
            "plan without X has to know the columns. Name them: columns=[...] of the encoder, or categories={name: "
            "number of distinct values} here."
        )
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"plan without X takes columns by name. Got {names!r} instead.")
    values = parameters.values or []
    text = [str(row) for row in range(n_rows)]
    numbers = np.resize(np.array(LIKELY_NUMBERS), n_rows)
    return frames.of_columns({name: numbers if name in values else text for name in dict.fromkeys(names)})


def count_values(selection: Selection, frame: Frame | Pieces, ops: Ops) -> dict[int, int]:
    """Count the distinct values of each column that is encoded or that a scheme reads, by the column's position."""
    needed = {*selection.needed, *selection.training_only}
    return {column: len(frame.keys(column, ops).vocabulary) + 1 for column in sorted(needed)}


def given_sizes(read: TrainingRows, categories: Mapping[str, int] | None, n_rows: int) -> dict[int, int]:
    """Give the largest number of values of each column, as the user gave it; in other columns all rows may differ."""
    given, names = categories or {}, read.frame.names or []
    return {column: min(given.get(name, n_rows), n_rows) + 1 for column, name in enumerate(names)}


class Call(NamedTuple):
    """The facts that all keys of a call share.

    Parameters
    ----------
    parameters : Parameters
    n_rows : int
    sizes : dict of int to int
        Number of values of each column, by its position; a missing value is one of them.
    summed : list of SummedColumn
    specs : list of SumSpec
    read : TrainingRows
        The rows of X, or a few made rows.
    """

    parameters: Parameters
    n_rows: int
    sizes: Mapping[int, int]
    summed: Sequence[SummedColumn]
    specs: Sequence[SumSpec]
    read: TrainingRows

    def n_outputs(self, rule: EncodingRule) -> list[int]:
        """Columns of encodings of each target."""
        outputs = []
        for number, (column, spec) in enumerate(zip(self.summed, self.specs, strict=True)):
            of_target = rule.of_target(number)
            classes = 1 if of_target.needs.terms > 1 else column.target.n_classes - spec.first_output
            outputs.append(of_target.statistic.n_outputs(classes))
        return outputs

    def size_of(self, entry: KeySpec, scheme: Scheme, rule: EncodingRule) -> KeySize:
        """Give upper bounds of the memory of a key."""
        folds, outputs = self.n_folds(scheme), self.n_outputs(rule)
        categories = min(prod(self.sizes[column] for column in entry.columns), self.n_rows + 1)
        classes = [column.target.n_classes for column in self.summed]
        is_joint = len(entry.columns) > 1
        kept = MEMBER * len(entry.columns) if is_joint else VALUE
        for spec, n_classes in zip(self.specs, classes, strict=True):
            kept += DIGIT * folds * n_classes * spec.layout.width
        in_one_pass = rule.describe_fused() is not None and not entry.above and entry.rule is None
        in_one_pass = in_one_pass and not isinstance(scheme, (LeaveOneOut, Ordered))
        view = IN_ONE_PASS if in_one_pass else OF_ALL if rule.needs_categories or rule.needs.table else IN_ARRAYS
        views = folds * view
        if isinstance(scheme, LeaveOneOut):
            # Rows of each class see sums of their own.
            views = max(views, max(classes) * IN_ONE_PASS)
        at_work = (MEMBERS_AT_WORK if is_joint else VALUE_AT_WORK) + max(outputs) * views
        work = at_work * categories
        if rule.needs.distribution:
            work += (OCCURRENCE + 3 * DIGIT * folds) * self.n_rows * len(outputs)
        columns = sum(outputs) * self.n_columns(scheme, folds)
        width = np.dtype(self.parameters.dtype).itemsize * (columns + len(self.parameters.indicators))
        return KeySize(
            entry.name, categories, categories * folds * sum(classes), kept * categories, work, width * self.n_rows
        )

    def together(self, entry: KeySpec, scheme: Scheme, rule: EncodingRule) -> tuple[int, int]:
        """Give upper bounds of the tables of a thread that encodes keys like this together, and of this key's tables.

        These tables have all cells of a key, with rows or without.
        """
        folds, of_thread, own = self.n_folds(scheme), 0, 0
        for column, spec, outputs in zip(self.summed, self.specs, self.n_outputs(rule), strict=True):
            n_classes = column.target.n_classes
            n_sums = folds * n_classes * spec.layout.width
            n_encodings = outputs * (n_classes if isinstance(scheme, LeaveOneOut) else folds)
            most = min(most_numbers(self.n_rows) // n_sums, MOST_NUMBERS // max(n_encodings, 1))
            cells = min(prod(self.sizes[name] for name in entry.columns), most)
            of_cell = SUM_TOGETHER * n_sums + ENCODING_TOGETHER * n_encodings + CELL_TOGETHER
            of_thread, own = max(of_thread, max(cells, GROUP // n_sums) * of_cell), max(own, cells * of_cell)
        return of_thread, own

    def row_bytes(self, scheme: Scheme, rule: EncodingRule) -> int:
        """Give the bytes of a row in addition to its codes and encodings, while a key of a scheme is encoded."""
        stored = bool(scheme.reads()) or scheme.reads_classes or isinstance(scheme, (Holdout, Splits))
        n_bytes = VECTORS + (FOLDS if stored else 0)
        if isinstance(scheme, Ordered):
            n_bytes += TIMES if scheme.time is not None else 0
            if scheme.average and scheme.n_permutations > 1:
                n_bytes += ORDER * (scheme.n_permutations + 1) * max(self.n_outputs(rule))
        return n_bytes

    def n_columns(self, scheme: Scheme, folds: int) -> int:
        """Columns for each output: one, or one for each fold or order that has a column of its own."""
        return folds if getattr(scheme, "blow_up", False) else scheme.n_repeats

    def n_folds(self, scheme: Scheme) -> int:
        """Largest number of folds of a scheme; 1 if rows have no folds."""
        if getattr(scheme, "by_age", False):
            raise no_ages("plan", scheme)
        if isinstance(scheme, Holdout):
            return 2
        if isinstance(scheme, FoldNumbers):
            if isinstance(scheme.folds, str):
                return self.sizes[locate(self.read.frame, scheme.folds, "cv:")]
            return len(scheme.folds.keys(0, self.read.ops).vocabulary)
        if isinstance(scheme, Splits):
            return count_splits(scheme.cv)
        return int(getattr(scheme, "n_splits", 1))


def count_splits(cv: Any) -> int:
    """Count the splits of a splitter of scikit-learn, or of a list."""
    if hasattr(cv, "get_n_splits"):
        return int(cv.get_n_splits())
    if not isinstance(cv, Sized):
        raise ValueError(
            "plan cannot count the splits of an iterator, which is read once. Give cv as a list of splits."
        )
    return len(cv)
