"""What is asked of ours: so many times faster than others, and a share of bare loops; and what that would take."""

from typing import Any

from benchmarks.cpu.grid import REAL_WORKS

Record = dict[str, Any]

# Goals: times faster than, and share of the limit.
TIMES = {"scikit-learn": 15.0, "library": 2.0, "engine": 2.0, "hand-written": 1.3}
SHARE, SHARE_OF_REAL = 0.7, 0.5
# Share of the limit -> its column; the second looks values up for fit and again for transform.
LIMITS = {"limit": "share of limit", "limit, twice": "share of limit, values twice"}
# Goals are for a million rows and more.
FEWEST_ROWS = 1_000_000
MISSED, OUT_OF_REACH = " (!)", " (limit)"


def best(cell: Record, family: str) -> tuple[str, float] | None:
    """Fastest of a family that was timed, and its seconds."""
    records = cell["contenders"].items()
    found = [
        (record["seconds"], name) for name, record in records if record["family"] == family and "seconds" in record
    ]
    return None if not found else min(found)[::-1]


def ratio(cell: Record, family: str) -> tuple[str, float] | None:
    """Fastest of a family, and how many times faster ours is."""
    peer, ours = best(cell, family), cell["contenders"].get("ours", {}).get("seconds")
    return None if peer is None or ours is None else (peer[0], peer[1] / ours)


def share(cell: Record) -> float:
    """Share of the limit that is asked for."""
    return SHARE_OF_REAL if cell["work"] in REAL_WORKS else SHARE


def missed(cell: Record, family: str) -> bool:
    """Whether ours misses a goal that there is."""
    found = ratio(cell, family)
    return found is not None and found[1] < (share(cell) if family in LIMITS else TIMES[family])


def out_of_reach(cell: Record, family: str) -> bool:
    """Whether a goal against others asks for more than the share of the limit that is asked for."""
    peer, limit = best(cell, family), best(cell, "limit")
    if family in LIMITS or peer is None or limit is None:
        return False
    return limit[1] * TIMES[family] > share(cell) * peer[1]


def mark(cell: Record, family: str) -> str:
    """What stands behind a ratio."""
    if cell["rows"] < FEWEST_ROWS or not missed(cell, family):
        return ""
    return OUT_OF_REACH if out_of_reach(cell, family) else MISSED
