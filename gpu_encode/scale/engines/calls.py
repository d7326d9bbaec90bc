"""The methods of an encoder for rows of an engine: profile, plan, measure, fit and encode, where the rows are.

Which rows a row sees depends only on values of the row, so rows may be anywhere, and elsewhere in each pass. Schemes
that need row numbers are refused before anything is read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeVar

import pyarrow as pa
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.base import Encoder
from gpu_encode.fitting.drift import RowCounts
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.scale import parts
from gpu_encode.scale.engines.checksums import checksum
from gpu_encode.scale.engines.orders import encode_in_time
from gpu_encode.scale.engines.rows import Rows
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.encoding import plain_output
from gpu_encode.scale.files.new_rows import require_columns
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.files.source import Reading, find_roles, with_columns
from gpu_encode.scale.parts import EncodingPlan, EncodingTables, PartialSums, Profile
from gpu_encode.scale.parts.plans import for_new_rows, unfitted
from gpu_encode.scale.parts.profiles import profile_rows
from gpu_encode.scale.parts.tables import check_same_rows
from gpu_encode.seam.ops import host
from gpu_encode.tables import frames
from gpu_encode.words import notices
from gpu_encode.words.errors.targets import no_target
from gpu_encode.words.errors.values import RowError

E = TypeVar("E", bound=Encoder)

# For each engine, the module and the class that provide its rows; the first call with a table of the engine loads it.
ROWS = {
    "spark": ("gpu_encode.scale.engines.spark", "SparkRows"),
    "ray": ("gpu_encode.scale.engines.ray", "RayRows"),
}


def rows_of(X: Any) -> Rows:
    """Give the `Rows` of a table of an engine; `Rows` are given back unchanged."""
    name = frames.engine_holding(X)
    if name is None:
        return X
    module, rows = ROWS[name]
    return getattr(import_module(module), rows)(X)


def fit(encoder: E, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> E:
    """Learn the encodings of new rows now, in two passes.

    Parameters
    ----------
    encoder : TargetEncoder
    X : table of Spark or Ray, or Rows
    y : str or list of str
        Columns of X with the target; rows of an engine have no order, so a vector could not be matched with them.
    sample_weight, groups : str, optional
        Columns of X.
    """
    rows = rows_of(X)
    reading = read_training(encoder, rows, y, sample_weight, groups)
    with notices.kept() as messages:
        learn(encoder, for_new_rows(encoder), rows, reading)
    for message, category in messages:
        # A fit alone gives no training encodings, and can use a simpler scheme than the encoder's.
        if category is not notices.LeakWarning:
            notices.warn(message, category)
    return encoder


def fit_transform(encoder: Encoder, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
    """Learn the encodings of new rows now, and give the training encodings lazily; parameters as in `fit`.

    Columns that are not encoded, the target included, stay in the result, since no other table could be joined with it.
    """
    rows = rows_of(X)
    reading = read_training(encoder, rows, y, sample_weight, groups)
    rows.check_repeatable()
    tables = learn(encoder, unfitted(encoder), rows, reading)
    if tables.encoding_plan.order is not None:
        return encode_in_time(rows, pick_measured(encoder, rows, reading), tables, reading)
    shared = replace(tables, encoder=plain_output(tables.encoder)), reading
    return rows.map(encode_table, shared)


def transform(encoder: Encoder, X: Any) -> Any:
    """Encode new rows lazily; columns that a scheme read, and those that fit has not seen, come last."""
    check_is_fitted(encoder, "_model")
    rows = rows_of(X)
    return rows.map(transform_table, (plain_output(encoder), *columns_of_new_rows(encoder, names_of(rows))))


def columns_of_new_rows(encoder: Encoder, names: list[str]) -> tuple[list[str], list[str]]:
    """List the columns of new rows that were there at fit, and those that follow the encodings; refuse missing ones."""
    if encoder._model.feature_names is not None:
        require_columns(encoder, names)
    fitted = encoder._model.feature_names or names
    others = [name for name in names if name not in fitted]
    if len(fitted) == encoder.n_features_in_:
        others = [*(fitted[column] for column in encoder._model.selection.left_out if fitted[column] in names), *others]
    return [name for name in names if name in fitted], others


def drift(encoder: Encoder, X: Any) -> list[dict[str, Any]]:
    """Compare new rows with the training rows of the encoder now, in one pass."""
    model, rows = encoder._counted(), rows_of(X)
    counted = rows.pick(columns_of_new_rows(encoder, names_of(rows))[0])
    return counted.add_up(count_table, encoder, RowCounts()).beside(model)


def partial_fit(_: Any, X: Any, *__: Any, **___: Any) -> None:
    """Refuse tables in partitions: fit another encoder and merge it instead."""
    raise TypeError(
        f"partial_fit does not take rows of {rows_of(X).engine}. Fit another encoder of the same parameters and merge: "
        "encoder.merge(clone(encoder).fit(X, y))."
    )


def forget(_: Any, X: Any, *__: Any, **___: Any) -> None:
    """Refuse tables in partitions."""
    raise TypeError(f"forget does not take rows of {rows_of(X).engine}. Fit it anew to the rows that stay.")


def read_training(encoder: Encoder, rows: Rows, y: Any, sample_weight: Any, groups: Any) -> Reading:
    """Read the arguments of a call on training rows, before anything is computed."""
    parameters = encoder._parameters()
    if y is None and parameters.reads_target:
        raise no_target(type(encoder).__name__)
    for role, given in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        names = given if role == "y" and isinstance(given, (list, tuple)) else [given]
        if not all(name is None or isinstance(name, str) for name in names):
            raise TypeError(
                f"Rows of {rows.engine} have no order that a {type(given).__name__} could follow. Give {role} "
                f'as the name of a column of X, {role}="..."{", or a list of names" if role == "y" else ""}.'
            )
    names_of(rows)
    roles = find_roles(rows.schema, y, sample_weight, groups, parameters)
    # Without the columns that a scheme reads, nothing would tell which row of the result is which.
    selected = roles.selected(parameters, rows.schema)
    roles = replace(roles, kept=[roles.features[position] for position in selected.left_out])
    bare = frames.read(rows.schema.empty_table().select(roles.measured(selected)))
    for position in range(bare.n_columns):
        # On a worker, a type is refused late, and by some engines in words of their own.
        bare.keys(position, host(0))
    return Reading(roles, parameters)


def names_of(rows: Rows) -> list[str]:
    """Give the names of the columns, which must all be different."""
    names: list[str] = rows.schema.names
    if len(set(names)) < len(names):
        raise _repeated_names(rows.engine, names)
    return names


def _repeated_names(engine: str, names: list[str]) -> ValueError:
    """Error for a table with several columns of one name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    return ValueError(f"X of {engine} has several columns named {repeated[0]!r}: rename all but one.")


def learn(encoder: Encoder, asked: Encoder, rows: Rows, reading: Reading) -> EncodingTables:
    """Fit an encoder in two passes; give the tables of training encodings.  Parameters as in `plan_rows`."""
    encoding_plan, rows = plan_rows(encoder, asked, rows, reading)
    measured, checked = pick_measured(encoder, rows, reading), beside_keys(asked, rows, reading)
    sums = measured.add_up(measure_table, (encoding_plan, reading, checked), PartialSums())
    return parts.fit(encoder, encoding_plan, sums)


def plan_rows(encoder: Encoder, asked: Encoder, rows: Rows, reading: Reading) -> tuple[EncodingPlan, Rows]:
    """Make the decisions that need all rows, in one pass; also give the rows for the next passes.

    Parameters
    ----------
    encoder : Encoder
    asked : Encoder
        The same encoder, unfitted, with the scheme that decides which rows each row sees.
    rows : Rows
    reading : Reading
    """
    roles, asked_parameters = reading.roles, asked._parameters()
    check_schemes(asked_parameters, rows.engine)
    selected = roles.selected(encoder._parameters(), rows.schema)
    checked = beside_keys(asked, rows, reading)
    profiled = rows.pick(checked or roles.features[:1])
    total = profiled.add_up(profile_table, (replace(reading, parameters=asked_parameters), checked), Profile())
    blank = unfitted(encoder)
    if (chosen := roles.chosen(encoder, selected)) is not None:
        # Columns that are not read have no type, so they cannot be chosen by type.
        asked, blank = asked.set_params(columns=chosen), blank.set_params(columns=chosen)
    # Encoded columns and outputs are always those of the encoder's own scheme.
    encoding_plan = replace(parts.plan(asked, total), encoder=blank, parameters=blank._parameters())
    return encoding_plan, rows


def pick_measured(encoder: Encoder, rows: Rows, reading: Reading) -> Rows:
    """Select the columns that are needed to sum rows."""
    return rows.pick(reading.roles.measured(reading.roles.selected(encoder._parameters(), rows.schema)))


def survey(
    encoder: Any,
    rows: Rows,
    reading: Reading,
    training: bool,
    plan_rows: Callable[..., tuple[EncodingPlan, Any]] = plan_rows,
) -> tuple[ShuffledSums, Any]:
    """Find in two passes what workers must know to add up the sums of each category on their own.

    Parameters
    ----------
    encoder : TargetEncoder
        Unfitted.
    rows : Rows
    reading : Reading
    training : bool
        Whether training encodings are wanted.
    plan_rows : callable, optional
        Dask has a function of its own, since its rows have numbers.

    Returns
    -------
    ShuffledSums
    Rows
        The columns that are needed to sum rows.

    Raises
    ------
    ValueError
        For encodings that depend on more than the sums of single categories.
    """
    rules = shuffle.rules_of(reading, rows.schema)
    asked = unfitted(encoder) if training else for_new_rows(encoder)
    encoding_plan, rows = plan_rows(encoder, asked, rows, reading)
    checked = beside_keys(asked, rows, reading)
    shared = shuffle.blind(encoding_plan), reading, checked
    total = rows.pick(checked or reading.roles.features[:1]).add_up(total_table, shared, PartialSums())
    check_same_rows(encoding_plan, total)
    return shuffle.settle(encoding_plan, reading, rules, total, training), pick_measured(asked, rows, reading)


def columns_of_keys(encoder: Any, rows: Rows, reading: Reading) -> list[list[str]]:
    """List the columns of each key."""
    roles = reading.roles
    entries = roles.selected(encoder._parameters(), rows.schema).entries
    return [[roles.features[position] for position in entry.columns] for entry in entries]


def beside_keys(asked: Encoder, rows: Rows, reading: Reading) -> list[str]:
    """List the columns that are not keys and that every pass reads: those of the scheme, y, weights and groups."""
    roles = reading.roles
    of_scheme = [roles.features[column] for column in roles.selected(asked._parameters(), rows.schema).training_only]
    return [*of_scheme, *roles.aside]


def check_schemes(parameters: Parameters, engine: str) -> None:
    """Raise ValueError for schemes that need the number of a row among all rows."""
    for scheme in parameters.every_scheme if parameters.trains_apart else ():
        if scheme.needs_row_numbers:
            raise _no_row_numbers(engine, scheme)


def _no_row_numbers(engine: str, scheme: object) -> ValueError:
    """Error for a scheme that needs row numbers, which such rows do not have."""
    or_dask = ""
    if engine == "Ray":
        or_dask = (
            " Or give X.to_dask(), whose partitions have an order, to Dask on Ray. Ray keeps no order of files, so "
            "that such folds may differ from run to run, unless execution_options.preserve_order is set."
        )
    return ValueError(
        f"cv is {type(scheme).__name__}, which identifies rows by their numbers, but rows of {engine} have no lasting "
        "numbers: each pass may read them in other partitions. Name columns that identify a row, best one that is "
        'unique to each row: cv=KFold(5, by="order_id"). Or name a column of fold numbers that is stored with the '
        'rows, cv="fold"; or take GroupKFold(groups=...), TimeFolds(time=...), Ordered(time=...), Holdout(mask=...) or '
        f"LeaveOneOut().{or_dask}"
    )


def profile_table(shared: tuple[Reading, Sequence[str]], table: Any) -> Profile:
    """Profile some rows."""
    reading, checked = shared
    return replace(profile_rows(reading.parameters, reading.part(table)), checksum=checksum_of(table, checked))


def measure_table(shared: tuple[EncodingPlan, Reading, Sequence[str]], table: Any) -> PartialSums:
    """Sum some rows."""
    encoding_plan, reading, checked = shared
    return replace(parts.measure(encoding_plan, reading.part(table)), checksum=checksum_of(table, checked))


def total_table(shared: tuple[EncodingPlan, Reading, Sequence[str]], table: Any) -> PartialSums:
    """Sum some rows without their categories, with the plan of `shuffle.blind`."""
    encoding_plan, reading, checked = shared
    return replace(shuffle.total_table((encoding_plan, reading), table), checksum=checksum_of(table, checked))


def checksum_of(table: Any, names: Sequence[str]) -> int:
    """Give the checksum of some rows; Dask's partitions have one of their own."""
    return checksum([table[name] for name in names]) if isinstance(table, pa.Table) else 0


def encode_table(shared: tuple[EncodingTables, Reading], table: Any) -> Any:
    """Encode some training rows; columns of the scheme, target, weights, groups and index follow."""
    tables, reading = shared
    return with_columns(parts.encode(tables, reading.part(table)), table.select(reading.roles.beside))


def transform_table(shared: tuple[Any, Sequence[str], Sequence[str]], table: Any) -> Any:
    """Encode some new rows; other columns follow."""
    encoder, features, others = shared
    return with_columns(encoder.transform(table.select(features)), table.select(others))


def count_table(encoder: Encoder, table: Any) -> RowCounts:
    """Count the categories of some rows."""
    return encoder._count_rows(table)


def add_tables(function: Callable[[Any, Any], Any], shared: Any, tables: Iterable[Any], nothing: Any) -> Any:
    """Add up the results of a function on tables; return an error, so that the calling process can raise it."""
    try:
        for table in tables:
            nothing = nothing + function(shared, table)
    except (ValueError, TypeError) as error:
        return of_batch(error)
    return nothing


def of_batch(error: Exception) -> Exception:
    """Give the error of a table with row numbers within its batch, the only numbers that its rows have."""
    if isinstance(error, RowError):
        return RowError(error.before, error.row, f" of a batch of rows{error.after}")
    return error


def add_states(states: Iterable[Any], nothing: Any) -> Any:
    """Add up states, or give the first error among them."""
    for state in states:
        if isinstance(state, Exception):
            return state
        nothing = nothing + state
    return nothing
