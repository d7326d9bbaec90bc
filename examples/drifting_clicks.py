"""Clicks on advertisements whose appeal drifts: equal weights for earlier rows, weights that fall with age, windows.

    python examples/drifting_clicks.py
    python examples/drifting_clicks.py --rows 20000 --drift 0.0

The log-odds of an advertisement follow a random walk, with steps of `--drift` a day.  `Ordered(time=...,
half_life=...)` encodes every row from the rows before it, each weighted by its age at that time.  So the encodings of
later days are honest predictions: they are scored by their log loss in the last third of the days.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from gpu_encode import Ordered, TargetEncoder

N_DAYS, N_ADS = 60, 100


def made(n_rows: int, drift: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Make views of advertisements in order of time, and say which of them led to a click."""
    random = np.random.default_rng(5)
    odds = random.normal(-1.5, 0.5, N_ADS) + np.cumsum(random.normal(0, drift, (N_DAYS, N_ADS)), axis=0)
    second, ad = np.sort(random.integers(N_DAYS * 86_400, size=n_rows)), random.integers(N_ADS, size=n_rows)
    clicked = random.random(n_rows) < 1 / (1 + np.exp(-odds[second // 86_400, ad]))
    time = pd.Timestamp("2026-01-01") + pd.to_timedelta(second, "s")
    return pd.DataFrame({"ad": ad, "time": time}), clicked.astype(int)


def main() -> None:
    """Print the loss of every scheme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--drift", type=float, default=0.25, help="step of the log odds a day")
    options = parser.parse_args()
    views, clicked = made(options.rows, options.drift)
    late = (views["time"] >= views["time"].iloc[0] + pd.Timedelta(days=N_DAYS * 2 // 3)).to_numpy()
    for ages in (
        {},
        {"half_life": "2d"},
        {"half_life": "5d"},
        {"half_life": "20d"},
        {"window": "7d"},
        {"window": "15d"},
    ):
        # The burn-in leaves out the first row, which sees no other row.
        encoder = TargetEncoder(columns=["ad"], smooth=10.0, cv=Ordered(time="time", burn_in=1, **ages))
        chance = encoder.fit_transform(views, clicked)["ad"].to_numpy()
        name = " ".join(f"{name} {span}" for name, span in ages.items()) or "all earlier rows"
        print(f"{name:16} log loss {log_loss(clicked[late], chance[late]):.4f}")


if __name__ == "__main__":
    main()
