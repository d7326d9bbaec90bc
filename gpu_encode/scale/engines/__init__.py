"""Engines whose rows have no order: Spark and Ray.  A row is known by its values, never by where it lies.

Encoders hand over to these modules where X is a table of such an engine.  `DistributedEncoder` encodes more
categories than fit one process.
"""

from gpu_encode.scale.engines.distributed_encoder import DistributedEncoder

__all__ = ["DistributedEncoder"]
