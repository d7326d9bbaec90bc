"""Threads: their number, the rows of each thread, and errors in threads."""

import os
import signal
import warnings
from itertools import pairwise

import pytest

from cpu_fallback.compiled import threads


@pytest.fixture(autouse=True)
def default_again():
    yield
    threads.set_threads(None)
    threads.default_threads.cache_clear()


def test_set_threads_holds_until_taken_back():
    default = threads.threads()
    threads.set_threads(7)
    assert threads.threads() == 7
    threads.set_threads(None)
    assert threads.threads() == default


def test_the_environment_gives_the_default(monkeypatch):
    monkeypatch.setenv("GPU_ENCODE_THREADS", "5")
    threads.default_threads.cache_clear()
    assert threads.threads() == 5


@pytest.mark.parametrize("text", ["0", "many", "-2", "1.5"])
def test_a_senseless_environment_is_an_error(monkeypatch, text):
    monkeypatch.setenv("GPU_ENCODE_THREADS", text)
    threads.default_threads.cache_clear()
    with pytest.raises(ValueError, match=r"GPU_ENCODE_THREADS must be a number of threads, 1 or more. Got '"):
        threads.threads()


def test_a_senseless_number_is_an_error():
    with pytest.raises(ValueError, match=r"must be 1 or more\. Got 0"):
        threads.set_threads(0)


def test_few_rows_stay_on_one_thread():
    threads.set_threads(4)
    assert threads.shares(0) == [(0, 0)]
    assert threads.shares(threads.SMALLEST_SHARE) == [(0, threads.SMALLEST_SHARE)]
    assert len(threads.shares(100 * threads.SMALLEST_SHARE)) == 4


def test_shares_cover_all_rows_once():
    threads.set_threads(3)
    parts = threads.shares(10**6 + 1)
    assert parts[0][0] == 0
    assert parts[-1][1] == 10**6 + 1
    assert all(before[1] == after[0] for before, after in pairwise(parts))


@pytest.mark.parametrize("failing", [0, 2])
def test_a_failure_on_any_thread_is_raised_after_all_have_ended(failing):
    ended = []

    def work(share):
        if share == failing:
            raise RuntimeError("of this share")
        ended.append(share)

    with pytest.raises(RuntimeError, match="of this share"):
        threads.run(work, 3)
    assert sorted(ended) == [share for share in range(3) if share != failing]


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="only where processes fork")
def test_threads_work_in_a_forked_child():
    threads.run(lambda _: None, 3)
    with warnings.catch_warnings():
        # Python warns of forking with threads alive, which is the point here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        # Without a new pool the child would wait for threads that exist only in its parent.
        signal.alarm(20)
        threads.run(lambda _: None, 3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
