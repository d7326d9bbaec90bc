"""Engines whose rows have no order: Spark and Ray.  A row is identified by its values, not by its position.

Encoders call these modules if X is a table of such an engine.  `DistributedEncoder` encodes more categories than one
process can hold.  `SparkEncoder` and `RayEncoder` are encoders for the pipelines of pyspark.ml and of Ray Data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_encode.scale.engines.distributed_encoder import DistributedEncoder

__all__ = ["DistributedEncoder"]
if TYPE_CHECKING:
    from gpu_encode.scale.engines.ray_preprocessor import RayEncoder
    from gpu_encode.scale.engines.spark_estimator import SparkEncoder, SparkEncoderModel

    # An import of all names must not need Spark and Ray.
    __all__ += ["RayEncoder", "SparkEncoder", "SparkEncoderModel"]
# Classes of an engine's own kind, by the modules that need the engine to be loaded.
OF_ENGINES = {
    "RayEncoder": "ray_preprocessor",
    "SparkEncoder": "spark_estimator",
    "SparkEncoderModel": "spark_estimator",
}


def __getattr__(name: str) -> Any:
    """Load a class when it is used, since it needs its engine."""
    if name not in OF_ENGINES:
        raise AttributeError(name)
    try:
        return getattr(import_module(f"{__name__}.{OF_ENGINES[name]}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs {error.name}: pip install '.[engines]' in a checkout.") from error
