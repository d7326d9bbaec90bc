"""Counts the files that a call goes through: ``python -m tests.architecture.call_path [--files]``.

A file counts when one of its functions is called.  Code that runs because a module is imported, and methods that
`dataclass` writes, do not count.
"""

import argparse
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import partial
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd

from gpu_encode import OneHotEncoder, TargetEncoder, encode_dataset
from gpu_encode.seam.ops import use_backend

ROOT = Path(__file__).parents[2]
PACKAGES = ("gpu_encode", "cpu_fallback")
N_ROWS = 1_000


def functions_of(call: Callable[[], Any]) -> set[CodeType]:
    """Return the project's functions that a call runs, in all its threads; an unrecorded call runs before."""
    seen: set[CodeType] = set()

    def observe(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    # The backend that a small table gets, whatever this process has loaded before.
    with use_backend("numpy"):
        call()
        before = sys.getprofile()
        threading.setprofile(observe)
        sys.setprofile(observe)
        try:
            call()
        finally:
            sys.setprofile(before)
            threading.setprofile(None)  # type: ignore[arg-type]
    return {code for code in seen if is_function(code) and file_of(code) is not None}


def is_function(code: CodeType) -> bool:
    """Whether code belongs to a function, lambda or comprehension, and not to a module or class."""
    return bool(code.co_flags & CO_OPTIMIZED)


def file_of(code: CodeType) -> str | None:
    """Return the path of the code's file in the checkout; None for files outside of the project."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    path = path.relative_to(ROOT)
    return path.as_posix() if path.parts[0] in PACKAGES else None


def rows() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Make a small table of two columns of text, and a target of 0 and 1."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"city": random.choice(["Bonn", "Lima", "Oslo"], N_ROWS), "shop": random.integers(0, 40, N_ROWS).astype(str)}
    )
    return frame, random.integers(0, 2, N_ROWS)


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return the calls to examine, by name; they read and write files in the folder."""
    frame, y = rows()
    source = folder / "rows.parquet"
    frame.assign(sold=y).to_parquet(source)
    encoder = TargetEncoder(columns=["city", "shop"])
    return {
        "fit_transform": lambda: TargetEncoder().fit_transform(frame, y),
        "transform": partial(TargetEncoder().fit(frame, y).transform, frame),
        "OneHotEncoder": lambda: OneHotEncoder().fit_transform(frame),
        "encode_dataset": lambda: encode_dataset(
            source, folder / "encoded.parquet", encoder, target="sold", overwrite=True
        ),
    }


def table(with_files: bool) -> str:
    """Write a line for each call, and its files on request."""
    lines = [f"{'call':20}{'files':>8}{'functions':>12}{'lines':>8}"]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in calls(Path(folder)).items():
            functions = functions_of(call)
            files = sorted({str(file_of(code)) for code in functions})
            n_lines = sum(len((ROOT / file).read_text().splitlines()) for file in files)
            lines.append(f"{name:20}{len(files):>8}{len(functions):>12}{n_lines:>8,}")
            lines.extend(f"    {file}" for file in files * with_files)
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count the files of the project that calls go through.")
    parser.add_argument("--files", action="store_true", help="list them, too")
    sys.stdout.write(table(parser.parse_args().files) + "\n")
