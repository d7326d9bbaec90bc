"""A script that does not use this library, without and with `gpu_encode.accel`: the same numbers in less time.

    python examples/served_script.py
    python examples/served_script.py --rows 30000

`script` could be any program with encoders of scikit-learn and category_encoders.  Here it runs twice, unchanged: first
by itself, then with its calls served.  For a separate program, use `python -m gpu_encode.accel --report program.py`.
"""

import argparse
from time import perf_counter

import category_encoders
import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from gpu_encode import accel

ENCODERS = {
    "OrdinalEncoder": OrdinalEncoder,
    "OneHotEncoder": OneHotEncoder,
    "TargetEncoder": lambda: TargetEncoder(random_state=0),
    "category_encoders.TargetEncoder": category_encoders.TargetEncoder,
    "category_encoders.LeaveOneOutEncoder": category_encoders.LeaveOneOutEncoder,
    "category_encoders.CountEncoder": category_encoders.CountEncoder,
}


def script(X: pd.DataFrame, y: pd.Series) -> tuple[list[float], list[np.ndarray]]:
    """Encode the rows with each encoder; give the seconds and the encodings."""
    seconds, encodings = [], []
    for make in ENCODERS.values():
        start = perf_counter()
        made = make().fit_transform(X, y)
        seconds.append(perf_counter() - start)
        encodings.append(made.indices if hasattr(made, "indices") else np.asarray(made))
    return seconds, encodings


def made(n_rows: int) -> tuple[pd.DataFrame, pd.Series]:
    """Make rows with two columns of text, of a thousand values each, and a target."""
    random = np.random.default_rng(0)
    names = np.array([f"value {number}" for number in range(1000)])
    X = pd.DataFrame({"shop": names[random.integers(0, 1000, n_rows)], "item": names[random.integers(0, 1000, n_rows)]})
    return X, pd.Series(random.random(n_rows) < 0.3, dtype=int)


def main() -> None:
    """Run the script twice; print its times, whether the numbers are the same, and which library served its calls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000, help="rows to encode")
    X, y = made(parser.parse_args().rows)
    before, theirs = script(X, y)
    accel.install()
    after, ours = script(X, y)
    for name, *times, one, other in zip(ENCODERS, before, after, theirs, ours, strict=True):
        same = "the same numbers" if np.allclose(one, other, rtol=0.0, atol=1e-12) else "other numbers"
        print(f"{name}: {times[0]:.2f} s before, {times[1]:.2f} s after, {same}")
    print(accel.report())
    accel.uninstall()


if __name__ == "__main__":
    main()
