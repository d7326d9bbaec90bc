"""``gpu-encode demo``: generate rows, encode them with the commands that a user would type, and check for leaks."""

import argparse
import io
import tempfile
import warnings
from contextlib import chdir, redirect_stderr
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import gpu_encode
from gpu_encode.cli import fit_transform, transform
from gpu_encode.cli.arguments import parse

FIT = (
    "gpu-encode fit-transform orders.parquet orders_encoded.parquet"
    " --target returned --columns merchant,city,city+device --model orders.model"
)
NEW = "gpu-encode transform new_orders.parquet new_orders_encoded.parquet --model orders.model"
FEWEST_ROWS = 1000

Array = NDArray[Any]


def run(options: argparse.Namespace) -> int:
    """Run the command in a temporary folder."""
    n_rows = max(options.rows, FEWEST_ROWS)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="gpu-encode-demo-") as folder, chdir(folder):
        orders = make_orders(2 * n_rows)
        old, new = orders.slice(0, n_rows), orders.slice(n_rows)
        pyarrow.parquet.write_table(old, "orders.parquet")
        pyarrow.parquet.write_table(new, "new_orders.parquet")
        merchants = len(set(old["merchant"].to_pylist()))
        console.print(f"Made {n_rows:,} orders from {merchants:,} merchants, and as many new ones to test on.\n")
        console.print(f"[bold]$ {FIT}\n$ {NEW}[/bold]\n", soft_wrap=True)
        # The messages of these commands about files and seconds do not matter here.
        with redirect_stderr(io.StringIO()):
            fit_transform.run(parse(FIT.split()[1:]))
            transform.run(parse(NEW.split()[1:]))
        console.print(before_and_after(old, pyarrow.parquet.read_table("orders_encoded.parquet")))
    console.print()
    console.print(leak_check(old, new))
    console.print(
        "AUC of a small decision tree on the encoded merchant alone. The test column is its true value; "
        "a training score above it is an illusion, on which a larger model would be built."
    )
    return 0


def make_orders(n_rows: int) -> pa.Table:
    """Make orders, the same every time: about ten for each merchant; merchants differ in their return rate.

    Parameters
    ----------
    n_rows : int
        Number of orders.

    Examples
    --------
    >>> make_orders(100).column_names
    ['merchant', 'city', 'device', 'amount', 'returned']
    """
    random = np.random.default_rng(7)
    n_merchants = max(n_rows // 10, 1)
    cities = np.array(["Lagos", "Lima", "Oslo", "Pune", "Quito", "Riga", "Turin", "Xiamen"], dtype=object)
    devices = np.array(["phone", "tablet", "desktop", None], dtype=object)
    rate = random.beta(2, 6, n_merchants)
    merchant = random.integers(n_merchants, size=n_rows)
    city = random.integers(len(cities), size=n_rows)
    device = random.choice(len(devices), size=n_rows, p=[0.5, 0.1, 0.35, 0.05])
    odds = rate[merchant] * (1 + 0.04 * (city - 3.5)) * np.array([1.1, 1.0, 0.9, 1.0])[device]
    names = np.array([f"shop-{number:05d}" for number in range(n_merchants)], dtype=object)
    return pa.table(
        {
            "merchant": names[merchant],
            "city": cities[city],
            "device": devices[device],
            "amount": np.round(random.gamma(2.0, 30.0, n_rows), 2),
            "returned": (random.random(n_rows) < odds).astype(np.int64),
        }
    )


def before_and_after(before: pa.Table, after: pa.Table, n_rows: int = 5) -> Table:
    """Return the first rows before and after encoding."""
    table = Table(title="The first rows, before and after", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    plain = ["merchant", "city", "device", "returned"]
    encoded = ["merchant", "city", "city_x_device"]
    for name in [*plain, "", *encoded]:
        table.add_column(name, justify="right", no_wrap=True)
    for old, new in zip(before.slice(0, n_rows).to_pylist(), after.slice(0, n_rows).to_pylist(), strict=True):
        encodings = [f"{new[name]:.4f}" for name in encoded]
        table.add_row(*("missing" if old[name] is None else str(old[name]) for name in plain), "→", *encodings)
    return table


def leak_check(old: pa.Table, new: pa.Table) -> Table:
    """Return for each scheme the score in training, the score on new rows, and a verdict."""
    schemes = {
        "greedy": gpu_encode.Greedy(),
        "k-fold": gpu_encode.KFold(),
        "leave-one-out": gpu_encode.LeaveOneOut(),
        "ordered": gpu_encode.Ordered(),
    }
    table = Table(title="Does the training score hold on new rows?", title_justify="left")
    table.add_column("scheme", no_wrap=True)
    table.add_column("train AUC", justify="right")
    table.add_column("test AUC", justify="right")
    table.add_column("in words")
    for name, scheme in schemes.items():
        train, test = scores(scheme, old, new)
        table.add_row(name, f"{train:.3f}", f"{test:.3f}", verdict(name, train, test))
    return table


def scores(scheme: Any, old: pa.Table, new: pa.Table) -> tuple[float, float]:
    """Return the AUC of a small tree on the encoded merchant, on its training rows and on new rows."""
    from sklearn.metrics import roc_auc_score
    from sklearn.tree import DecisionTreeClassifier

    encoder = gpu_encode.TargetEncoder(smooth=10.0, cv=scheme)
    target, new_target = old["returned"].to_numpy(), new["returned"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the leak of greedy is shown below
        encodings = column(encoder.fit_transform(old.select(["merchant"]), target))
    new_encodings = column(encoder.transform(new.select(["merchant"])))
    tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=max(len(target) // 400, 50), random_state=0)
    tree.fit(encodings, target)
    return (
        float(roc_auc_score(target, tree.predict_proba(encodings)[:, 1])),
        float(roc_auc_score(new_target, tree.predict_proba(new_encodings)[:, 1])),
    )


def column(table: pa.Table) -> Array:
    """Return the only column of a table in the form that scikit-learn takes."""
    values: Array = table.column(0).to_numpy()
    return values.reshape(-1, 1)


def verdict(name: str, train: float, test: float) -> str:
    """Explain two scores.

    Examples
    --------
    >>> verdict("k-fold", 0.622, 0.620)
    'Holds: training shows what new rows will show.'
    """
    gap = train - test
    if gap <= 0.03:
        return "Holds: training shows what new rows will show."
    why = {
        "greedy": "a row's own target is in its encoding",
        "leave-one-out": "taking the row out moves its encoding against its target, and the tree reads that",
    }.get(name)
    if why is None:
        return f"No leak, but too few rows: {gap:.3f} of it is the tree's own luck."
    # Leave-one-out keeps a row's target out of its encoding, and still reveals it to a model.
    word = "Leaks" if name == "greedy" else "Misleads"
    return f"{word}: {gap:.3f} of it is not there on new rows; {why}."
