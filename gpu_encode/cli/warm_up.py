"""``gpu-encode warm-up``: compile everything now, so that no later process has to."""

import argparse
import os
import sys

from gpu_encode.cli.messages import on_terminal, refuse, say
from gpu_encode.seam import compilation


def run(_: argparse.Namespace) -> int:
    """Run the command; the exit status is 1 if kernels cannot be stored."""
    if os.environ.get("NUMBA_DISABLE_JIT"):
        refuse("nothing is compiled while NUMBA_DISABLE_JIT is set")
    if compilation.is_compiled():
        say(f"nothing to do: all kernels are in {compilation.folder()}")
        return 0
    # No message about compilation is needed while the user waits for it.
    os.environ[compilation.SETTING] = "now"
    from rich.console import Console
    from rich.progress import Progress

    from gpu_encode.warm_up import compile_all

    with Progress(console=Console(file=sys.stderr), disable=not on_terminal(), transient=True) as progress:
        bar = progress.add_task("compiling", total=None)
        kept = compile_all(lambda done, total: progress.update(bar, completed=done, total=total))
    if not kept:
        say(f"error: {compilation.folder()} takes no more files: free some space, or set NUMBA_CACHE_DIR to a folder")
        return 1
    if compilation.is_private():
        say("error: no folder can be written that later processes read: set NUMBA_CACHE_DIR to one")
        return 1
    say(f"all kernels are in {compilation.folder()}")
    return 0
