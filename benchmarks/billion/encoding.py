"""The process that is measured: `encode_dataset`, and nothing beside it."""

import sys
import time
from dataclasses import asdict
from typing import Any

from benchmarks.billion.process import answer, question

N_FOLDS, SMOOTHING = 5, 10


def encoder(columns: list[str], dtype: str) -> Any:
    """Make the encoder: five random folds, an m-estimate, no GPU."""
    from gpu_encode import KFold, MEstimate, TargetEncoder

    return TargetEncoder(
        columns=columns, target_type="binary", cv=KFold(N_FOLDS), smooth=MEstimate(SMOOTHING), dtype=dtype, device="cpu"
    )


def main() -> None:
    """Encode, save the model, and say what it took."""
    asked = question()
    begun, processor = time.perf_counter(), time.process_time()
    from gpu_encode import encode_dataset

    fitted = encoder(asked["columns"], asked["dtype"])
    summary = encode_dataset(
        asked["source"],
        asked["destination"],
        fitted,
        target=asked["target"],
        memory_limit=asked["memory limit"],
        progress=True if sys.stderr.isatty() else None,
    )
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    fitted.save(asked["model"])
    categories = {name: len(found) for name, found in zip(asked["columns"], fitted.categories_, strict=True)}
    found = asdict(summary) | {"seconds": dict(summary.seconds)}
    answer({"seconds": seconds, "processor seconds": processor, "summary": found, "categories": categories})


if __name__ == "__main__":
    main()
