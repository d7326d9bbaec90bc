"""``gpu-encode benchmark``: the CPU benchmarks of a checkout, run in a process of their own."""

import argparse
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gpu_encode
from gpu_encode.cli.messages import refuse

PROGRAM = Path("benchmarks", "cpu", "__main__.py")


def run(options: argparse.Namespace) -> int:
    """Run the command, with its arguments passed on."""
    command = [sys.executable, "-m", "benchmarks.cpu", *options.arguments]
    # The benchmarks are found by name in any folder, and never in one of the user's that has their name.
    paths = [str(checkout()), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


def checkout() -> Path:
    """Folder of the source that holds the benchmarks: this one, or the one that the package lies in."""
    folders = (Path.cwd(), Path(next(iter(gpu_encode.__path__))).resolve().parent)
    folder = next((folder for folder in folders if (folder / PROGRAM).is_file()), None)
    if folder is None:
        refuse(
            "the benchmarks come with the source and not with the package: run this in a checkout of gpu-encode, "
            "after pip install --editable '.[bench]'"
        )
    if find_spec("pandas") is None:
        refuse("pandas is not installed: pip install '.[bench]'")
    return folder
