"""Run the steps, each in a process of its own: see `benchmarks.gpu`."""

import argparse
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import benchmarks.gpu
from benchmarks.gpu.machine import device_name
from benchmarks.gpu.report import Run, folder_for, open_report
from benchmarks.harness.arguments import names_of, whole_number, whole_numbers
from benchmarks.harness.machine import ROOT, commit
from benchmarks.harness.steps import Report

# The function of each step, in the order in which steps run: cheap steps come first.
STEPS = {
    "machine": "machine.run",
    "probe": "probe.run",
    "suites": "suites.run",
    "bits": "bits.run",
    "encoders": "encoders.run",
    "races": "races.run",
    "examples": "examples.run",
    "beyond": "beyond.run",
    "sanitizer": "suites.sanitize",
    "kernels": "kernels.run",
    "new bits": "new_kernels.compare",
    "new kernels": "new_kernels.run",
    "predicted": "predicted.run",
    "profile": "predicted.profile",
    "rapids": "predicted.rapids",
}
# Steps for the first minutes on a GPU: kernels that no GPU has run yet, and predictions.
QUEUE = ("machine", "new bits", "new kernels", "predicted", "profile", "rapids")
ALL = [name for name in STEPS if name == "machine" or name not in QUEUE]
QUEUE_SECONDS, QUEUE_REPEATS = 480.0, 3
FOREVER, REPEATS = 10**6, 5
# Seconds in which a step must notice that its time is over.
GRACE = 30.0
DRAWN = {"uniform": "uniform", "zipf": "Zipf 1.5"}
read_steps = names_of(STEPS, "step")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=benchmarks.gpu.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--tiny", action="store_true", help="so few rows that the simulator can do it")
    add(
        "--queue",
        action="store_true",
        help=f"{', '.join(QUEUE)}, in {QUEUE_SECONDS:.0f} seconds unless others are given",
    )
    add("--only", type=read_steps, help=f"of {','.join(STEPS)}")
    add("--skip", type=read_steps, default=[], help="leave these out")
    add("--out", type=Path, help="folder of the report; that of an earlier run is gone on with")
    add("--time-limit", type=float, help="seconds; what is found by then is kept")
    add("--rows", type=whole_numbers, help="of the step encoders; 1e8 unless given, or as many as fit")
    add("--categories", type=whole_numbers, help="of the step encoders")
    add("--drawn", type=names_of(DRAWN, "distribution"), default=["uniform"], help=f"of {','.join(DRAWN)}")
    add("--cases", type=lambda text: text.split(","), help="of the step encoders; benchmarks/gpu/encoders.py has all")
    add("--repeats", type=whole_number, help="timed calls of each case")
    add("--profile", action="store_true", help="list the kernels of each case by their time, which needs torch")
    add("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    usual = (list(QUEUE), QUEUE_SECONDS, QUEUE_REPEATS) if given.queue else (ALL, FOREVER, REPEATS)
    for name, value in zip(("only", "time_limit", "repeats"), usual, strict=True):
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def run_step(name: str, report: Report, options: argparse.Namespace) -> None:
    """Run one step in this process."""

    def work(step: Run) -> None:
        module, function = STEPS[name].split(".")
        getattr(import_module(f"benchmarks.gpu.{module}"), function)(step)

    Run(name, report, options, time.monotonic() + options.time_limit).run(work)


def start(name: str, arguments: list[str], folder: Path, limit: float) -> str:
    """Run one step in a process of its own; say how it ended, if it failed."""
    command = [sys.executable, "-u", "-m", "benchmarks.gpu", *arguments]
    command += ["--step", name, "--out", str(folder), "--time-limit", str(limit)]
    try:
        status = subprocess.run(command, cwd=ROOT, check=False, timeout=limit + GRACE).returncode
    except subprocess.TimeoutExpired:
        return "stopped: it did not end in time"
    return "" if status == 0 else f"its process ended with status {status}"


def run_all(options: argparse.Namespace, arguments: list[str], folder: Path, device: str) -> int:
    """Run the requested steps, one after the other."""
    deadline, source = time.monotonic() + options.time_limit, commit()
    for name in [name for name in STEPS if name in options.only and name not in options.skip]:
        report, left = open_report(folder, device), deadline - time.monotonic()
        report.begin(name, source)
        if left <= 0:
            report.end(name, "not begun: time was up")
            continue
        print(f"{name} ({left:.0f} s left)" if options.time_limit < FOREVER else name, flush=True)
        if broken := start(name, arguments, folder, left):
            report = open_report(folder, device)
            report.steps[name]["failures"].append(broken)
            report.end(name, broken)
    return open_report(folder, device).finish()


def main(arguments: list[str] | None = None) -> int:
    """Run everything; return 1 if something is wrong, 2 if there is no GPU."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    device = device_name()
    if device is None:
        print("No NVIDIA GPU and driver found; benchmarks/README.md says how --tiny runs without.", file=sys.stderr)
        return 2
    folder = (options.out or folder_for(device, datetime.now(UTC).date().isoformat())).resolve()
    if options.step is None:
        return run_all(options, arguments, folder, device)
    run_step(options.step, open_report(folder, device), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
