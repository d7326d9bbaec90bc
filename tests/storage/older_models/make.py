"""Makes the models of this folder: ``python -m tests.storage.older_models.make FOLDER``.

It was run once, with the version that made these models.  Run it again only to add models of a later version, in a
folder of their own; the files here must not change.  Only `expected.npz`, the outputs of the models, was written again
when a rule changed its bits before 0.1.0; the changelog names these rules.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather

from gpu_encode import (
    GLMM,
    CatBoostEncoder,
    CountEncoder,
    GradientEncoder,
    HashingEncoder,
    ImpactEncoder,
    KFold,
    OneHotEncoder,
    OrdinalEncoder,
    Prefixes,
    Sigmoid,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)

N_ROWS = 120
JOINT = ("city", "device")


def table(random: np.random.Generator) -> pa.Table:
    """Make rows of every type of category."""
    days = random.integers(0, 9, N_ROWS)
    return pa.table(
        {
            "city": random.choice(np.array(["Bonn", "Lima", "Oslo", "Köln", None], dtype=object), N_ROWS),
            "device": pa.array(random.choice(["phone", "desktop"], N_ROWS)).dictionary_encode(),
            "zip": [f"{number:05d}" for number in random.integers(1000, 1030, N_ROWS)],
            "shop": random.integers(-5, 9, N_ROWS),
            "size": pa.array(random.choice([0.1, -0.0, 2.5, np.nan], N_ROWS), from_pandas=True),
            "new": random.integers(0, 2, N_ROWS).astype(bool),
            "day": pa.array(np.datetime64("2024-02-27") + days),
            "moment": pa.array(np.datetime64("2024-02-27T01:02:03.456789") + days * 10**9),
        }
    )


def fitted() -> dict[str, Any]:
    """Fit one encoder of each kind."""
    random = np.random.default_rng(19)
    X = table(random)
    # The last bits of NumPy's powers depend on the processor: these are from the machine that made the models.
    powers = np.array([np.nextafter(1e-5, 0.0), 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5])
    amount = random.normal(size=N_ROWS) * random.choice(powers, N_ROWS)
    sold, kind = random.integers(0, 2, N_ROWS), random.choice(["x", "y", "z"], N_ROWS)
    weight = random.random(N_ROWS) + 0.01
    use: dict[str, Any] = {"columns": ["city", "zip", JOINT]}
    several = pa.table({"amount": amount, "kind": kind})
    gradients = np.column_stack([amount, weight])
    return {
        "target": TargetEncoder().fit(X, amount),
        "target_classes": TargetEncoder(
            **use, target_type=["continuous", "multiclass"], smooth=Sigmoid(3, 2), indicators=["missing", "unseen"]
        ).fit(X, several, sample_weight=weight),
        "target_hierarchy": TargetEncoder(
            columns=["zip"], hierarchy={"zip": Prefixes(4, 3)}, prior=0.25, dtype="float32"
        ).fit(X, sold),
        "target_blow_up": TargetEncoder(**use, cv=KFold(3, blow_up=True), smooth=GLMM()).fit(X, sold),
        "count": CountEncoder("log", **use, max_categories=4, handle_infrequent="category").fit(X),
        "ordinal": OrdinalEncoder(
            order="target", **use, handle_unknown="use_encoded_value", unknown_value=-1
        ).fit(X, amount),
        "one_hot": OneHotEncoder(
            **use, sparse_output=False, max_categories=5, drop="first", handle_unknown="infrequent_if_exist"
        ).fit(X),
        "hashing": HashingEncoder(5, **use, alternate_sign=True, seed=7).fit(X),
        "evidence": WeightOfEvidenceEncoder(**use, min_count=2).fit(X, sold),
        "statistic": StatisticEncoder(["mean", "median", "skew", ("quantile", 0.9)], **use).fit(X, amount),
        "impact": ImpactEncoder(["impact", "logit", "deviation"], **use).fit(X, sold),
        "catboost": CatBoostEncoder("borders", borders=[-1.0, 1.0], **use).fit(X, amount),
        "gradient": GradientEncoder("order", 2.0, **use).fit(X, gradients),
    }  # fmt: skip


def new_rows() -> pa.Table:
    """Make rows to encode; one city and one shop are new."""
    rows = table(np.random.default_rng(20))
    city = ["Rom", *rows["city"].to_pylist()[1:]]
    shop = [77, *rows["shop"].to_pylist()[1:]]
    return rows.set_column(0, "city", pa.array(city)).set_column(3, "shop", pa.array(shop)).slice(0, 40)


def encodings_of(encoder: Any, rows: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    """Encode rows; give the columns of floats."""
    output = encoder.transform(rows)
    return {name: output[name].to_numpy() for name in output.column_names if pa.types.is_floating(output[name].type)}


def learn_more(encoder: Any, rows: pa.Table) -> Any:
    """Learn more rows with a loaded model, whose sums go on."""
    return encoder.partial_fit(rows, np.arange(rows.num_rows) / 7)


def main(folder: Path) -> None:
    """Write the models, new rows, and their encodings."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, encoders, expected = new_rows(), fitted(), {}
    pyarrow.feather.write_feather(rows, folder / "rows.arrow", compression="zstd")
    for name, encoder in encoders.items():
        encoder.save(folder / f"{name}.model")
        expected |= {f"{name}/{column}": values for column, values in encodings_of(encoder, rows).items()}
    more = encodings_of(learn_more(encoders["target"], rows), rows)
    expected |= {f"target, more/{column}": values for column, values in more.items()}
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
