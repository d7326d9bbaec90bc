"""``python -m gpu_encode.accel script.py arguments``: run a program, unchanged, with this library."""

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_encode.seam.devices import DEVICES
from gpu_encode.serve.accel.installation import install, write_report
from gpu_encode.serve.accel.settings import FEWEST_ROWS


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Split the command line into our options, and the program with its arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m gpu_encode.accel",
        usage="%(prog)s [options] (script.py | -m module) [arguments]",
        description="Run a program whose calls of scikit-learn's encoders gpu_encode serves.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--report", action="store_true", help="say at the end which calls were served, and why others were not"
    )
    parser.add_argument("--verbose", action="store_true", help="log each call, and report at the end")
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where target encoders compute")
    parser.add_argument(
        "--fewest-rows", type=int, default=FEWEST_ROWS, metavar="N", help="leave smaller tables to scikit-learn"
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module as a program")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the program, and its arguments")
    options = parser.parse_args(argv)
    program = options.module or options.script
    if not program:
        parser.error("name a script, or a module after -m")
    return options, program


def main(argv: Sequence[str]) -> None:
    """Run the program as Python would."""
    options, program = parse(argv)
    install(device=options.device, fewest_rows=options.fewest_rows, verbose=options.verbose)
    sys.argv[:] = program
    try:
        if options.module:
            # Python puts the working directory there, since modules are searched for in it.
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(program[0]).resolve().parent)
            runpy.run_path(program[0], run_name="__main__")
    finally:
        if options.report or options.verbose:
            write_report()


if __name__ == "__main__":
    main(sys.argv[1:])
