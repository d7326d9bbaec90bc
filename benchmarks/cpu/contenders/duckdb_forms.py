"""duckdb: group by and join, and windows, on a table of its own."""

import os
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cpu.grid import FOLD_WORKS, SMOOTH
from benchmarks.cpu.judge import expected_of
from benchmarks.harness.grid import Contender, Prepared
from benchmarks.harness.rows import N_CLASSES, Array, Rows

WINDOWED = ("mean", "mean-real", "ordered", "leave-one-out", "count", "codes")
JOINED = ("mean", "mean-real", "folds", "folds-real", "leave-one-out", "count", "classes", "codes")
PRIOR = "(select avg(y) from t)"


def connected(rows: Rows) -> Any:
    """Connection with the rows in a native table."""
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    connection.execute(f"set threads to {os.cpu_count()}")
    keys = rows.frame if rows.keys == "category" else pa.table({"key": rows.arrow})
    others = pa.table({"i": np.arange(rows.n_rows), "y": rows.target, "fold": rows.folds})
    connection.register("keys", keys)
    connection.register("others", others)
    connection.execute("create table t as select * from others positional join keys")
    connection.unregister("keys")
    connection.unregister("others")
    return connection


def shrunk(total: str, count: str) -> str:
    """Mean of a category and the mean of all rows."""
    return f"(({total}) + {SMOOTH} * {PRIOR}) / (({count}) + {SMOOTH})"


def window(work: str) -> str:
    """Query by windows."""
    over = "over (partition by key)"
    before = "over (partition by key order by i rows between unbounded preceding and 1 preceding)"
    code = {
        "count": f"(count(*) {over})::double",
        "codes": "dense_rank() over (order by key)::integer",
        "ordered": shrunk(f"coalesce(sum(y) {before}, 0)", f"count(*) {before}"),
        "leave-one-out": shrunk(f"sum(y) {over} - y", f"count(*) {over} - 1"),
    }.get(work, shrunk(f"sum(y) {over}", f"count(*) {over}"))
    return f"select i, {code} as code from t"


def join(work: str) -> str:
    """Query by group by and join."""
    if work in FOLD_WORKS:
        return join_by_fold(work)
    if work == "codes":
        numbered = "select key, (row_number() over ())::integer as code from (select distinct key from t)"
        return f"with g as ({numbered}) select i, code from t join g using (key)"
    code = {"count": "n::double", "leave-one-out": shrunk("s - y", "n - 1")}.get(work, shrunk("s", "n"))
    groups = "select key, count(*) as n, sum(y) as s from t group by key"
    return f"with g as ({groups}) select i, {code} as code from t join g using (key)"


def join_by_fold(work: str) -> str:
    """Query of totals less a row's own fold."""
    labels = range(N_CLASSES) if work == "classes" else [None]
    sums = ["sum(y)" if label is None else f"count(*) filter (y = {label})" for label in labels]
    parts = ", ".join(f"{each} as s{place}" for place, each in enumerate(sums))
    rest = ", ".join(f"sum(s{place}) over w - s{place} as s{place}" for place in range(len(sums)))
    priors = [PRIOR if label is None else f"(select avg((y = {label})::integer) from t)" for label in labels]
    codes = ", ".join(
        f"(s{place} + {SMOOTH} * {prior}) / (n + {SMOOTH}) as code{place}" for place, prior in enumerate(priors)
    )
    return (
        f"with f as (select key, fold, count(*) as n, {parts} from t group by key, fold), "
        f"g as (select key, fold, sum(n) over w - n as n, {rest} from f window w as (partition by key)) "
        f"select i, {codes} from t join g using (key, fold)"
    )


def prepare(rows: Rows, form: str) -> Prepared:
    """One form of duckdb; its rows come in any order, and go to their places by number."""
    connection = connected(rows)
    query = join(rows.work) if form == "join" else window(rows.work)

    def call() -> Array:
        found = connection.execute(query).fetchnumpy()
        places = found.pop("i")
        columns = [np.asarray(column) for column in found.values()]
        if len(columns) == 1:
            out = np.empty(len(places), columns[0].dtype)
            out[places] = columns[0]
            return out
        matrix = np.empty((len(places), len(columns)), order="F")
        for number, column in enumerate(columns):
            matrix[places, number] = column
        return matrix

    return Prepared(call, expected_of(rows, tolerance=1e-8), connection.close)


CONTENDERS = (
    Contender("duckdb-join", "engine", partial(prepare, form="join"), {"work": JOINED}, ("duckdb",)),
    Contender("duckdb-window", "engine", partial(prepare, form="window"), {"work": WINDOWED}, ("duckdb",)),
)
