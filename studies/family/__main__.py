"""Encoders other than TargetEncoder on the CPU: counts, ranks, one-hot, evidence, statistics, hashes, models, factors.

    python -m studies.family [--rows 1e6] [--categories 100,1e5] [--works count,one-hot] [--keys int,text]
                                [--contenders ours,polars] [--out FOLDER] [--resume] [--quick]

Ours, category_encoders, scikit-learn, implicit, tensorly, polars and pandas are judged and timed in turns, each in a
process of its own.
family.json and family.md are on disk after every cell. The exit status is 1 if anything was wrong.
"""

import sys

from benchmarks.harness.grid import Grid, Topic
from benchmarks.harness.program import main
from studies.family.contenders import CONTENDERS, clusters, factorizations, factors, mixed_models
from studies.family.indicators import MOST_DENSE

WORKS = (
    "count",
    "ordinal",
    "ordinal-frequency",
    "one-hot",
    "evidence",
    "evidence-folds",
    "statistics",
    "median",
    "impact-folds",
    "hashing",
)
KEYS = ("int", "text")
NOTES = f"""
Every result is judged by one definition for all, but for what libraries define otherwise: category_encoders numbers
values as they come, gives no evidence of categories of one row, hashes by MD5, and its mixed model's encodings lack the
common value. Folds of peers are row number modulo 5, ours are drawn; all take the mean of the rows that a row may see.
One-hot columns and hashed ones are judged as their library gives them, CSR or dense (polars' in any order, as it
defines none); what is dense is not asked for more than {MOST_DENSE:,} categories. Text is Arrow's for ours and polars,
pandas' own type for pandas, Python objects for the others and for `ours-objects`. Encoders of peers that read no target
number their rows once, by fit_transform, as ours do, but for counts. Singular vectors are judged by what they hold of
the squares of their matrix: a randomized solver's need not be the best. So are clusters, by the squares that they leave
(scikit-learn's Ward counts a category once, ours counts its rows), and factors of the target, by the area under the
curve of their predictions: implicit takes every cell without rows for a weak vote against, tensorly a cell's mean
whatever its rows, and both get sums of cells that their users make first, in the time that is measured.
""".strip()
QUICK = {"rows": (3_000,), "categories": (40,)}
FAMILY = Grid(
    "family",
    {"rows": (1_000_000,), "categories": (100, 100_000), "keys": KEYS, "work": WORKS},
    CONTENDERS,
    QUICK,
    views={"ours": None, "ours-objects": ("scikit-learn", "library")},
)
MIXED_MODEL = Grid(
    "mixed-model",
    {
        "rows": (10_000, 50_000),
        "categories": (100,),
        "keys": KEYS,
        "target": ("continuous", "binary"),
        "work": ("glmm", "glmm-folds"),
    },
    mixed_models.CONTENDERS,
    QUICK,
    views={"ours": None, "ours-objects": ("library",)},
)
FACTORS = Grid(
    "factors",
    {
        "rows": (1_000_000,),
        "categories": (100, 1_000, 20_000),
        "keys": ("int",),
        "work": ("spectral", "spectral-100", "co-occurrence"),
    },
    factors.CONTENDERS,
    QUICK,
)
CLUSTERS = Grid(
    "clusters",
    {
        "rows": (1_000_000,),
        "categories": (100, 1_000, 20_000),
        "keys": ("int",),
        "work": ("clusters-target", "clusters-statistics", "clusters-company"),
    },
    clusters.CONTENDERS,
    QUICK,
    clusters.is_listed,
)
FACTORIZATION = Grid(
    "factorization",
    {
        "rows": (1_000_000,),
        "categories": (100, 1_000, 20_000),
        "keys": ("int",),
        "work": ("factors-of-two", "factors-of-three"),
    },
    factorizations.CONTENDERS,
    QUICK,
)
PACKAGES = ("gpu-encode", "numpy", "numba", "pandas", "pyarrow", "polars", "scikit-learn", "category_encoders")
TOPIC = Topic(
    "studies.family.__main__",
    "The other encoders on the CPU",
    (FAMILY, MIXED_MODEL, FACTORS, CLUSTERS, FACTORIZATION),
    NOTES,
    (*PACKAGES, "scipy", "statsmodels", "implicit", "tensorly"),
)

if __name__ == "__main__":
    sys.exit(main(TOPIC, __doc__))
