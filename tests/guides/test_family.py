"""The tables of docs/family.md say truly which inputs each encoder takes."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpu_encode
from gpu_encode.export import to_arrow

TEXT = (Path(__file__).parents[2] / "docs/family.md").read_text()
ROWS = re.findall(r"^\| `(\w+)\(.*?" + r"\| (yes|no) " * 5 + r"\| (yes|no|factors) \|$", TEXT, re.MULTILINE)
N = 60
RANDOM = np.random.default_rng(0)
X = pd.DataFrame({"shop": RANDOM.choice(list("xyz"), N), "city": RANDOM.choice(list("uvw"), N)})
Y = RANDOM.integers(0, 2, N)
SIZES = {"n_components": 1, "n_clusters": 2}


def make(name):
    encoder = getattr(gpu_encode, name)()
    return encoder.set_params(**{size: n for size, n in SIZES.items() if size in encoder.get_params()})


def read_files(encoder, folder):
    X.assign(sold=Y).to_parquet(folder / "rows.parquet")
    gpu_encode.encode_dataset(folder / "rows.parquet", folder / "encoded", encoder, target="sold")


WORKS = {
    "files": read_files,
    "partial_fit": lambda encoder, _: encoder.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:]),
    "merge": lambda encoder, _: encoder.fit(X[:30], Y[:30]).merge(make(type(encoder).__name__).fit(X[30:], Y[30:])),
    "forget": lambda encoder, _: encoder.fit(X, Y).forget(X[:9], Y[:9]),
    "drift": lambda encoder, _: encoder.fit(X, Y).drift(X[:9]),
    "export": lambda encoder, _: to_arrow(encoder.fit(X, Y)),
}


def test_the_table_is_read():
    assert len(ROWS) == 5
    assert "| files | `partial_fit` | `merge` | `forget` | `drift` | export |" in TEXT


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "work", "said"), [(row[0], *each) for row in ROWS for each in zip(WORKS, row[1:], strict=True)]
)
def test_encoders_take_what_the_table_says(name, work, said, tmp_path):
    if said == "yes":
        WORKS[work](make(name), tmp_path)
    else:
        reasons = f"{name} (learns from all rows together|has no {work}|cannot be exported)"
        with pytest.raises((ValueError, AttributeError, TypeError), match=reasons):
            WORKS[work](make(name), tmp_path)
    if said == "factors":
        WORKS[work](make(name).set_params(output="factors"), tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [row[0] for row in ROWS])
def test_every_encoder_can_be_asked_for_leaks(name):
    assert gpu_encode.leak_report(make(name), X, Y, n_shuffles=3, n_flips=2) is not None
