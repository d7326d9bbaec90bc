"""Calls that fused passes left to array expressions or exact code: the same bits, but many times as slow."""

from collections import Counter

# Number of calls by reason.  A test checks that there are none in benchmarks.
FALLBACKS: Counter[str] = Counter()
WIDE = "cells of more digits than a thread keeps, or an output that kernels do not write"
DOUBTS = "more estimates in doubt than there is room for"
TIES = "rows of one time"
LARGE = "counts of 2**31 rows or more"
OPEN = "more rows that closed forms leave open than there is room for: exact code encodes all"


def leave_to_arrays(fused_pass: str, reason: str) -> None:
    """Record that a fused pass does not serve a call."""
    FALLBACKS[f"{fused_pass}: {reason}"] += 1
