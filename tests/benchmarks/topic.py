"""A topic of the harness in which each contender fails in another way."""

import os
import signal
import time
from functools import partial

import numpy as np

from benchmarks.harness.grid import Contender, Grid, Prepared, Seconds, Topic
from benchmarks.harness.judge import Answer, Unjudged

SCRATCH = 48 << 20


def counts(rows):
    return np.bincount(rows.codes)[rows.codes].astype(np.float64)


def prepare(rows, call):
    return Prepared(partial(call, rows), Answer.of(counts(rows)))


def lie(rows):
    return counts(rows) + 0.001


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(_):
    time.sleep(60)


def starve(_):
    raise MemoryError("nothing left")


def take_memory(rows):
    # In pieces that lie in the heap, below one that stays there: only the heap's owner can give them back.
    pieces = [bytearray(1 << 14) for _ in range(SCRATCH >> 14)]
    KEPT.append(bytearray(1 << 14))
    del pieces
    return counts(rows)


def tell_process(_):
    return Seconds(os.getpid() * 1e-9)


KEPT = []
WRONG = {"liar": lie, "killed": die, "slow": sleep, "starved": starve, "hungry": take_memory}
CONTENDERS = (
    Contender("honest", "ours", partial(prepare, call=counts)),
    *(Contender(name, "library", partial(prepare, call=call), compiles=True) for name, call in WRONG.items()),
    Contender("absent", "library", partial(prepare, call=counts), needs=("no_such_module",)),
)
AXES = {"rows": (500, 700), "categories": (20,), "keys": ("int",)}
PROCESS = Contender("process", "ours", lambda _: Prepared(partial(tell_process, None), Unjudged()))
TOPIC = Topic(
    "tests.benchmarks.topic",
    "A trial",
    (Grid("cells", AXES, CONTENDERS), Grid("first", AXES, (PROCESS,), fresh=True)),
)
