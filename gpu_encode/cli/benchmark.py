"""``gpu-encode benchmark``: the CPU benchmarks of a checkout, run in a process of their own."""

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
    """Run the command, with its arguments passed on; for help, what it is comes before what its options are."""
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
    # The benchmarks are found by name in any folder, and never in one of the user's that has their name.
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


def find_checkout() -> Path | None:
    """Folder of the source that holds the benchmarks, if any: this one, or the one that the package lies in."""
    folders = (Path.cwd(), Path(next(iter(gpu_encode.__path__))).resolve().parent)
    return next((folder for folder in folders if (folder / PROGRAM).is_file()), None)
