"""``gpu-encode benchmark``: run the CPU benchmarks of a checkout in a process of their own."""

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gpu_encode
from gpu_encode.cli.arguments import build
from gpu_encode.cli.messages import refuse

PROGRAM = Path("benchmarks", "cpu", "__main__.py")


def run(options: argparse.Namespace) -> int:
    """Run the command with its arguments; for help, say first what the command does, then its options."""
    folder = find_checkout()
    if {"-h", "--help"} & set(options.arguments):
        sys.stdout.write(build()[1]["benchmark"].format_help() + "\n")
        sys.stdout.flush()
        if folder is None:
            return 0
    if folder is None:
        refuse(
            "the benchmarks come with the source and not with the package: run this in a checkout of gpu-encode, "
            "after pip install --editable '.[bench]'"
        )
    if find_spec("pandas") is None:
        refuse("pandas is not installed: pip install '.[bench]'")
    command = [sys.executable, "-m", "benchmarks.cpu", *options.arguments]
    # Benchmarks are found by name in any folder, but never in a folder of the user that has the same name.
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


def find_checkout() -> Path | None:
    """Find the checkout with the benchmarks, if any: the current folder, or the one that contains the package."""
    folders = (Path.cwd(), Path(next(iter(gpu_encode.__path__))).resolve().parent)
    return next((folder for folder in folders if (folder / PROGRAM).is_file()), None)
