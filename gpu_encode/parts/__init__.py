"""Rows in parts, for engines that hold them in several places or one after another: the same bits as in one piece.

Every engine takes the same four steps, and only the first three results travel:

1. `survey` every part, and add the surveys up: how many rows, what y holds, the values that the scheme reads.
2. `draft` a blueprint of the sum: kinds of targets, classes, who may look at whom.
3. `measure` every part by the blueprint, and add the sums up, in any order and any tree; `fit` the encoder to them.
4. `encode` every part by the tables that `fit` gives.

Ordered schemes (`blueprint.order` is "rows" or "shuffled") take one step more between the last two: `scatter` the rows
of every part into buckets of neighbouring places, give each bucket its codes by `Running`, in order, and hand these to
`encode`.  Rows as they stand are one bucket a part.  Buckets need not be encoded one after another where `BucketSums`
of those before them are known.  Where `tables.needs_categories`, `Gaining` goes the same way first.

Examples
--------
>>> import numpy as np
>>> from gpu_encode import KFold, TargetEncoder
>>> from gpu_encode.parts import Part, Sums, Survey, draft, encode, fit, measure, survey
>>> X, y = np.array([["a"], ["b"], ["a"], ["b"], ["a"], ["c"]]), np.array([0, 1, 1, 1, 0, 0])
>>> encoder = TargetEncoder(cv=KFold(2))
>>> parts = [Part(X[:2], y[:2]), Part(X[2:], y[2:], first_row=2)]
>>> blueprint = draft(encoder, sum((survey(encoder, part) for part in parts), Survey()))
>>> tables = fit(encoder, blueprint, sum((measure(blueprint, part) for part in parts), Sums()))
>>> codes = np.concatenate([encode(tables, part) for part in parts])
>>> np.array_equal(codes, TargetEncoder(cv=KFold(2)).fit_transform(X, y))
True
"""

from gpu_encode.parts.blueprints import Blueprint, draft
from gpu_encode.parts.buckets import Bucket, BucketSums, scatter
from gpu_encode.parts.encoding import encode
from gpu_encode.parts.orders import Gained, Gaining, Placed, Running, with_categories
from gpu_encode.parts.part import Part
from gpu_encode.parts.sums import Sums, measure
from gpu_encode.parts.surveys import Survey, scheme_columns, survey
from gpu_encode.parts.tables import Tables, fit

__all__ = [
    "Blueprint",
    "Bucket",
    "BucketSums",
    "Gained",
    "Gaining",
    "Part",
    "Placed",
    "Running",
    "Sums",
    "Survey",
    "Tables",
    "draft",
    "encode",
    "fit",
    "measure",
    "scatter",
    "scheme_columns",
    "survey",
    "with_categories",
]
