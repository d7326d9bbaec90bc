"""Dask: workers sum the partitions, sums are added in a tree, workers encode the partitions; the encoder is the same.

`TargetEncoder` calls these functions if X is a Dask frame or a list of Delayed objects.
"""

from typing import Any

from gpu_encode.scale.dask.calls import drift, fit, fit_transform, forget, partial_fit, transform

__all__ = ["drift", "fit", "fit_transform", "forget", "partial_fit", "tokenize", "transform"]


def tokenize(encoder: Any) -> Any:
    """Give the whole state by which Dask compares encoders, since the text of a long array is shortened."""
    from dask.tokenize import normalize_token

    return normalize_token((type(encoder), vars(encoder)))
