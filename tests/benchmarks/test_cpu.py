"""The contenders of `python -m benchmarks.cpu`, every arrangement of its bare loops, and its marks."""

from itertools import product

import pytest

from benchmarks.cpu.__main__ import TABLE
from benchmarks.cpu.contenders import CONTENDERS, limit
from benchmarks.cpu.goals import mark
from benchmarks.cpu.grid import KEYS, WORKS, open_cell
from benchmarks.cpu.scaling import slope
from benchmarks.harness.rows import draw
from gpu_encode.seam import devices

pytestmark = pytest.mark.skipif(devices.simulated(), reason="the benchmarks of the CPU do not ask a simulator")


@pytest.mark.parametrize(("work", "keys"), list(product(WORKS, KEYS)))
def test_every_line_has_ours_and_a_limit(work, keys):
    cell = {"rows": 3_000, "categories": 40, "work": work, "keys": keys}
    names = TABLE.names_for(cell, [each.name for each in CONTENDERS])
    assert {"ours", "limit", "hand-written"} <= {TABLE.contender(name).family for name in names}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(
    ("work", "rows", "categories"),
    # Tables of many texts grow where those of two threads are joined.
    [*((work, 3_000, 40) for work in WORKS), ("mean", 120_000, 100_000)],
)
def test_every_arrangement_of_the_limit_is_right(work, keys, rows, categories, tmp_path):
    cell = {"rows": rows, "categories": categories, "keys": keys, "work": work}
    drawn = open_cell(draw(tmp_path, cell), cell)
    expected = limit.prepare(drawn).expected
    for way in limit.ways(drawn):
        assert expected.verdict(limit.Loops(drawn, way).call())[0] == "", way


@pytest.mark.parametrize(
    ("work", "peer", "seconds", "behind"),
    # Ours takes 10 ms and the limit 4: a goal of 8 ms is half of its speed, one of 5.7 ms is 0.7 of it.
    [
        ("mean", "engine", 0.0160, " (!)"),
        ("mean", "engine", 0.0114, " (limit)"),
        ("mean-real", "engine", 0.0159, " (limit)"),
        ("mean", "engine", 0.0200, ""),
        ("mean", "limit", 0.004, " (!)"),
        ("mean-real", "limit", 0.006, ""),
    ],
)
def test_missed_goals_are_marked(work, peer, seconds, behind):
    times = {"limit": 0.004, peer: seconds}
    records = {family: {"family": family, "seconds": each} for family, each in times.items()}
    cell = {"work": work, "rows": 1_000_000, "contenders": records}
    assert mark(cell, peer, seconds / 0.010) == behind
    assert mark(cell | {"rows": 1_000}, peer, seconds / 0.010) == ""


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5])
def test_the_slope_of_a_power_law_is_its_exponent(power):
    assert slope([(x, 7.0 * x**power) for x in (10, 100, 1_000, 50_000)]) == pytest.approx(power, abs=1e-12)
