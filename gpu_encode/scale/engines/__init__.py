"""Engines whose rows have no order: Spark and Ray.  A row is identified by its values, not by its position.

Encoders call these modules if X is a table of such an engine.  `DistributedEncoder` encodes more categories than one
process can hold.
"""

from gpu_encode.scale.engines.distributed_encoder import DistributedEncoder

__all__ = ["DistributedEncoder"]
