"""Calls that run while the methods are exchanged: each ends as it began, whatever threads and signals do."""

import subprocess
import sys
from contextvars import copy_context
from threading import Thread

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from gpu_encode.serve import accel
from tests.cases import EVERY_COMBINATION
from tests.serve.accel.test_installation import ROOT, names_of_methods

pytestmark = pytest.mark.host
RNG = np.random.default_rng(0)
X, OTHER = (RNG.choice([f"c{i}" for i in range(50)], (600, 2)).astype(object) for _ in range(2))
Y = RNG.integers(0, 2, 600)
KINDS = {"binary": Y, "continuous": Y + RNG.random(600), "multiclass": RNG.choice([*"xyz"], 600)}


class During(KFold):
    """Folds; something happens before each of them is used."""

    def __init__(self, happen):
        super().__init__(4)
        self.happen = happen

    def split(self, *given, **named):
        for number, split in enumerate(super().split(*given, **named)):
            self.happen(number)
            yield split


def in_thread(work, *given):
    """Run a function in another thread, in a copy of the context of this one."""
    thread = Thread(target=copy_context().run, args=(work, *given))
    thread.start()
    thread.join()


def fit_again(y):
    """Give a function that encodes the same table by another encoder, and compares."""
    expected = TargetEncoder(cv=KFold(4)).fit_transform(X, y)
    return lambda _: np.testing.assert_allclose(TargetEncoder(cv=KFold(4)).fit_transform(X, y), expected, rtol=1e-12)


HAPPENINGS = {
    "uninstall": lambda _: lambda number: number == 1 and accel.uninstall(),
    "uninstall in a thread": lambda _: lambda number: number == 1 and in_thread(accel.uninstall),
    "uninstall and install": lambda _: lambda number: (accel.uninstall, accel.install)[number % 2](),
    "another call": fit_again,
    "another call in a thread": lambda y: lambda _: in_thread(fit_again(y), 0),
    "uninstall, another call": lambda y: lambda number: (accel.uninstall(), fit_again(y)(number)),
    "uninstall, another call in a thread": lambda y: lambda number: (accel.uninstall(), in_thread(fit_again(y), 0)),
}


@pytest.mark.parametrize("y", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("happen", HAPPENINGS.values(), ids=HAPPENINGS)
def test_a_call_ends_as_it_began(happen, y):
    before = names_of_methods()
    expected, happens = TargetEncoder(cv=KFold(4)).fit_transform(X, y), happen(y)
    accel.install(fewest_rows=0)
    found = TargetEncoder(cv=During(happens)).fit_transform(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    accel.uninstall()
    assert names_of_methods() == before


def test_no_new_call_is_served_while_an_old_one_runs():
    lines = []

    def happen(_):
        accel.uninstall()
        OneHotEncoder().fit(OTHER)
        lines.extend(accel.report().lines)

    accel.install(fewest_rows=0)
    TargetEncoder(cv=During(happen)).fit_transform(X, Y)
    assert not lines


def test_a_context_that_is_kept_serves_no_later_call():
    kept = []
    accel.install(fewest_rows=0)
    TargetEncoder(cv=During(lambda _: kept.append(copy_context()))).fit_transform(X, Y)
    accel.uninstall()
    encoder = TargetEncoder(cv=KFold(4))
    found = kept[0].run(encoder.fit_transform, X, Y)
    np.testing.assert_array_equal(found, TargetEncoder(cv=KFold(4)).fit_transform(X, Y))


STRESS = """
import sys, threading, time, warnings
import category_encoders, numpy as np, pandas as pd, sklearn.preprocessing as theirs
from gpu_encode import accel
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-5)
seconds, rng = float(sys.argv[1]), np.random.default_rng(0)
X, y = rng.choice([f"c{i}" for i in range(50)], (2000, 2)).astype(object), rng.integers(0, 3, 2000)
frame = pd.DataFrame(X, columns=["a", "b"])
calls = [
    lambda: theirs.TargetEncoder(random_state=0, target_type="continuous").fit_transform(X, y),
    lambda: theirs.TargetEncoder(random_state=0).fit_transform(X, y),
    lambda: theirs.OneHotEncoder().fit_transform(X).toarray(),
    lambda: theirs.OrdinalEncoder().fit(X).transform(X),
    lambda: category_encoders.LeaveOneOutEncoder().fit_transform(frame, y).to_numpy(),
    lambda: category_encoders.OrdinalEncoder().fit_transform(frame).to_numpy(),
]
expected, wrong, end = [call() for call in calls], [], time.monotonic() + seconds
def work(number):
    while time.monotonic() < end:
        try:
            np.testing.assert_allclose(calls[number % len(calls)](), expected[number % len(calls)], rtol=1e-9)
        except BaseException as error:
            wrong.append(repr(error))
        number += 1
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
while time.monotonic() < end:
    accel.install(fewest_rows=0)
    time.sleep(rng.random() / 20)
    accel.uninstall()
    time.sleep(rng.random() / 100)
[thread.join() for thread in threads]
print(len(wrong), wrong[:1])
"""


@pytest.mark.slow
def test_threads_that_encode_while_another_one_installs():
    pytest.importorskip("category_encoders")
    seconds = "60" if EVERY_COMBINATION else "3"
    done = subprocess.run([sys.executable, "-c", STRESS, seconds], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n", done.stdout + done.stderr
