"""Encoders of more categories than fit one process: tables that stay in Spark, and are joined to its rows."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gpu_encode.datasets import shuffle
from gpu_encode.datasets.look_up import Joined, JoinedKey
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.engines import calls
from gpu_encode.engines.spark import SparkRows, quoted
from gpu_encode.errors.datasets import no_such_column, repeated_output
from gpu_encode.errors.parameters import check_option
from gpu_encode.errors.values import different_kinds
from gpu_encode.parts.plans import unfitted

# From so many categories on, of all keys together, "auto" leaves them in Spark.
MANY_CATEGORIES = 200_000
# Raised by Spark, where a row is looked up.
CHANGED = "X has other rows than when they were summed: all passes must read the same."
REFUSED = 'Columns {columns} have {what} that the policy "error" refuses.'


class SparkEncoder(BaseEstimator):
    """An encoder of Spark's frames whose tables of categories may stay in Spark, however many categories there are.

    With ``tables="broadcast"`` it does what `encoder` does: the sums of all categories come to the driver, and each
    worker holds all encodings.  With ``tables="shuffle"`` Spark adds the sums up, ``groupBy(key).agg(sum)``, makes
    the encodings where these meet, and joins them to rows.  Both give the same bits.

    Parameters
    ----------
    encoder : TargetEncoder
        Its parameters; it is not fitted.
    tables : {"auto", "broadcast", "shuffle"}, default="auto"
        "auto" estimates the number of categories of all keys in a pass of Spark's own (``approx_count_distinct``,
        within 15 %) and shuffles from 200,000 on.

    Attributes
    ----------
    tables_ : str
        "broadcast" or "shuffle".
    encoder_ : TargetEncoder
        Fitted; with "broadcast" alone.
    encodings_ : pyspark.sql.DataFrame
        With "shuffle" alone, one row a category: the number of its key (``entry``), its values by the positions of
        features (``key0``, ``key1``...), and a list of encodings: of each fold's training rows (of each class', under
        `LeaveOneOut`), then of new rows.

    Raises
    ------
    ValueError
        By "shuffle", for what follows from more than the sums of single categories.

    Notes
    -----
    The driver gets what says how rows are encoded (classes of y, values that a scheme reads), the totals by fold, and
    nothing of a category.  `encodings_` is kept on the workers' disks (``persist``) until `unpersist`; what is lost
    with a worker is computed again from X.  `save` keeps what new rows need.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.engines import SparkEncoder
    >>> encoder = SparkEncoder(TargetEncoder(columns=["shop"], cv=KFold(5, by="visit_id")), tables="shuffle")
    >>> training = encoder.fit_transform(visits, y="bought")  # doctest: +SKIP
    >>> encoder.save("hdfs:///shops")  # doctest: +SKIP
    >>> new = SparkEncoder.load(spark, "hdfs:///shops").transform(visits.drop("bought"))  # doctest: +SKIP
    """

    tables_: str
    encoder_: TargetEncoder
    encodings_: Any
    _joined: Joined

    def __init__(self, encoder: Any, tables: Literal["auto", "broadcast", "shuffle"] = "auto") -> None:
        self.encoder = encoder
        self.tables = tables

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the encodings of new rows, now.

        Parameters
        ----------
        X : pyspark.sql.DataFrame
        y : str or list of str
            Columns of X that are learned from.
        sample_weight, groups : str, optional
            Columns of X.

        Returns
        -------
        self
        """
        if self._choose(X, y, sample_weight, groups) == "broadcast":
            fitted = unfitted(self.encoder).fit(X, y, sample_weight=sample_weight, groups=groups)
            self._keep("broadcast", encoder_=fitted)
            return self
        self._learn(X, y, sample_weight, groups, training=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn the encodings of new rows, now, and give the training encodings in a frame that is computed when asked.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.

        Returns
        -------
        pyspark.sql.DataFrame
            As `TargetEncoder.fit_transform` gives it of a frame of Spark.
        """
        if self._choose(X, y, sample_weight, groups) == "broadcast":
            fitted = unfitted(self.encoder)
            encodings = fitted.fit_transform(X, y, sample_weight=sample_weight, groups=groups)
            self._keep("broadcast", encoder_=fitted)
            return encodings
        shared = self._learn(X, y, sample_weight, groups, training=True)
        joined, aside, prefix = self._joined, shared.reading.roles.aside, unused_prefix(X.columns)
        check_names([*(name for key in joined.keys for name in key.outputs), *joined.passed, *aside])
        rows = SparkRows(X).map(shuffle.add_views, (shared, f"{prefix}view"))
        return look_up(rows, self.encodings_, joined, [*joined.passed, *aside], prefix, training=True)

    def transform(self, X: Any) -> Any:
        """Give the encodings of new rows in a frame that is computed when asked for; columns new to it come last.

        Parameters
        ----------
        X : pyspark.sql.DataFrame

        Returns
        -------
        pyspark.sql.DataFrame
        """
        check_is_fitted(self, "tables_")
        if self.tables_ == "broadcast":
            return self.encoder_.transform(X)
        joined, names = self._joined, calls.names_of(SparkRows(X))
        for name in joined.features:
            if name in joined.needed and name not in names:
                raise no_such_column("the encoder", name, names)
        passed = [name for name in joined.passed if name in names]
        others = [name for name in names if name not in joined.features]
        check_names([*(name for key in joined.keys for name in key.outputs), *passed, *others])
        return look_up(X, self.encodings_, joined, [*passed, *others], unused_prefix(names), training=False)

    def save(self, path: str) -> None:
        """Write what new rows need, by Spark, to a new folder of Parquet files.

        Parameters
        ----------
        path : str
            Of a file system of Spark's.
        """
        check_is_fitted(self, "tables_")
        if self.tables_ == "broadcast":
            raise ValueError(
                "The tables of this encoder are in one process: save encoder_, encoder.encoder_.save(path)."
            )
        from pyspark.sql import functions

        views = self._joined.keys[0].new_rows
        keys = [replace(key, missing=key.missing[-len(key.outputs) :]) for key in self._joined.keys]
        widths = functions.size(shuffle.ENCODINGS) / (views + 1)
        own = functions.slice(shuffle.ENCODINGS, (widths * views + 1).cast("int"), widths.cast("int"))
        self.encodings_.withColumn(shuffle.ENCODINGS, own).write.parquet(f"{path}/encodings")
        text = json.dumps(asdict(replace(self._joined, keys=keys)))
        self.encodings_.sparkSession.createDataFrame([(text,)], "joined string").write.parquet(f"{path}/joined")

    @classmethod
    def load(cls, spark: Any, path: str) -> Self:
        """Read what `save` wrote: an encoder that encodes new rows.

        Parameters
        ----------
        spark : pyspark.sql.SparkSession
        path : str

        Returns
        -------
        SparkEncoder
        """
        known = json.loads(spark.read.parquet(f"{path}/joined").first()[0])
        loaded = cls(None, "shuffle")
        joined = Joined(**known | {"keys": [JoinedKey(**key) for key in known["keys"]]})
        loaded._keep("shuffle", encodings_=spark.read.parquet(f"{path}/encodings"), _joined=joined)
        return loaded

    def unpersist(self) -> None:
        """Let the workers forget `encodings_`, which are computed again from X if they are asked for."""
        if getattr(self, "tables_", None) == "shuffle":
            self.encodings_.unpersist()

    def _choose(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> str:
        """Say where the tables are to lie."""
        check_option("SparkEncoder", "tables", self.tables, ("auto", "broadcast", "shuffle"))
        if self.tables != "auto":
            return self.tables
        rows = SparkRows(X)
        roles = calls.read_training(self.encoder, rows, y, sample_weight, groups).roles
        entries = roles.selected(self.encoder, rows.schema).entries
        keys = [[roles.features[position] for position in entry.columns] for entry in entries]
        return "shuffle" if number_of_categories(X, keys) >= MANY_CATEGORIES else "broadcast"

    def _keep(self, tables: str, **learned: Any) -> None:
        """Set the fitted attributes, and forget those of an earlier fit."""
        self.unpersist()
        for name in ("encoder_", "encodings_", "_joined"):
            if hasattr(self, name):
                delattr(self, name)
        for name, value in {**learned, "tables_": tables}.items():
            setattr(self, name, value)

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, training: bool) -> shuffle.ShuffledSums:
        """Have Spark add up the sums of each category, and make encodings of them."""
        from pyspark import StorageLevel
        from pyspark.sql import functions

        encoder, rows = unfitted(self.encoder), SparkRows(X)
        shuffle.check_parameters(encoder, training)
        rows.check_repeatable()
        reading = calls.read_training(encoder, rows, y, sample_weight, groups)
        shared, measured = calls.survey(encoder, rows, reading, training)
        lines = measured.map(shuffle.sum_table, shared)
        keys = [name for name in lines.columns if not name.startswith("digit")]
        digits = [name for name in lines.columns if name.startswith("digit")]
        added = lines.groupBy(*keys).agg(*(functions.sum(name).alias(name) for name in digits))
        encodings = SparkRows(added).map(shuffle.encode_lines, shared).persist(StorageLevel.DISK_ONLY)
        try:
            encodings.count()
        except Exception:
            encodings.unpersist()
            raise
        self._keep("shuffle", encodings_=encodings, _joined=Joined.of(shared))
        return shared


def number_of_categories(frame: Any, keys: Sequence[Sequence[str]]) -> int:
    """Estimate how many categories all keys have."""
    from pyspark.sql import functions

    structs = (functions.struct(*(functions.col(quoted(name)) for name in key)) for key in keys)
    [row] = frame.select(*(functions.approx_count_distinct(struct) for struct in structs)).collect()
    return sum(row)


def unused_prefix(names: Sequence[str]) -> str:
    """Give a beginning that no column's name has, whatever its case."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def check_names(names: Sequence[str]) -> None:
    """Raise ValueError for an output with two columns of one name."""
    for name in names:
        if names.count(name) > 1:
            raise repeated_output(name)


def check_types(rows: Any, encodings: Any, joined: Joined) -> None:
    """Raise ValueError for columns of another type than at fit, which Spark would compare as text or floats."""
    from pyspark.sql.types import IntegralType

    for key in joined.keys:
        for name, stored in zip(key.columns, key.stored, strict=True):
            given, fitted = rows.schema[name].dataType, encodings.schema[stored].dataType
            if given != fitted and not (isinstance(given, IntegralType) and isinstance(fitted, IntegralType)):
                raise different_kinds(name, fitted.simpleString(), given.simpleString())


def look_up(rows: Any, encodings: Any, joined: Joined, others: Sequence[str], prefix: str, training: bool) -> Any:
    """Join the encodings of every key to rows.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        Training rows have their views in a column.
    encodings : pyspark.sql.DataFrame
    joined : Joined
    others : list of str
        Columns that come behind the encodings.
    prefix : str
        How the names of columns begin that are not among the rows'.
    training : bool
    """
    from pyspark.sql import functions

    check_types(rows, encodings, joined)
    outputs = []
    for entry, key in enumerate(joined.keys):
        places = [f"{prefix}{entry}_{place}" for place in range(len(key.columns))]
        found = functions.col(f"{prefix}{entry}")
        stored = [functions.col(name).alias(place) for name, place in zip(key.stored, places, strict=True)]
        own = functions.col(shuffle.ENCODINGS).alias(f"{prefix}{entry}")
        table = encodings.where(functions.col(shuffle.ENTRY) == entry).select(*stored, own)
        values = [present(rows, name) for name in key.columns]
        same = [value.eqNullSafe(functions.col(place)) for value, place in zip(values, places, strict=True)]
        rows = rows.join(table, all_of(same), "left").drop(*places)
        view = functions.col(f"{prefix}view") if training else functions.lit(key.new_rows)
        for number, name in enumerate(key.outputs):
            at = view * len(key.outputs) + number
            other = not_found(key, values, at, number, joined.dtype, training)
            encoding = functions.when(found.isNotNull(), functions.get(found, at)).otherwise(other)
            outputs.append(encoding.alias(name))
    return rows.select(*outputs, *(functions.col(quoted(name)) for name in others))


def not_found(key: JoinedKey, values: Sequence[Any], at: Any, number: int, dtype: str, training: bool) -> Any:
    """Give the encoding of rows whose key is not in the table: unknown ones, and missing ones that are no category."""
    from pyspark.sql import functions

    kind = {"float64": "double", "float32": "float"}[dtype]
    shown = ", ".join(map(repr, key.columns))
    if training:
        other = functions.raise_error(CHANGED)
    elif key.refuses_unknown:
        other = functions.raise_error(REFUSED.format(columns=shown, what="unknown values"))
    else:
        other = functions.lit(key.unknown[number])
    if key.policy == "category":
        return other.cast(kind)
    missing = functions.get(functions.array(*map(functions.lit, key.missing)), at)
    if key.policy == "error":
        missing = functions.raise_error(REFUSED.format(columns=shown, what="missing values"))
    any_missing = ~all_of([value.isNotNull() for value in values])
    return functions.when(any_missing, missing.cast(kind)).otherwise(other.cast(kind))


def present(rows: Any, name: str) -> Any:
    """Give a column whose NaN are missing, as null is."""
    from pyspark.sql import functions
    from pyspark.sql.types import DoubleType, FloatType

    column = functions.col(quoted(name))
    if isinstance(rows.schema[name].dataType, (FloatType, DoubleType)):
        return functions.when(~functions.isnan(column), column)
    return column


def all_of(conditions: Sequence[Any]) -> Any:
    """Say whether all conditions hold."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = total & condition
    return total
