"""The base of encoders that look at the codes of several columns together, and not at the sums of one column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Floats
from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes
from gpu_encode.encoders.base import Encoder
from gpu_encode.fitting.columns import ColumnMap, locate_columns
from gpu_encode.fitting.fit import FitContext, make_model, plan_rows, prepare, sum_rows
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model, note_unseen
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.schemes.plans import FoldPlan, Plan, SplitPlan
from gpu_encode.seam.ops import Ops, put
from gpu_encode.sums.targets import Target, as_doubles
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.errors.parameters import no_ages
from gpu_encode.words.errors.values import in_one_line

# The code of a value that fit did not see.  A missing value has this code, too, if no row of fit lacks a value.
UNSEEN = -1


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows in the form that the learners of this family take.

    Parameters
    ----------
    ops : Ops
        Backend that computes; arrays lie on its device.
    codes : list of int32 array (rows,)
        For each key, codes from 0 to n - 1; a missing value is the last category.  -1: fit has not seen the value.
    sizes : list of int
        For each key, its number n of categories; a missing value counts as a category if fit has seen one.
    targets : list of Target
        The targets in y.  If there is none, a single target of kind "none".
    weight : array (rows,), optional
    names : list of str
        Names of the keys; training rows alone have them.
    """

    ops: Ops
    codes: list[Codes]
    sizes: list[int]
    targets: list[Target]
    weight: Array | None = None
    names: Sequence[str] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes[0])

    def take(self, rows: Array) -> "CodedRows":
        """Give some of the rows, by a boolean array or by row numbers."""
        return replace(
            self,
            codes=[codes[rows] for codes in self.codes],
            targets=[replace(target, values=target.values[rows]) for target in self.targets],
            weight=None if self.weight is None else self.weight[rows],
        )


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of a learner.  A file can hold all fields of subclasses: NumPy arrays, numbers, text, lists of these.

    Arrays in fields are NumPy arrays, so that a model does not need the device that made it.
    """

    def names(self, keys: Sequence[str]) -> list[str]:
        """Name the output columns; `keys` are the names of the keys."""
        raise NotImplementedError

    def blocks(self) -> list[tuple[int, Floats]] | None:
        """Give the output in blocks of columns, each by the categories of one key.

        Returns
        -------
        list of (int, float64 array (categories + 1, columns))
            The key's number, and the encodings of its categories, those of unseen values last.  None: the encodings of
            a row depend on several keys together.
        """
        return None

    def encode(self, rows: CodedRows) -> Array:
        """Encode rows without looking at their targets: (rows, outputs), float64, on the device of the rows."""
        blocks = self.blocks()
        assert blocks is not None
        # The code of unseen values, -1, takes the last line.
        return np.concatenate([rows.ops.to_device(table)[rows.codes[key]] for key, table in blocks], axis=1)

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if the fields do not fit keys of these sizes, as in a damaged file."""

    def to_fields(self) -> dict[str, Any]:
        """Give the fields by their names, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_fields(cls, given: dict[str, Any]) -> Self:
        """Make what a file holds; raise ValueError for other fields, or for values of other types."""
        types = get_type_hints(cls)
        if types.keys() != given.keys():
            raise ValueError(f"what was learned has the fields {sorted(given)}, not {sorted(types)}")
        for name, value in given.items():
            if not is_of(value, types[name]):
                raise ValueError(f"the field {name!r} of what was learned holds {in_one_line(value)}")
        return cls(**given)


@dataclass(frozen=True, eq=False)
class CodesModel(Model):
    """A model that encodes rows by the result of a learner that looks at all keys together.

    Parameters
    ----------
    sums : Model, optional
        The sums from which it has learned, if it learns from sums.
    """

    learned: Any = None
    sums: Model | None = None

    @property
    def by_key(self) -> bool:  # type: ignore[override]
        """Whether each encoding of a row follows from a single key."""
        return self._positions is not None

    def values_of(self, entry: int) -> list[Any]:  # noqa: ARG002
        """Give no values, since all encodings are numbers."""
        return []

    def positions(self) -> list[list[int]] | None:
        """Give for each key the positions of its values in the output, if each follows from a single key."""
        return self._positions

    @cached_property
    def _positions(self) -> list[list[int]] | None:
        if self.learned is None or (blocks := self.learned.blocks()) is None:
            return None
        found: list[list[int]] = [[] for _ in self.keys]
        start = 0
        for key, table in blocks:
            found[key] += range(start, start := start + table.shape[1])
        return found

    def lines(self, dtype: np.dtype[Any]) -> list[list[tuple[float, ...]]] | None:
        """Give the encodings of each code of each key, in the given type."""
        tables: list[list[Floats]] = [[] for _ in self.keys]
        for number, table in self.learned.blocks():
            tables[number].append(table)
        found = []
        for key, of_key in zip(self.keys, tables, strict=True):
            codes = np.array([*range(key.n_categories), UNKNOWN, MISSING], np.int32)
            lines = np.concatenate(of_key, axis=1)[number_missing(codes, key)]
            found.append([tuple(line) for line in lines.astype(dtype).tolist()])
        return found

    def encode(self, frame: Frame | Pieces, ops: Ops, owner: str) -> tuple[list[Array], ColumnMap]:
        """Encode every row of a new table."""
        columns = locate_columns(frame, self.selection, self.feature_names, self.n_features, owner)
        columns = columns.remember([key.entry for key in self.keys])
        codes = []
        for number, (key, rule) in enumerate(zip(self.keys, self.rules, strict=True)):
            of_key = key.lookup(columns, ops, rule.missing == "category")
            self._refuse(of_key, number, columns)
            note_unseen(key, of_key)
            # Few rows are looked up on the host, even if a GPU computes.
            codes.append(ops.to_device(number_missing(of_key, key)))
        return to_columns(self.learned.encode(CodedRows(ops, codes, sizes_of(self), [])), self.dtype), columns


class CodesEncoder(Encoder):
    """An encoder that learns from the codes of all keys together; `_learn` of a subclass does the learning.

    New rows are encoded by the result of learning from all rows.  If the target is read, training rows are encoded by
    the result of learning from the rows that their fold sees.
    """

    _learned: ClassVar[type[Learned]]
    _model: CodesModel

    def _parameters(self) -> Parameters:
        raise ValueError(self._why_in_memory)

    @property
    def _why_in_memory(self) -> str:
        owner = self._owner
        return (
            f"{owner} learns from all rows together: it takes tables in memory, one or several. It takes no files and "
            "no tables of Dask, and has no partial_fit, forget or merge. Read the rows into memory, or fit "
            f"{owner} to a sample of them."
        )

    @property
    def partial_fit(self) -> Any:
        """Raise AttributeError, so that scikit-learn's `hasattr` sees no such method."""
        raise AttributeError(self._why_in_memory)

    @property
    def forget(self) -> Any:
        """Raise AttributeError, as `partial_fit` does."""
        raise AttributeError(self._why_in_memory)

    def _rows_parameters(self) -> Parameters:
        """Say which columns are read, and how: `Parameters.of` for `Counts`, with the policies that were asked for."""
        raise NotImplementedError

    def _check_learner(self) -> None:
        """Raise ValueError for wrong values of parameters that only the learner knows."""

    def _read_rows(self, context: FitContext) -> CodedRows:
        """Give the training rows as `_learn` takes them; a subclass that learns from more than codes overrides this."""
        return read_codes(context)

    def _learn(self, rows: CodedRows) -> Learned:
        """Learn from rows: all of them, or the training rows of one fold."""
        raise NotImplementedError

    def _encode_training(self, rows: CodedRows, plan: Plan, learned: Learned) -> Array:
        """Encode training rows by a plan; `learned` is the result of all rows."""
        return cross_fit(rows, plan, self._learn, learned, self._owner)

    def _learn_from(self, inputs: Inputs) -> None:
        self._fit_rows(prepare(self._checked_parameters(), inputs))

    def _fit_encodings(self, context: FitContext) -> list[Array]:
        rows, parameters = self._read_rows(context), context.parameters
        learned = self._learn(rows)
        if parameters.trains_apart:
            context.rows.inputs.warn_of_groups(parameters)
            plan = plan_rows(parameters.scheme, context.rows, context.targets)
            parameters.warn_of_plans([plan])
            encodings = self._encode_training(rows, plan, learned)
        else:
            encodings = learned.encode(rows)
        self._keep_learned(context, learned)
        return to_columns(encodings, parameters.dtype)

    def merge(self, *others: Encoder) -> Self:  # noqa: ARG002
        """Raise ValueError: results of learning from different rows cannot be added."""
        self._parameters()
        return self

    def _checked_parameters(self) -> Parameters:
        """Check the parameters that only the learner knows, and give the parameters of the call."""
        self._check_learner()
        parameters = self._rows_parameters()
        if parameters.scheme.by_age:
            raise no_ages(self._owner, parameters.scheme)
        return parameters

    def _fit_rows(self, context: FitContext) -> CodedRows:
        """Learn from the rows of a call, and give them as codes."""
        rows = self._read_rows(context)
        self._keep_learned(context, self._learn(rows))
        return rows

    def _keep_learned(self, context: FitContext, learned: Learned) -> None:
        """Store the whole result of a fit."""
        model = make_model(context, sum_rows(context))
        self._store(context, self._with_learned(model, learned))

    def _with_learned(self, model: Model, learned: Learned) -> CodesModel:
        """Add the learner's result to a model; raise ValueError if the two do not fit together."""
        # The learner's own blocks hold its indicators.
        fitted = replace(CodesModel.of(model), learned=learned, indicators=())
        learned.check(sizes_of(fitted))
        return fitted

    def _rebuild(self, model: Model, fields_of_learned: dict[str, Any]) -> None:
        """Set the fitted attributes from the contents of a file; raise ValueError if these do not fit together."""
        fitted = self._with_learned(model, self._learned.of_fields(fields_of_learned))
        self._check_model(fitted)
        self._publish(fitted)

    def _encoded_names(self, model: Model, names: Any) -> list[str]:
        assert isinstance(model, CodesModel)
        return model.learned.names(model.selection.names(names))


def is_of(value: Any, type_: Any) -> bool:
    """Tell whether a value has the type of a field: numbers, text, arrays of numbers, and lists of these."""
    # NumPy 2.5 names the type of an array by a `type` statement.
    type_ = getattr(get_origin(type_) or type_, "__value__", type_)
    kind: Any = get_origin(type_) or type_
    if kind is Any:
        return True
    if kind is list:
        return isinstance(value, list) and all(is_of(one, get_args(type_)[0]) for one in value)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "if"
    if kind in (int, float):
        plain = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        return isinstance(value, plain) and not isinstance(value, bool)
    return isinstance(value, kind)


def read_codes(context: FitContext) -> CodedRows:
    """Give the training rows of a call as codes."""
    ops = context.rows.ops
    read = [ops.to_device(number_missing(categories.codes, categories.key)) for categories in context.categories]
    sizes = [n_codes(categories.key) for categories in context.categories]
    targets = [replace(target, values=as_doubles(ops, target.values)) for target in context.targets]
    names = [entry.name for entry in context.selection.entries]
    return CodedRows(ops, read, sizes, targets, context.rows.weight, names)


def sizes_of(model: Model) -> list[int]:
    """Give the number of codes of each key."""
    return [n_codes(key) for key in model.keys]


def n_codes(key: Any) -> int:
    """Give the number of categories of a key; a missing value counts as a category if fit has seen one."""
    return int(key.n_categories) + bool(key.has_missing)


def number_missing(codes: Codes, key: Any) -> Codes:
    """Number a missing value as the last category if fit has seen one, and all values that fit has not seen as -1."""
    missing = np.int32(key.n_categories if key.has_missing else UNSEEN)
    codes = np.where(codes == UNKNOWN, np.int32(UNSEEN), np.where(codes == MISSING, missing, codes))
    return codes.astype(np.int32, copy=False)


def to_columns(encodings: Array, dtype: str) -> list[Array]:
    """Give the columns of encodings, in the type that was asked for."""
    typed = encodings.astype(dtype, copy=False)
    return [typed[:, column] for column in range(typed.shape[1])]


def cross_fit(rows: CodedRows, plan: Plan, learn: Callable[[CodedRows], Learned], of_all: Learned, owner: str) -> Array:
    """Encode training rows; the learner of each row learns only from the rows that this row sees.

    Parameters
    ----------
    plan : FoldPlan or SplitPlan
        Its folds lie on the device of the rows.
    of_all : Learned
        The result of learning from all rows, for folds that see all rows.
    owner : str
        The encoder's class, for messages.

    Returns
    -------
    float64 array (rows, outputs)
        NaN for rows that see no rows.
    """
    if not isinstance(plan, (FoldPlan, SplitPlan)) or (isinstance(plan, FoldPlan) and plan.blow_up):
        raise without_folds(owner)
    columns = [rows.ops.zeros(rows.n_rows, np.dtype(np.float64)) for _ in of_all.names([""] * len(rows.sizes))]
    for column in columns:
        column.fill(np.nan)
    for fold, (own, seen) in enumerate(seen_rows(plan, rows)):
        if not bool(own.any()) or not bool(seen.any()) or (isinstance(plan, FoldPlan) and fold in plan.blind):
            continue
        learned = of_all if bool(seen.all()) else learn(rows.take(seen))
        encoded, numbers = learned.encode(rows.take(own)), np.flatnonzero(own)
        for output, column in enumerate(columns):
            put(column, numbers, encoded[:, output])
    return np.stack(columns, axis=1)


def without_folds(owner: str) -> ValueError:
    """Error for schemes without folds, and for schemes that give more columns."""
    return ValueError(
        f"{owner} learns once for each fold, and takes schemes with folds: cv=KFold(), GroupKFold(), TimeFolds(), "
        "Holdout() or a splitter. It takes neither LeaveOneOut nor Ordered, and gives no blow-up columns."
    )


def seen_rows(plan: FoldPlan | SplitPlan, rows: CodedRows) -> list[tuple[Array, Array]]:
    """Give two boolean arrays for each fold: which rows it holds, and which rows these see."""
    backend = rows.ops
    if isinstance(plan, SplitPlan):
        folds = backend.to_device(plan.folds)
        pairs = []
        for split, training in enumerate(plan.training):
            seen = backend.zeros(rows.n_rows, np.dtype(bool))
            seen.put(training, True)
            pairs.append((folds == split, seen))
        return pairs
    folds = number_folds(plan, rows)
    pairs = []
    for fold, visible in enumerate(plan.visibility):
        seen = backend.zeros(rows.n_rows, np.dtype(bool))
        for other in np.flatnonzero(visible):
            seen |= folds == other
        pairs.append((folds == fold, seen))
    return pairs


def number_folds(plan: FoldPlan, rows: CodedRows) -> Array:
    """Give the fold number of every row."""
    if plan.folds is None:
        return rows.ops.zeros(rows.n_rows, np.dtype(np.int32))
    if isinstance(plan.folds, FoldPattern):
        return rows.ops.fold_numbers(plan.folds, 0, rows.n_rows)
    return plan.folds
