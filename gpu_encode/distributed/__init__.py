"""Dask: partitions are measured where they lie, sums are added in a tree, partitions are encoded; no second encoder.

`TargetEncoder` hands over to these functions where X is a Dask frame or a list of Delayed objects.
"""

from gpu_encode.distributed.sequence import fit, fit_transform, partial_fit, transform

__all__ = ["fit", "fit_transform", "partial_fit", "transform"]
