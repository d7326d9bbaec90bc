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
    """Read the options of every example: which frames, how many rows, where to compute."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    usual = "cudf" if has_gpu() and find_spec("cudf") else "pandas"
    parser.add_argument("--frames", choices=("cudf", "pandas", "polars"), default=usual)
    parser.add_argument("--rows", type=int, default=rows, help="rows to train on; as many are made to test on")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the encoder computes")
    return parser.parse_args()


def has_gpu() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    try:
        return bool(import_module("cupy").cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):
        return False


def columns(n_rows: int) -> dict[str, np.ndarray]:
    """Make `n_rows` orders to train on and as many to test on, one after the other.

    Shops (ten orders each) and cities differ in their rate of returns.  Customers (two orders each) do not, so an
    encoding of customers that seems to predict returns has seen the answer.
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
    """Give training rows, their target, test rows and their target, as frames and series of a library."""
    if library == "cudf":
        table = import_module("cudf").from_pandas(import_module("pandas").DataFrame(columns(n_rows)))
    else:
        table = import_module(library).DataFrame(columns(n_rows))
    keys = [*KEYS, "price"]
    old, new = table[:n_rows], table[n_rows:]
    return old[keys], old["returned"], new[keys], new["returned"]


def on_host(values: Any) -> np.ndarray:
    """Give a series, a frame or an array, on any device, as a NumPy array."""
    for method in ("to_numpy", "get"):
        if hasattr(values, method):
            return np.asarray(getattr(values, method)())
    return np.asarray(values)


def auc(target: Any, probability: Any) -> float:
    """Area under the ROC curve; if there are two columns of probabilities, the last one is for returned orders."""
    chances = on_host(probability)
    return float(roc_auc_score(on_host(target), chances[:, -1] if chances.ndim == 2 else chances))


def compare_schemes(text: str, score: Callable[..., tuple[float, float]]) -> None:
    """Print the results of `score(scheme, options, data)` on training rows and new rows, for folds and for Greedy."""
    options = arguments(text)
    data = frames(options.frames, options.rows)
    # The warning is expected: the example shows that greedy encodings leak.
    warnings.filterwarnings("ignore", "Greedy training encodings contain")
    for name, scheme in {"cross-fitted": KFold(5), "greedy": Greedy()}.items():
        train, test = score(scheme, options, data)
        print(f"{name}: train AUC {train:.3f}, test AUC {test:.3f}")
