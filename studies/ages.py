"""When do half-lives and windows pay, and what do they cost?

    python -m studies.ages --data FOLDER [--only flights,taxis,clicks,speed] [--rows 1e6] [--out FILE]

Quality: columns are encoded, and a linear model on the encodings is scored on later days.  *Frozen*: `TimeFolds` on the
days before a cut; days after it are encoded as new rows.  *Running*: `Ordered` over all rows; the model is fitted to
the rows before the first cut.  Intervals are those of the difference from a scheme without ages, over draws of whole
days.  Speed: schemes are timed in turns.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpu_encode import Ordered, TargetEncoder, TimeFolds

DRAWS = 2000
Ages = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """Rows in order of time, the encoded columns, the target, the cuts after which days are scored, and ages."""

    name: str
    rows: pd.DataFrame
    columns: list[str]
    y: NDArray[Any]
    cuts: list[str]
    n_splits: int
    half_lives: list[str]
    windows: list[str]

    @property
    def binary(self) -> bool:
        """Whether the target is 0 or 1."""
        return self.y.dtype.kind == "i"

    def ages(self) -> list[Ages]:
        """List the variants: without ages first, then half-lives and windows."""
        return [{}, *({"half_life": span} for span in self.half_lives), *({"window": span} for span in self.windows)]


def flights(folder: Path) -> Task:
    """Read flights from New York in 2013; the target is whether a flight is more than 15 minutes late."""
    rows = pd.read_parquet(folder / "nycflights13.parquet").dropna(subset=["arr_delay", "tailnum"])
    day = pd.to_datetime(rows[["year", "month", "day"]])
    rows["time"] = day + pd.to_timedelta(rows["hour"], "h")
    rows = rows.sort_values("time", kind="stable", ignore_index=True)
    late = (rows["arr_delay"] > 15).to_numpy().astype(np.int64)
    cuts = [f"2013-{month:02}-01" for month in range(4, 13)] + ["2014-01-01"]
    spans = ["1d", "3d", "7d", "30d", "90d"]
    return Task("flights", rows, ["carrier", "origin", "dest", "tailnum", "flight"], late, cuts, 30, spans, spans[2:])


def taxis(folder: Path) -> Task:
    """Read a month of taxi rides; the target is the logarithm of the fare a mile, and zones are encoded."""
    rows = pd.read_parquet(folder / "taxis.parquet").dropna(subset=["pickup_zone", "dropoff_zone"])
    rows = rows[(rows["distance"] > 0) & (rows["fare"] > 0)].assign(
        time=lambda rows: pd.to_datetime(rows["pickup"]).dt.floor("h")
    )
    rows = rows[rows["time"] >= "2019-03-01"].sort_values("time", kind="stable", ignore_index=True)
    price = np.log(rows["fare"] / rows["distance"]).to_numpy()
    cuts = ["2019-03-16", "2019-03-20", "2019-03-24", "2019-03-28", "2019-04-01"]
    spans = ["1d", "3d", "7d", "14d"]
    return Task("taxis", rows, ["pickup_zone", "dropoff_zone", "payment"], price, cuts, 10, spans, spans[1:])


def clicks(_: Path) -> Task:
    """Draw clicks on 400 advertisements over 60 days, whose log-odds follow a random walk with steps of 0.25 a day."""
    rng = np.random.default_rng(0)
    n_rows, n_ads, n_days = 120_000, 400, 60
    steps = rng.normal(scale=0.25, size=(n_days, n_ads))
    odds = -2.0 + rng.normal(scale=0.5, size=n_ads) + np.cumsum(steps, axis=0)
    second = np.sort(rng.integers(0, n_days * 86_400, n_rows))
    ad = rng.choice(n_ads, n_rows, p=(share := 1 / np.arange(1, n_ads + 1)) / share.sum())
    clicked = (rng.random(n_rows) < 1 / (1 + np.exp(-odds[second // 86_400, ad]))).astype(np.int64)
    time = pd.Timestamp("2026-01-01") + pd.to_timedelta(second, "s")
    cuts = [str(day.date()) for day in pd.date_range("2026-02-01", "2026-03-02", freq="3D")]
    spans = ["1d", "3d", "7d", "15d", "30d"]
    return Task("clicks", pd.DataFrame({"ad": ad, "time": time}), ["ad"], clicked, cuts, 30, spans, spans[1:])


def inputs(encodings: pd.DataFrame, binary: bool) -> NDArray[np.float64]:
    """Prepare encodings for a linear model: probabilities become log-odds."""
    values = encodings.to_numpy(np.float64)
    if not binary:
        return values
    values = np.clip(values, 0.002, 0.998)
    return np.log(values / (1 - values))


def losses(task: Task, train: pd.DataFrame, y: NDArray[Any], test: pd.DataFrame, truth: NDArray[Any]) -> Any:
    """Fit a model to training encodings, and give the loss of every later row."""
    seen = ~train.isna().any(axis=1).to_numpy()
    learner = LogisticRegression(C=100.0) if task.binary else LinearRegression()
    model = make_pipeline(StandardScaler(), learner).fit(inputs(train[seen], task.binary), y[seen])
    later = inputs(test.fillna(train.mean()), task.binary)
    if not task.binary:
        return (model.predict(later) - truth) ** 2
    chance = model.predict_proba(later)
    return -np.log(np.where(truth == 1, chance[:, 1], chance[:, 0]))


def frozen(task: Task, ages: Ages) -> Any:
    """Give the losses of all rows after the first cut; each is encoded by the days before the last cut before it."""
    table, time, found = task.rows[[*task.columns, "time"]], task.rows["time"], []
    for start, stop in zip(task.cuts, task.cuts[1:], strict=False):
        train, test = (time < start).to_numpy(), ((time >= start) & (time < stop)).to_numpy()
        encoder = TargetEncoder(columns=task.columns, cv=TimeFolds(task.n_splits, time="time", **ages))
        training = encoder.fit_transform(table[train], task.y[train])[task.columns]
        new = encoder.transform(table[test])[task.columns]
        found.append(losses(task, training, task.y[train], new, task.y[test]))
    return np.concatenate(found)


def running(task: Task, ages: Ages) -> Any:
    """Give the losses of all rows after the first cut; each is encoded by the rows before it."""
    table, time = task.rows[[*task.columns, "time"]], task.rows["time"]
    encoder = TargetEncoder(columns=task.columns, cv=Ordered(time="time", **ages))
    encodings = encoder.fit_transform(table, task.y)[task.columns]
    train, test = (time < task.cuts[0]).to_numpy(), (time.between(task.cuts[0], task.cuts[-1], "left")).to_numpy()
    return losses(task, encodings[train], task.y[train], encodings[test], task.y[test])


def interval(difference: NDArray[np.float64], days: NDArray[np.int64]) -> tuple[float, float]:
    """Give the 95 % interval of the mean difference, from random draws of whole days."""
    rng, n_days = np.random.default_rng(1), int(days.max()) + 1
    sums, rows = np.bincount(days, difference, n_days), np.bincount(days, minlength=n_days)
    drawn = rng.multinomial(n_days, np.full(n_days, 1 / n_days), DRAWS)
    low, high = np.quantile(drawn @ sums / (drawn @ rows), [0.025, 0.975])
    return float(low), float(high)


def quality(task: Task) -> Iterator[str]:
    """Yield the lines of the table of quality."""
    time = task.rows["time"]
    scored = time[time.between(task.cuts[0], task.cuts[-1], "left")].dt.floor("D")
    days = np.unique(scored, return_inverse=True)[1]
    kind, n_days = "log loss" if task.binary else "squared error", days.max() + 1
    yield f"\n## {task.name}, {kind}, {len(scored):,} rows of {n_days} days\n"
    yield "| ages | frozen: loss | 1,000 x difference, 95 % | running: loss | 1,000 x difference, 95 % |"
    yield "|---|---:|---:|---:|---:|"
    before: list[Any] = []
    for ages in task.ages():
        cells = []
        for number, way in enumerate((frozen, running)):
            loss = way(task, ages)
            if not ages:
                before.append(loss)
            change = loss - before[number]
            low, high = interval(change, days)
            less = f"{1000 * change.mean():+.2f} ({1000 * low:+.2f} to {1000 * high:+.2f})" if ages else ""
            cells += [f"{loss.mean():.4f}", less]
        name = " ".join(f"{name} {span}" for name, span in ages.items()).replace("_", "-") or "none"
        yield f"| {name} | {' | '.join(cells)} |"


def speed(n_rows: int, turns: int = 3) -> Iterator[str]:
    """Yield the lines of the table of times: schemes run in turns, and the least time of all threads counts."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 2000, n_rows), np.sort(rng.integers(0, 365 * 86_400, n_rows))])
    targets = {"two classes": rng.integers(0, 2, n_rows), "real": rng.normal(size=n_rows).round(2)}
    day = 86_400
    ages: list[Ages] = [{}, {"half_life": 7 * day}, {"half_life": 60 * day}, {"window": 60 * day}]
    yield f"\n### fit_transform of {n_rows:,} rows, 2,000 categories, a year of distinct seconds, ns of the CPU a row\n"
    yield "| scheme | target | none | half-life 7d | half-life 60d | window 60d |\n|---|---|---:|---:|---:|---:|"
    for scheme in (TimeFolds, Ordered):
        for name, y in targets.items():
            least = [np.inf] * len(ages)
            for _ in range(turns):
                for number, given in enumerate(ages):
                    encoder = TargetEncoder(columns=[0], cv=scheme(time=1, **given), smooth=20.0)
                    start = process_time()
                    encoder.fit_transform(table, y)
                    least[number] = min(least[number], process_time() - start)
            cells = [f"{1e9 * time / n_rows:.0f} ({time / least[0]:.1f}x)" for time in least]
            yield f"| {scheme.__name__} | {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables, and write them to a file if the user names one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path(), help="folder of nycflights13.parquet and taxis.parquet")
    parser.add_argument("--only", default="flights,taxis,clicks,speed")
    parser.add_argument("--rows", type=float, default=1e6, help="rows that are timed")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    lines = []
    for name in options.only.split(","):
        made = {"flights": flights, "taxis": taxis, "clicks": clicks}.get(name)
        for line in quality(made(options.data)) if made else speed(int(options.rows)):
            lines.append(line)
            print(line, file=sys.stderr, flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
