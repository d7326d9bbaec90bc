"""Encoders of more categories than one process can hold: tables stay in an engine, which joins them to its rows."""

from importlib import import_module
from typing import Any, Literal, Self, cast

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.scale.engines.rows import Shuffle
from gpu_encode.scale.files.look_up import Joined
from gpu_encode.scale.files.shuffle import ShuffledSums
from gpu_encode.scale.parts.plans import unfitted
from gpu_encode.tables import frames
from gpu_encode.words.errors.parameters import check_option

# If all keys together have so many categories, "auto" leaves the tables in the engine.
MANY_CATEGORIES = 200_000
# Each module has a class Shuffle; the first call with a table of the engine loads it.
ENGINES = {
    "dask": "gpu_encode.scale.dask.shuffle",
    "spark": "gpu_encode.scale.engines.spark_tables",
    "ray": "gpu_encode.scale.engines.ray",
}


class DistributedEncoder(BaseEstimator):
    """An encoder for tables of Spark, Ray or Dask that can leave its categories in the engine, however many there are.

    With ``tables="broadcast"`` it works like `encoder`: one process collects the sums of all categories, and each
    worker holds all encodings.  With ``tables="shuffle"`` the engine adds up the sums of each category in a shuffle of
    its own, computes the encodings there, and brings them to the rows.  Both give the same bits.

    Parameters
    ----------
    encoder : TargetEncoder
        Only its parameters are used; it is not fitted.
    tables : {"auto", "broadcast", "shuffle"}, default="auto"
        "auto" estimates the number of categories of all keys in one pass (by HyperLogLog; in Spark within 15 %), and
        chooses "shuffle" from 200,000 on.

    Attributes
    ----------
    tables_ : str
        "broadcast" or "shuffle".
    encoder_ : TargetEncoder
        The fitted encoder; only with "broadcast".
    encodings_ : tables of the engine
        Only with "shuffle", and not after `load`.  In Spark it is a frame with one row for each category: the number of
        its key (``entry``), its values in columns named by the indices of features (``key0``, ``key1``...), and a list
        of encodings: those for training rows of each fold (under `LeaveOneOut`, of each class), then those for new
        rows.  In Ray and Dask the same lines are kept by bucket.

    Raises
    ------
    ValueError
        With "shuffle", for encodings that depend on more than the sums of single categories.

    Notes
    -----
    One process gets the facts that decide how rows are encoded (classes of y, values that a scheme reads) and the
    totals by fold, but no data of single categories, except in Spark those of keys with few categories, 16 MiB at most:
    workers look these keys up without a shuffle.  The engine keeps `encodings_`: Spark on the workers' disks
    (``persist``) until `unpersist`, Ray in its object store, Dask on its workers (or in this process, if there are
    none). The encodings of a lost worker are computed again from X.  `save` writes what new rows need.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.engines import DistributedEncoder
    >>> encoder = DistributedEncoder(TargetEncoder(columns=["shop"], cv=KFold(5, by="visit_id")), tables="shuffle")
    >>> training = encoder.fit_transform(visits, y="bought")  # doctest: +SKIP
    >>> encoder.save("hdfs:///shops")  # doctest: +SKIP
    >>> new = DistributedEncoder.load("hdfs:///shops").transform(visits.drop("bought"))  # doctest: +SKIP
    """

    tables_: str
    encoder_: TargetEncoder
    encodings_: Any
    _joined: Joined
    _engine: type[Shuffle]
    _path: str

    def __init__(self, encoder: Any, tables: Literal["auto", "broadcast", "shuffle"] = "auto") -> None:
        self.encoder = encoder
        self.tables = tables

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the encodings of new rows now.

        Parameters
        ----------
        X : pyspark.sql.DataFrame, ray.data.Dataset, dask.dataframe.DataFrame or list of Delayed
        y : str or list of str
            Columns of X with the target; for Dask, a collection with the partitions of X, as in `TargetEncoder`.
        sample_weight, groups : str, optional
            Columns of X; for Dask, collections.

        Returns
        -------
        self
        """
        rows = shuffle_of(X)(X, y, sample_weight, groups)
        if self._choose(rows) == "broadcast":
            fitted = unfitted(self.encoder).fit(X, y, sample_weight=sample_weight, groups=groups)
            self._keep("broadcast", encoder_=fitted)
        else:
            self._learn(rows, training=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn the encodings of new rows now, and give the training encodings in a table that is computed later.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.

        Returns
        -------
        table of the engine
            As `TargetEncoder.fit_transform` gives it for X.
        """
        rows = shuffle_of(X)(X, y, sample_weight, groups)
        if self._choose(rows) == "broadcast":
            fitted = unfitted(self.encoder)
            encodings = fitted.fit_transform(X, y, sample_weight=sample_weight, groups=groups)
            self._keep("broadcast", encoder_=fitted)
            return encodings
        shared = self._learn(rows, training=True)
        return rows.encode_training(shared, self._joined, self.encodings_)

    def transform(self, X: Any) -> Any:
        """Encode new rows in a table that is computed later; columns that fit has not seen come last.

        Parameters
        ----------
        X : table of an engine

        Returns
        -------
        table of the engine
        """
        check_is_fitted(self, "tables_")
        if self.tables_ == "broadcast":
            return self.encoder_.transform(X)
        rows = shuffle_of(X)(X)
        if hasattr(self, "_path"):
            return rows.encode_new(*rows.read(self._path))
        if not isinstance(rows, self._engine):
            raise TypeError(
                f"The tables of this encoder lie in another engine than X, a {type(X).__name__}: save it, and give X "
                "to DistributedEncoder.load(path)."
            )
        return rows.encode_new(self._joined, self.encodings_)

    def save(self, path: str, *, overwrite: bool = False) -> None:
        """Let the engine write what new rows need to a folder of Parquet files.

        The record that makes the folder valid is written last, with the number and a checksum of all lines.  If the
        save is ended before, `load` refuses the folder.

        Parameters
        ----------
        path : str
            A path in a file system that the engine reaches.
        overwrite : bool, default=False
            Whether an encoder that is there is replaced.  It is gone from the beginning of the save.

        Raises
        ------
        FileExistsError
            If there is an encoder, or a part of one, and `overwrite` is false.
        """
        check_is_fitted(self, "tables_")
        if self.tables_ == "broadcast":
            raise ValueError(
                "The tables of this encoder are in one process: save encoder_, encoder.encoder_.save(path)."
            )
        if hasattr(self, "_path"):
            raise ValueError(f"This encoder was loaded from {self._path!r}: copy that folder.")
        self._engine.save(self._joined, self.encodings_, path, overwrite)

    @classmethod
    def load(cls, path: str) -> Self:
        """Give an encoder for new rows from a folder of `save`, whichever engine wrote it.

        Parameters
        ----------
        path : str
            The engine of the new rows reads and checks it in each `transform`.

        Returns
        -------
        DistributedEncoder
        """
        loaded = cls(None, "shuffle")
        loaded._keep("shuffle", _path=str(path))
        return loaded

    def unpersist(self) -> None:
        """Let the workers drop `encodings_`; they are computed again from X if they are needed."""
        if hasattr(self, "encodings_"):
            self._engine.release(self.encodings_)

    def _choose(self, rows: Shuffle) -> str:
        """Choose where the tables are kept."""
        check_option("DistributedEncoder", "tables", self.tables, ("auto", "broadcast", "shuffle"))
        if self.tables != "auto":
            return self.tables
        return "shuffle" if rows.count_categories(unfitted(self.encoder)) >= MANY_CATEGORIES else "broadcast"

    def _keep(self, tables: str, **learned: Any) -> None:
        """Set the fitted attributes, and forget those of an earlier fit."""
        self.unpersist()
        for name in ("encoder_", "encodings_", "_joined", "_engine", "_path"):
            if hasattr(self, name):
                delattr(self, name)
        for name, value in {**learned, "tables_": tables}.items():
            setattr(self, name, value)

    def _learn(self, rows: Shuffle, training: bool) -> ShuffledSums:
        """Let the engine add up the sums of each category, and encode the categories."""
        shared, encodings = rows.learn(unfitted(self.encoder), training)
        self._keep("shuffle", encodings_=encodings, _joined=Joined.of(shared), _engine=type(rows))
        return shared


def shuffle_of(X: Any) -> type[Shuffle]:
    """Give the class of a table's engine; TypeError for a table of no engine."""
    name = frames.engine_holding(X)
    if name not in ENGINES:
        raise TypeError(
            f"DistributedEncoder takes tables of Spark, Ray or Dask. Got a {type(X).__name__}: give it to the encoder "
            "itself."
        )
    return cast(type[Shuffle], import_module(ENGINES[name]).Shuffle)
