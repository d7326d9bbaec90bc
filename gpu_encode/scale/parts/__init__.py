"""Rows in parts, for engines that hold them in several processes or one after another: the same bits as in one piece.

Every engine takes the same four steps. Only the results of the first three are sent between processes:

1. `profile` every part, and add up the profiles: the number of rows, the values of y, the values that the scheme reads.
2. `plan` from the sum of the profiles: kinds of targets, classes, which rows each row may see.
3. `measure` every part with the plan, and add up the sums, in any order; `fit` the encoder to them.
4. `encode` every part with the tables that `fit` returns.

Ordered schemes (`encoding_plan.order` is "rows" or "shuffled") take one more step between the last two.  `shuffle`
sorts the rows of every part into groups of neighbouring ranks.  `OrderedScan` encodes these groups in order, and
`encode` takes the result.  If the order is "rows", each part is one group.  Groups can be encoded in parallel if the
`PrecedingSums` of the groups before them are known.  If `tables.needs_categories` is true, `CategoryMeanScan` runs
before `OrderedScan`.

Examples
--------
>>> import numpy as np
>>> from gpu_encode import KFold, TargetEncoder
>>> from gpu_encode.parts import Part, PartialSums, Profile, plan, encode, fit, measure, profile
>>> X, y = np.array([["a"], ["b"], ["a"], ["b"], ["a"], ["c"]]), np.array([0, 1, 1, 1, 0, 0])
>>> encoder = TargetEncoder(cv=KFold(2))
>>> parts = [Part(X[:2], y[:2]), Part(X[2:], y[2:], first_row=2)]
>>> encoding_plan = plan(encoder, sum((profile(encoder, part) for part in parts), Profile()))
>>> tables = fit(encoder, encoding_plan, sum((measure(encoding_plan, part) for part in parts), PartialSums()))
>>> encodings = np.concatenate([encode(tables, part) for part in parts])
>>> np.array_equal(encodings, TargetEncoder(cv=KFold(2)).fit_transform(X, y))
True
"""

from gpu_encode.scale.parts.encoding import encode
from gpu_encode.scale.parts.orders import (
    CategoryMeanDeltas,
    CategoryMeanScan,
    OrderedRows,
    OrderedScan,
    PrecedingSums,
    RowEncodings,
    shuffle,
    with_categories,
)
from gpu_encode.scale.parts.part import Part
from gpu_encode.scale.parts.plans import EncodingPlan, plan
from gpu_encode.scale.parts.profiles import Profile, profile, scheme_columns
from gpu_encode.scale.parts.sums import PartialSums, measure
from gpu_encode.scale.parts.tables import EncodingTables, fit

__all__ = [
    "CategoryMeanDeltas",
    "CategoryMeanScan",
    "EncodingPlan",
    "EncodingTables",
    "OrderedRows",
    "OrderedScan",
    "Part",
    "PartialSums",
    "PrecedingSums",
    "Profile",
    "RowEncodings",
    "encode",
    "fit",
    "measure",
    "plan",
    "profile",
    "scheme_columns",
    "shuffle",
    "with_categories",
]
