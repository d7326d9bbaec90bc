"""What travels between workers, measured: how large it is, and how long adding and fitting take."""

import pickle
import time
from collections.abc import Callable
from typing import Any

import pyarrow.parquet

from benchmarks.billion.drawn import KEYS, TARGET
from benchmarks.billion.encoding import encoder
from benchmarks.billion.process import answer, question


def timed(found: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    """Do something and write down its seconds."""
    begun = time.perf_counter()
    given = work()
    found[name] = time.perf_counter() - begun
    return given


def main() -> None:
    """Take two parts through the four steps; the second time kernels are loaded."""
    asked = question()
    measured(asked)
    answer(measured(asked))


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """Seconds, and bytes of what is pickled."""
    from gpu_encode.parts import Part, encode, fit, measure, plan, profile

    fitted = encoder(list(KEYS), asked["dtype"])
    tables = [pyarrow.parquet.read_table(path) for path in asked["source"]]
    starts = [0, len(tables[0])]
    parts = [
        Part(table.select(list(KEYS)), table[TARGET], first_row=start)
        for table, start in zip(tables, starts, strict=True)
    ]
    seconds: dict[str, float] = {}
    profiles = timed(seconds, "profile", lambda: [profile(fitted, part) for part in parts])
    encoding_plan = plan(fitted, profiles[0] + profiles[1])
    # What of these is sent is sent before the encoder is fitted.
    sizes = {"profile": len(pickle.dumps(profiles[0], 5)), "blueprint": len(pickle.dumps(encoding_plan, 5))}
    sums = timed(seconds, "measure", lambda: [measure(encoding_plan, part) for part in parts])
    packed = timed(seconds, "pickle sums", lambda: [pickle.dumps(each, 5) for each in sums])
    again = timed(seconds, "unpickle sums", lambda: [pickle.loads(each) for each in packed])
    whole = timed(seconds, "add", lambda: again[0] + again[1])
    codes = timed(seconds, "fit", lambda: fit(fitted, encoding_plan, whole))
    broadcast = timed(seconds, "pickle tables", lambda: pickle.dumps(codes, 5))
    timed(seconds, "unpickle tables", lambda: pickle.loads(broadcast))
    timed(seconds, "encode", lambda: [encode(codes, part) for part in parts])
    sizes |= {"sums": len(pickle.dumps(whole, 5)), "tables": len(broadcast)}
    return {
        "rows": sum(map(len, tables)),
        "categories": sum(whole.n_categories),
        "categories of parts": [sum(each.n_categories) for each in sums],
        "seconds": seconds,
        "bytes": sizes,
    }


if __name__ == "__main__":
    main()
