"""Made orders, the same every time: the data of all examples here."""

import argparse
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from gpu_encode import Greedy, KFold

KEYS = ["shop", "customer", "city"]


def arguments(text: str, rows: int = 200_000) -> argparse.Namespace:
    """Read what every example is asked: which frames, how many rows, where to compute."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    usual = "cudf" if has_gpu() and find_spec("cudf") else "pandas"
    parser.add_argument("--frames", choices=("cudf", "pandas", "polars"), default=usual)
    parser.add_argument("--rows", type=int, default=rows, help="rows to train on; as many are made to test on")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the encoder computes")
    return parser.parse_args()


def has_gpu() -> bool:
    """Whether there is a GPU, and CuPy to ask for it."""
    try:
        return bool(import_module("cupy").cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):
        return False


def columns(n_rows: int) -> dict[str, np.ndarray]:
    """Make `n_rows` orders to train on and as many to test on, one after the other.

    Shops (ten orders each) and cities differ in their rate of returns.  Customers (two orders each) do not, so a code
    that seems to know them has seen the answer.
    """
    random = np.random.default_rng(7)
    n_shops, n_customers, n = max(n_rows // 10, 1), max(n_rows // 2, 1), 2 * n_rows
    cities = np.array(["Lagos", "Lima", "Oslo", "Pune", "Quito", None], dtype=object)
    shop, customer = random.integers(n_shops, size=n), random.integers(n_customers, size=n)
    city, price = random.integers(len(cities), size=n), random.gamma(2.0, 30.0, n)
    odds = random.beta(2, 4, n_shops)[shop] * np.linspace(0.8, 1.2, len(cities))[city] + price / 2000
    return {
        "shop": np.array([f"shop-{number:06d}" for number in range(n_shops)], dtype=object)[shop],
        "customer": customer,
        "city": cities[city],
        "price": price.round(2),
        "returned": (random.random(n) < odds).astype(np.int32),
    }


def frames(library: str, n_rows: int) -> tuple[Any, Any, Any, Any]:
    """Give training rows, their target, test rows, their target, as frames and series of a library."""
    if library == "cudf":
        table = import_module("cudf").from_pandas(import_module("pandas").DataFrame(columns(n_rows)))
    else:
        table = import_module(library).DataFrame(columns(n_rows))
    keys = [*KEYS, "price"]
    old, new = table[:n_rows], table[n_rows:]
    return old[keys], old["returned"], new[keys], new["returned"]


def on_host(values: Any) -> np.ndarray:
    """Give a NumPy array of a series, a frame or an array, wherever it lies."""
    for method in ("to_numpy", "get"):
        if hasattr(values, method):
            return np.asarray(getattr(values, method)())
    return np.asarray(values)


def auc(target: Any, probability: Any) -> float:
    """Area under the ROC curve; of two columns of probabilities the last is the one of returned orders."""
    chances = on_host(probability)
    return float(roc_auc_score(on_host(target), chances[:, -1] if chances.ndim == 2 else chances))


def compare_schemes(text: str, score: Callable[..., tuple[float, float]]) -> None:
    """Print what `score(scheme, options, data)` gives on training rows and new ones, by folds and by greedy codes."""
    options = arguments(text)
    data = frames(options.frames, options.rows)
    # That greedy codes leak is what is shown here.
    warnings.filterwarnings("ignore", "Greedy training encodings contain")
    for name, scheme in {"cross-fitted": KFold(5), "greedy": Greedy()}.items():
        train, test = score(scheme, options, data)
        print(f"{name}: train AUC {train:.3f}, test AUC {test:.3f}")
