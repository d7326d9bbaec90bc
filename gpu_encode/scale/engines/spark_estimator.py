"""An Estimator and a Model of pyspark.ml, for pipelines of Spark: training rows get training encodings there, too.

A Pipeline calls ``model = estimator.fit(frame)`` and then ``model.transform(frame)`` with the same frame.  So the model
remembers the frame, and gives it its training encodings.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import HasLabelCol, HasWeightCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from sklearn.base import clone

from gpu_encode import storage
from gpu_encode.encoders.base import Encoder
from gpu_encode.scale.engines.distributed_encoder import DistributedEncoder
from gpu_encode.scale.engines.spark_tables import copy_folder
from gpu_encode.words import notices


class Stage(MLWritable, MLReadable):
    """What can be saved in a folder, alone or with its pipeline."""

    def write(self) -> "StageWriter":
        """Give the writer that a pipeline calls."""
        return StageWriter(self)

    @classmethod
    def read(cls) -> "StageReader":
        """Give the reader that a pipeline calls."""
        return StageReader(cls)

    def save(self, path: str, *, overwrite: bool = False) -> None:
        """Let Spark write a folder, which `load` of this class reads.

        Parameters
        ----------
        path : str
            A path in a file system that Spark reaches.
        overwrite : bool, default=False
            Whether an older folder is replaced.
        """
        writer = self.write()
        (writer.overwrite() if overwrite else writer).save(path)


class SparkEncoder(Estimator, HasLabelCol, HasWeightCol, Stage):
    """An Estimator of pyspark.ml around an encoder.

    `fit` gives a `SparkEncoderModel`.  In a Pipeline, the stages that follow are fitted to the training encodings,
    which no row's own target has touched; rows of other frames get the encodings of new rows.

    Parameters
    ----------
    encoder : encoder
        Not fitted: any encoder of this library, or a `DistributedEncoder`.  Each fit fits a copy.  Its scheme must work
        on rows without numbers, such as ``KFold(5, by="visit_id")``.
    labelCol : str, default="label"
        The column of the target.  Encoders that read no target ignore it.
    weightCol : str, optional
        The column of the weights of rows.

    Notes
    -----
    All three are params of pyspark.ml: ``ParamGridBuilder().addGrid(estimator.encoder, [one, other])`` compares
    encoders; save the `bestModel` then, since Spark cannot write a CrossValidatorModel with such a grid.
    `CrossValidator` needs its `foldCol`, a column of fold numbers: the folds that it draws itself may have
    other rows in each pass, and are refused, and so are those of `TrainValidationSplit`.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.engines import SparkEncoder  # doctest: +SKIP
    >>> encoder = TargetEncoder(columns=["shop"], cv=KFold(5, by="visit_id"))
    >>> estimator = SparkEncoder(encoder=encoder, labelCol="bought")  # doctest: +SKIP
    >>> assembler = VectorAssembler(inputCols=["shop", "hour"], outputCol="features")  # doctest: +SKIP
    >>> model = Pipeline(stages=[estimator, assembler, learner]).fit(visits)  # doctest: +SKIP
    """

    encoder = Param(Params._dummy(), "encoder", "an encoder of gpu_encode, not fitted")

    def __init__(self, *, encoder: Any = None, labelCol: str = "label", weightCol: str | None = None) -> None:  # noqa: N803
        super().__init__()
        self._setDefault(labelCol="label")
        given = {"encoder": encoder, "labelCol": labelCol, "weightCol": weightCol}
        self._set(**{name: value for name, value in given.items() if value is not None})

    def _fit(self, dataset: Any) -> "SparkEncoderModel":
        """Fit a copy of the encoder; the training encodings are computed later."""
        given = self.getOrDefault(self.encoder) if self.isDefined(self.encoder) else None
        if not isinstance(given, (Encoder, DistributedEncoder)):
            raise TypeError(f"encoder of SparkEncoder must be an encoder of gpu_encode. Got {given!r}.")
        encoder = clone(given)
        reads_target = getattr(encoder, "encoder", encoder)._parameters().reads_target
        label = self.getLabelCol() if reads_target else None
        weight = self.getWeightCol() if self.isDefined(self.weightCol) else None
        encodings = encoder.fit_transform(dataset, label, sample_weight=weight)
        return SparkEncoderModel(encoder, dataset, encodings)._resetUid(self.uid)

    def _write(self, spark: Any, path: str) -> dict[str, Any]:
        """Let Spark write the encoder's parameters; give what else its reader needs."""
        given = self.getOrDefault(self.encoder)
        distributed = isinstance(given, DistributedEncoder)
        with TemporaryDirectory() as folder:
            storage.save_unfitted(given.encoder if distributed else given, Path(folder, "encoder"))
            write_file(spark, Path(folder, "encoder"), path)
        return {"tables": given.tables if distributed else None}

    @classmethod
    def _read(cls, spark: Any, path: str, tables: str | None) -> "SparkEncoder":
        """Let Spark read what `_write` wrote."""
        encoder = read_file(spark, path)
        return cls(encoder=encoder if tables is None else DistributedEncoder(encoder, tables))  # type: ignore[arg-type]


class SparkEncoderModel(Model, Stage):
    """The Model of a `SparkEncoder`.

    Attributes
    ----------
    encoder_ : encoder
        The fitted encoder.  ``encoder_.transform(frame)`` gives any frame the encodings of new rows, and
        ``encoder_.save(path)`` writes one file, which `gpu_encode.load` reads without Spark.

    Warns
    -----
    LeakWarning
        If `transform` gets a frame that is made of the training frame by selecting, adding, filtering or sorting, or
        that has the same plan and other files.  It is encoded as new rows, with each row's own target in it.

    Notes
    -----
    `transform` gives training encodings to the frame of the fit: to this very object, or to a frame with the same plan
    (``DataFrame.sameSemantics``), the same columns and the same files.  It gives encodings of new rows to all other
    frames, also if they hold training rows, as a union or a join does, or a frame behind a stage that makes its
    functions anew each time, as VectorAssembler does.  The same plan means the same rows only as long as its source,
    such as a table of a database, does not change.  A model that was loaded remembers no frame: all rows are new to it.
    """

    def __init__(self, encoder: Any = None, frame: Any = None, encodings: Any = None) -> None:
        super().__init__()
        self.encoder_, self._frame, self._encodings = encoder, frame, encodings

    def _transform(self, dataset: Any) -> Any:
        """Give training encodings to the training frame, and those of new rows to others."""
        if self._frame is not None:
            if is_same(dataset, self._frame):
                return self._encodings
            if is_made_of(dataset, self._frame):
                notices.warn(
                    "The frame is made of the training frame, or reads other files in the same way. It gets the "
                    "encodings of new rows, so that training rows among them see their own target. Give transform the "
                    "training frame itself, and select, add or filter afterwards.",
                    notices.LeakWarning,
                )
        return self.encoder_.transform(dataset)

    def _write(self, spark: Any, path: str) -> dict[str, Any]:
        """Let Spark write the fitted encoder; give what else its reader needs."""
        encoder = self.encoder_
        if isinstance(encoder, DistributedEncoder):
            if encoder.tables_ == "shuffle":
                if hasattr(encoder, "_path"):
                    copy_folder(spark, encoder._path, f"{path}/encoder")
                else:
                    encoder.save(f"{path}/encoder")
                return {"tables": "shuffle"}
            encoder = encoder.encoder_
        with TemporaryDirectory() as folder:
            encoder.save(Path(folder, "encoder"))
            write_file(spark, Path(folder, "encoder"), path)
        return {"tables": None}

    @classmethod
    def _read(cls, spark: Any, path: str, tables: str | None) -> "SparkEncoderModel":
        """Let Spark read what `_write` wrote."""
        return cls(read_file(spark, path) if tables is None else DistributedEncoder.load(f"{path}/encoder"))


class StageWriter(MLWriter):
    """Writes a stage; its metadata come last, since a folder without them is no stage."""

    def __init__(self, stage: Any) -> None:
        super().__init__()
        self._stage = stage

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Let Spark write a new folder."""
        stage, spark = self._stage, self.sparkSession
        more = stage._write(spark, path)
        plain = {param.name: value for param, value in stage._paramMap.items() if param.name != "encoder"}
        DefaultParamsWriter.saveMetadata(stage, path, spark, more, plain)


class StageReader(MLReader):
    """Reads a stage."""

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self._kind = kind

    def load(self, path: str) -> Any:
        """Let Spark read a folder that `StageWriter` wrote."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        stage = self._kind._read(self.sparkSession, path, metadata["tables"])
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


def write_file(spark: Any, file: Path, path: str) -> None:
    """Let Spark write the bytes of a file, in a table of one row, where all file systems of Spark can hold it."""
    spark.createDataFrame([(file.read_bytes(),)], "file binary").write.parquet(f"{path}/encoder")


def read_file(spark: Any, path: str) -> Any:
    """Let Spark read the encoder in a file that `write_file` wrote."""
    with TemporaryDirectory() as folder:
        Path(folder, "encoder").write_bytes(spark.read.parquet(f"{path}/encoder").first()[0])
        return storage.load(Path(folder, "encoder"))


def is_same(frame: Any, other: Any) -> bool:
    """Tell whether two frames have the same rows: one object, or one plan with the same columns and files."""
    if frame is other:
        return True
    return bool(
        frame.sparkSession is other.sparkSession
        and frame.columns == other.columns
        and frame.sameSemantics(other)
        and sorted(frame.inputFiles()) == sorted(other.inputFiles())
    )


def is_made_of(frame: Any, other: Any) -> bool:
    """Tell whether a frame has rows of another one, each changed by itself; Spark Connect hides this."""
    if not (hasattr(frame, "_jdf") and hasattr(other, "_jdf")):
        return False
    node, wanted = (each._jdf.queryExecution().analyzed() for each in (frame, other))
    while not node.sameResult(wanted):
        # The rows of an aggregate are others than those that it reads.
        if node.children().size() != 1 or node.nodeName() == "Aggregate":
            return False
        node = node.children().apply(0)
    return True
