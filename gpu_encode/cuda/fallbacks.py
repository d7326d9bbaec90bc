"""What fused passes have left to array expressions or exact code: the same bits, which take many times as long."""

from collections import Counter

# How often, by reason.  A test asks that no benchmark is among them.
FALLBACKS: Counter[str] = Counter()
WIDE = "cells of more digits than a thread keeps, or an output that kernels do not write"
DOUBTS = "more estimates in doubt than there is room for"
TIES = "rows of one time"
LARGE = "counts of 2**31 rows or more"
OPEN = "more rows that closed forms leave open than there is room for: exact code encodes all"


def leave_to_arrays(fused_pass: str, reason: str) -> None:
    """Note that a fused pass serves a call no further."""
    FALLBACKS[f"{fused_pass}: {reason}"] += 1
