"""Run the steps, each in a process of its own: see `benchmarks.gpu`."""

import argparse
import subprocess
import sys
import time
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import benchmarks.gpu
from benchmarks.gpu.arguments import names_of
from benchmarks.gpu.machine import ROOT, commit, device_name
from benchmarks.gpu.report import Report, folder_for
from benchmarks.gpu.run import OutOfTimeError, Run

# In this order, cheap ones first: the module of each step and its function.
STEPS = {
    "machine": ("machine", "run"),
    "suites": ("suites", "run"),
    "bits": ("bits", "run"),
    "encoders": ("encoders", "run"),
    "races": ("races", "run"),
    "examples": ("examples", "run"),
    "beyond": ("beyond", "run"),
    "memory": ("memory", "run"),
    "sanitizer": ("suites", "sanitize"),
    "kernels": ("kernels", "run"),
    "whole": ("whole", "run"),
}
FOREVER = 10**6
# Seconds that a step has to notice that its time is up.
GRACE = 30.0
listed = names_of(STEPS, "step")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=benchmarks.gpu.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tiny", action="store_true", help="so few rows that the simulator can do it")
    parser.add_argument("--only", type=listed, default=list(STEPS), help=f"of {','.join(STEPS)}")
    parser.add_argument("--skip", type=listed, default=[], help="leave these out")
    parser.add_argument("--out", type=Path, help="folder of the report; that of an earlier run is gone on with")
    parser.add_argument("--time-limit", type=float, default=FOREVER, help="seconds; what is found by then is kept")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def run_step(name: str, report: Report, tiny: bool, limit: float) -> None:
    """Run one step here; what goes wrong is part of the report."""
    step = Run(name, report, tiny, time.monotonic() + limit)
    begun, status = time.monotonic(), "done"
    try:
        module, function = STEPS[name]
        getattr(import_module(f"benchmarks.gpu.{module}"), function)(step)
    except OutOfTimeError:
        status = "cut short"
    except Exception:  # whatever is broken is what was asked about; later steps may still run
        status = "broken"
        step.fail(traceback.format_exc(limit=-6))
    report.end(name, status, time.monotonic() - begun)


def start(name: str, options: argparse.Namespace, folder: Path, limit: float) -> str:
    """Run one step in a process of its own; gives what became of that."""
    command = [sys.executable, "-u", "-m", "benchmarks.gpu", "--step", name, "--out", str(folder)]
    command += ["--time-limit", str(limit), *(["--tiny"] if options.tiny else [])]
    try:
        status = subprocess.run(command, cwd=ROOT, check=False, timeout=limit + GRACE).returncode
    except subprocess.TimeoutExpired:
        return "stopped: it did not end in time"
    return "" if status == 0 else f"its process ended with status {status}"


def run_all(options: argparse.Namespace, folder: Path, device: str) -> int:
    """Run the steps that were asked for, one after the other."""
    deadline, source = time.monotonic() + options.time_limit, commit()
    for name in [name for name in STEPS if name in options.only and name not in options.skip]:
        report, left = Report.open(folder, device), deadline - time.monotonic()
        report.begin(name, source)
        if left <= 0:
            report.end(name, "not begun: time was up", None)
            continue
        print(f"{name} ({left:.0f} s left)" if options.time_limit < FOREVER else name, flush=True)
        broken = start(name, options, folder, left)
        if broken:
            report = Report.open(folder, device)
            report.say(name, "failures", broken)
            report.end(name, broken, None)
    report = Report.open(folder, device)
    failed = report.failed()
    print(f"{folder / 'report.md'}: " + (f"wrong: {', '.join(failed)}" if failed else "nothing is wrong"))
    return int(bool(failed))


def main(arguments: list[str] | None = None) -> int:
    """Run everything; 1 if something is wrong, 2 if there is no GPU."""
    options = parsed(arguments)
    device = device_name()
    if device is None:
        print("No NVIDIA GPU and driver found; NUMBA_ENABLE_CUDASIM=1 and --tiny run this without.", file=sys.stderr)
        return 2
    folder = options.out or folder_for(ROOT, device, datetime.now(UTC).date().isoformat())
    folder = folder.resolve()
    if options.step is None:
        return run_all(options, folder, device)
    run_step(options.step, Report.open(folder, device), options.tiny, options.time_limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
