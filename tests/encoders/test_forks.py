"""Forked processes: each child encodes and fits, whatever other threads did in its parent at that time."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="only where processes fork"),
]
# A process of its own, in which no thread but its own is alive at a fork.
FORKS = """
import json, os, signal, sys, threading, time, warnings
import numpy as np
import pandas as pd
import gpu_encode

warnings.simplefilter("ignore")
n_rows, n_forks, n_threads, at_once = json.loads(sys.argv[1])
random = np.random.default_rng(0)
X = pd.DataFrame({"word": random.integers(0, 300, n_rows).astype(str), "number": random.integers(0, 50, n_rows)})
y = random.integers(0, 2, n_rows)
new = X[:100]

def learn():
    return gpu_encode.TargetEncoder().fit_transform(X, y).to_numpy().tobytes()

def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(240)  # kernels may have to be compiled
        same = encoder.transform(new).to_numpy().tobytes() == encoded and learn() == learned
        os._exit(0 if same else 1)
    return child

def encode_until_told():
    while not told.is_set():
        learn()
        encoder.transform(new)

encoder = gpu_encode.TargetEncoder().fit(X, y)
encoded, learned = encoder.transform(new).to_numpy().tobytes(), learn()
told = threading.Event()
others = [threading.Thread(target=encode_until_told) for _ in range(n_threads)]
for other in others:
    other.start()
states, children = [], []
for _ in range(n_forks):
    children.append(fork())
    if len(children) == at_once:
        states += [os.waitpid(child, 0)[1] for child in children]
        children.clear()
    time.sleep(random.random() / 250)
told.set()
print(json.dumps(states))
"""
# The seconds that loading takes are a thread's when the process forks.
WHILE_LOADING = """
import os, signal, threading, time
import gpu_encode

def load():
    gpu_encode.TargetEncoder().fit([["a"], ["b"]] * 20_000, [0, 1] * 20_000)

other = threading.Thread(target=load)
other.start()
states = []
while other.is_alive() and len(states) < 20:
    child = os.fork()
    if child == 0:
        signal.alarm(240)  # kernels may have to be compiled
        load()
        os._exit(0)
    states.append(os.waitpid(child, 0)[1])
print(states)
"""
# Every module that calls load while a process may be forked; what compiles holds numba's lock, for which forks wait.
WHAT_IS_LOADED = """
import json, os, sys
os.environ["GPU_ENCODE_COMPILE"] = "never"
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import gpu_encode
from gpu_encode.seam.loading import LOADING

def note(event, given):
    if event == "import" and not LOADING._is_owned():
        loaded.append(given[0])

rows = {"word": ["a", "b", None] * 40_000, "number": [1, 2, 3] * 40_000}
y = [0, 1, 1] * 40_000
lists, array = [["a", 1], ["b", 2]] * 60_000, np.array([[1, 2], [3, 4]] * 60_000)
tables = [lists, array, pa.table(rows), pl.DataFrame(rows), pd.DataFrame(rows)]
loaded = []
sys.addaudithook(note)
for X in tables:
    encoder = gpu_encode.TargetEncoder()
    encoder.fit_transform(X, y)
    encoder.transform(X)
    gpu_encode.CountEncoder().fit(X).transform(X[:5])
print(json.dumps(loaded))
"""
# A thread loads numba while the process is to fork, and then compiles: the child must not find numba's lock taken.
WHILE_NUMBA_LOADS = """
import os, signal, threading, time
from gpu_encode.seam.loading import LOADING

def load_and_compile():
    with LOADING:
        begun.set()
        time.sleep(0.2)  # the process waits to be forked
        from numba.core.compiler_lock import global_compiler_lock
        global_compiler_lock.acquire()
    time.sleep(0.5)
    global_compiler_lock.release()

begun = threading.Event()
other = threading.Thread(target=load_and_compile)
other.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    from numba.core.compiler_lock import global_compiler_lock
    with global_compiler_lock:
        os._exit(0)
print([os.waitpid(child, 0)[1]])
"""
# A module makes a logger while it is loaded, and a fork waits for the one and takes the lock of the other.
WHILE_A_LOGGER_IS_MADE = """
import os, threading, time
from gpu_encode.seam.loading import LOADING
import logging

def load():
    with LOADING:
        begun.set()
        time.sleep(0.2)  # the process waits to be forked
        logging.getLogger("a module of its own")

begun = threading.Event()
other = threading.Thread(target=load, daemon=True)
other.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(0)
print([os.waitpid(child, 0)[1]])
"""


def run(script: str, *given: object) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, json.dumps(given)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("n_rows", [300, 70_000], ids=["numpy", "compiled"])
def test_workers_forked_from_a_process_that_has_fitted(n_rows: int) -> None:
    assert run(FORKS, n_rows, 4, 0, 4) == [0] * 4


@pytest.mark.parametrize(("n_rows", "n_forks"), [(300, 120), (70_000, 30)], ids=["numpy", "compiled"])
def test_forks_while_other_threads_encode(n_rows: int, n_forks: int) -> None:
    assert run(FORKS, n_rows, n_forks, 2, 1) == [0] * n_forks


def test_forks_while_another_thread_loads() -> None:
    states = run(WHILE_LOADING)
    assert states == [0] * len(states)


@pytest.mark.parametrize("script", [WHILE_NUMBA_LOADS, WHILE_A_LOGGER_IS_MADE], ids=["numba", "logger"])
def test_a_fork_waits_for_modules_before_it_takes_their_locks(script: str) -> None:
    assert run(script) == [0]


def test_no_module_is_loaded_while_a_process_may_be_forked() -> None:
    assert run(WHAT_IS_LOADED) == []
