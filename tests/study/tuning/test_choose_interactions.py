"""`choose_interactions`, compared with its definition in plain loops, and laws: noise, exclusive or, names, seeds."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder as TheirOneHotEncoder

import gpu_encode as ge
from gpu_encode.encoders.codes import number_folds
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.seam.ops import BACKENDS, device_of, load, use_backend
from gpu_encode.study.tuning import conjunction_batches
from gpu_encode.study.tuning.interactions import by_sums, candidates, checked_plan, choose_scheme, read_columns
from gpu_encode.study.tuning.scorers import SumsScorer
from gpu_encode.study.tuning.steps import SharedSums, Steps, chance_of, gain_of
from gpu_encode.study.tuning.working_response import WorkingResponse
from tests.strategies import examples

N = 1500
RNG = np.random.default_rng(5)
X = RNG.integers(0, 5, (N, 4))
XOR = (X[:, 0] % 2) ^ (X[:, 2] % 2)
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame({name: [f"{name}{value}" for value in X[:, i]] for i, name in enumerate(NAMES)})
CELL = RNG.normal(size=(5, 5))
TARGETS = {
    "binary": (RNG.random(N) < 1 / (1 + np.exp(-CELL[X[:, 0], X[:, 2]]))).astype(np.int64),
    "continuous": 100 + 7 * (CELL[X[:, 0], X[:, 2]] + RNG.normal(size=N)),
}
WEIGHT = RNG.random(N) + 0.25


def scorer_of(X, y, weight=None, folds=4, scoring=None, **parameters):
    """Return the scorer of sums, its first keys, and the rows in its order."""
    encoder = ge.TargetEncoder(**parameters)
    scheme = choose_scheme(encoder, encoder._parameters(), folds, 0)
    entries, context = read_columns(encoder._parameters(), scheme, Inputs(X, y, weight))
    plan = checked_plan(scheme, context)
    scorer = by_sums(encoder, context, plan, None, 0, scoring)
    # The scorer orders rows by fold, except on a GPU.
    folds, is_sorted = number_folds(plan, scorer.keys.rows), device_of(scorer.keys.rows.ops) == "cpu"
    return scorer, entries, np.argsort(folds, kind="stable") if is_sorted else np.arange(len(X))


def mean_of(pairs):
    """Return the weighted mean of (value, weight); 0 for no values."""
    total = math.fsum(weight for _, weight in pairs)
    return math.fsum(value * weight for value, weight in pairs) / total if total else 0.0


def moments_by_loop(kind, y, f, w):
    """Return response, information and score of each row, one by one."""
    if kind == "continuous":
        variance = mean_of([((t - o) ** 2, v) for t, o, v in zip(y, f, w, strict=True)])
        scores = [
            -0.5 * (math.log(2 * math.pi * variance) + (t - o) ** 2 / variance) for t, o in zip(y, f, strict=True)
        ]
        return [(t - o) / math.sqrt(variance) for t, o in zip(y, f, strict=True)], list(w), scores
    chances = [1 / (1 + math.exp(-o)) for o in f]
    z = [(t - p) / (p * (1 - p)) for t, p in zip(y, chances, strict=True)]
    h = [v * p * (1 - p) for p, v in zip(chances, w, strict=True)]
    return z, h, [math.log(p if t else 1 - p) for t, p in zip(y, chances, strict=True)]


def gain_by_loop(key, columns, folds, z, h, w):
    """Return the gain of a conjunction of two columns: sums in dictionaries, fold by fold."""
    rows = range(len(z))
    names = [tuple(columns[i][column] for column in key) for i in rows]
    shared = {name for name in names if len({folds[i] for i in rows if names[i] == name}) > 1}
    gains = []
    for fold in sorted(set(folds)):
        weight, score = dict.fromkeys(shared, 0.0), dict.fromkeys(shared, 0.0)
        for i in rows:
            if folds[i] != fold and names[i] in shared:
                weight[names[i]] += h[i]
                score[names[i]] += h[i] * z[i]
        levels = [{name[part] for name in shared if weight[name]} for part in (0, 1)]
        for part in (0, 1, 0):
            for level in levels[part]:
                members = [name for name in shared if name[part] == level]
                mean = sum(score[name] for name in members) / sum(weight[name] for name in members)
                for name in members:
                    score[name] -= weight[name] * mean
        seen = [name for name in shared if weight[name]]
        freedom = len(seen) - len(levels[0]) - len(levels[1]) + 1
        spread = sum(score[name] ** 2 / weight[name] for name in seen)
        variance = max(spread - freedom, 0) / sum(weight.values())
        step = {name: score[name] * variance / (1 + variance * weight[name]) for name in shared}
        own = [i for i in rows if folds[i] == fold and names[i] in shared]
        rise = sum(step[names[i]] * h[i] * z[i] - step[names[i]] ** 2 * h[i] / 2 for i in own)
        gains.append(rise / sum(w[i] for i in rows if folds[i] == fold))
    return gains


@pytest.mark.parametrize("weight", [None, pytest.param(WEIGHT, marks=pytest.mark.long)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", TARGETS)
def test_gains_are_those_of_plain_loops(kind, weight):
    scorer, entries, order = scorer_of(X, TARGETS[kind], weight)
    y, rows = TARGETS[kind][order], X[order].tolist()
    state = scorer.start(entries)
    folds = scorer.held_out.folds.tolist()
    working = state.responses[0]
    w = [1.0] * N if weight is None else (weight * weight.sum() / (weight * weight).sum())[order].tolist()
    offsets = [offset * 2.0**working.exponent for offset in working.offset.tolist()]
    z, h, scores = moments_by_loop(kind, y.tolist(), offsets, w)
    assert state.score.mean == pytest.approx(mean_of(list(zip(scores, w, strict=True))), rel=1e-9)
    for key in [(0, 1), (0, 2), (1, 3)]:
        gain = scorer.gain(state, key)
        np.testing.assert_allclose(gain.by_fold, gain_by_loop(key, rows, folds, z, h, w), rtol=1e-3, atol=1e-6)
    assert scorer.gain(state, (0, 2)).mean > 0.02


@pytest.mark.host
@pytest.mark.parametrize("smooth", ["auto", 5.0])
@pytest.mark.parametrize("weight", [None, np.where(RNG.random(N) < 0.3, 0.0, WEIGHT)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "sees", [1 - np.eye(4, dtype=np.int64), np.tril(np.ones((4, 4), np.int64), -1)], ids=["k", "time"]
)
@pytest.mark.parametrize("kind", TARGETS)
def test_the_kernel_of_gains_has_the_bits_of_their_definition(kind, sees, weight, smooth):
    sparse = np.column_stack([X[:, 0] * 60 + np.arange(N) % 60, X[:, 1:]])
    with use_backend("compiled"):
        scorer, entries, _ = scorer_of(sparse, TARGETS[kind], weight, smooth=smooth)
        working = scorer.start(entries).responses[0]
        working = replace(working, rows=replace(working.rows, visibility=sees))
        for key in [(1, 2), (0, 2), (1, 2, 3), (0, 1, 2)]:
            (codes, size), members = scorer.keys.codes(key), scorer.keys.members(key)
            by_arrays = replace(working, rows=replace(working.rows, ops=load(BACKENDS["numpy"])))
            expected = SharedSums.of(by_arrays, codes, size, members)
            scorer.keys.forget()
            for shared in (
                SharedSums.of(working, codes, size, members),
                SharedSums.of_pair(working, *scorer.keys.pair(key)),
            ):
                assert shared.n_categories == size
                has_rows = shared.own[:, :, 0].any(axis=0)
                assert shared.own[:, has_rows].tobytes() == expected.own.tobytes()
                for member, other in zip(shared.members, expected.members, strict=True):
                    np.testing.assert_array_equal(member[has_rows], other)
            for of_columns in (shared, replace(shared, members=())):
                of_rows = replace(expected, members=expected.members if of_columns.members else ())
                steps = Steps.of(by_arrays, of_rows, scorer.m)
                compiled = Steps.of(working, of_columns, scorer.m)
                np.testing.assert_array_equal(compiled.steps[:, has_rows], steps.steps)
                assert not compiled.steps[:, ~has_rows].any()
                for gains, surprise in (gain_of(working, of_columns, scorer.m), (compiled.gains, compiled.surprise)):
                    assert gains.tobytes() == steps.gains.tobytes()
                    assert surprise == steps.surprise
                assert chance_of(working, of_columns) == chance_of(by_arrays, of_rows)


@pytest.mark.host
@given(data=st.data())
@examples(30)
def test_many_conjunctions_at_once_have_the_bits_of_each_alone(data):
    """For any columns, folds, targets and weights the result is what NumPy finds key by key."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n_rows, sizes = data.draw(st.integers(20, 400)), data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=4))
    # The codes of a column of 300 values do not fit one byte.
    sizes = [300, *sizes] if data.draw(st.booleans()) else sizes
    columns = np.column_stack([rng.integers(0, size, n_rows) for size in sizes]).astype(float)
    columns[rng.random(columns.shape) < data.draw(st.sampled_from([0.0, 0.1]))] = np.nan
    y = rng.integers(0, data.draw(st.sampled_from([2, 3])), n_rows)
    y = np.where(np.arange(n_rows) < 3, np.arange(n_rows) % (int(y.max()) + 1), y)
    y = y if data.draw(st.booleans()) else y + rng.normal(size=n_rows).round(2)
    weight = data.draw(st.sampled_from([None, rng.random(n_rows) + 0.1, rng.integers(0, 3, n_rows)]))
    given_to = {
        "folds": data.draw(st.integers(2, 5)),
        "handle_missing": data.draw(st.sampled_from(["category", "prior"])),
        "smooth": data.draw(st.sampled_from(["auto", 3.0])),
        "target_type": "continuous" if y.dtype.kind == "f" else "multiclass" if y.max() > 1 else "binary",
    }
    found = []
    for name in ("numpy", "compiled"):
        with use_backend(name):
            scorer, entries, _ = scorer_of(columns, y, weight, **given_to)
            state = scorer.start(entries)
            keys = [key for length in (2, 3) for key in combinations(range(len(sizes)), length)]
            for number in range(len(keys)):
                scorer.foresee(state, keys[number:])
            is_batch = name == "compiled" and (weight is None or weight.min() > 0)
            assert scorer._foreseen[1].keys() == (set(keys) if is_batch else set())
            found.append(
                [(scorer.surprise(state, key), scorer.gain(state, key), scorer.keys.size(key)) for key in keys]
            )
    assert found[0] == found[1]


@pytest.mark.host
def test_keys_of_too_many_cells_are_scored_alone(monkeypatch):
    """Keys of several columns among the others are computed together with them, with equal bits."""
    paths = []
    for most in (1 << 21, 130):
        monkeypatch.setattr(conjunction_batches, "MOST_SUMS", most)
        with use_backend("compiled"):
            scorer, entries, _ = scorer_of(X, XOR)
            scorer.foresee(state := scorer.start(entries), [(0, 1), (0, 1, 2), (1, 2)])
            assert set(scorer._foreseen[1]) == ({(0, 1), (0, 1, 2), (1, 2)} if most > 130 else {(0, 1), (1, 2)})
            paths.append(ge.choose_interactions(ge.TargetEncoder(), X, XOR, order=3, forward="once").report())
        assert scorer.gain(state, (0, 2)).mean > 0.02
    assert paths[0] == paths[1]


@pytest.mark.host
@pytest.mark.parametrize("kind", TARGETS)
def test_once_keeps_those_that_add_most_to_the_columns_alone(kind):
    rng = np.random.default_rng(3)
    many = rng.integers(0, 5, (4000, 6))
    effect = rng.normal(size=(5, 5, 5))[many[:, 0], many[:, 1], many[:, 3]]
    effect += sum(size * rng.normal(size=(5, 5))[many[:, i], many[:, j]] for size, i, j in [(2, 0, 1), (1, 2, 5)])
    y = effect + rng.normal(size=4000)
    y = y if kind == "continuous" else (y > 0).astype(int)
    scorer, entries, _ = scorer_of(many, y, folds=5)
    state = scorer.start(entries)
    keys = [key for length in (2, 3) for key in combinations(range(6), length)]
    least = norm.isf(0.05 / len(keys))
    gains = {key: scorer.gain(state, key) for key in keys if scorer.surprise(state, key) > least}

    def is_enough(gain):
        return gain.mean > max(1e-4, gain.standard_error) and gain.surprise > least

    enough = [key for key, gain in gains.items() if is_enough(gain)]
    kept = [key for key in enough if all(is_enough(gains[key].minus(gains[p])) for p in gains if set(p) < set(key))]
    ranked = sorted(kept, key=lambda key: -gains[key].mean)
    assert len(enough) > len(ranked) > 2
    for limits in ({}, {"top": 3}, {"max_columns": 8}, {"top": 5, "max_columns": 9}):
        n = min([limits.get("top", 99), limits.get("max_columns", 99) - 6, len(ranked)])
        chosen = ge.choose_interactions(ge.TargetEncoder(), many, y, order=3, forward="once", **limits)
        assert chosen.interactions == ranked[:n]
        assert chosen.columns == [*range(6), *ranked[:n]]
        kinds = {None: "start", **dict.fromkeys(ranked[:n], "added")}
        assert [step.action for step in chosen.path] == [kinds.get(step.key, "left out") for step in chosen.path]
        assert [step.gain for step in chosen.path[1:]] == sorted((s.gain for s in chosen.path[1:]), reverse=True)
        for step in chosen.path[1:]:
            assert step.gain == gains[step.key].mean
            assert step.score == chosen.path[0].score + step.gain
        assert math.isnan(chosen.score)
        assert chosen.tried == 35 == chosen.ruled_out_by_chance + len(gains)


@pytest.mark.host
def test_nothing_is_kept_once_of_noise():
    chosen = ge.choose_interactions(ge.TargetEncoder(), X[:, [1, 3]], XOR, forward="once", top=5)
    assert (chosen.interactions, chosen.score) == ([], chosen.path[0].score)
    by_estimator = ge.choose_interactions(
        ge.TargetEncoder(), FRAME[["a", "b", "c"]], XOR, LogisticRegression(), forward="once", folds=3, top=1, tol=0.01
    )
    assert by_estimator.interactions == [("a", "c")]


@pytest.mark.host
@pytest.mark.parametrize("forward", ["first", "best"])
def test_top_limits_what_is_kept(forward):
    y = (X[:, 0] % 2) ^ (X[:, 2] % 2) | ((X[:, 1] % 2) ^ (X[:, 3] % 2))
    every = ge.choose_interactions(ge.TargetEncoder(), X, y, forward=forward)
    one = ge.choose_interactions(ge.TargetEncoder(), X, y, forward=forward, top=1)
    assert sorted(every.interactions) == [(0, 2), (1, 3)]
    assert one.interactions == every.interactions[:1]


@pytest.mark.host
@pytest.mark.parametrize("kind", TARGETS)
def test_offsets_start_with_the_mean_that_a_fold_sees(kind):
    y = TARGETS[kind].astype(np.float64)
    scorer, _, order = scorer_of(X, TARGETS[kind])
    y, folds = y[order], scorer.held_out.folds
    working = WorkingResponse.start(scorer.held_out, *scorer.outcomes[0])
    for fold in range(4):
        seen = y[folds != fold]
        share = (seen.sum() + 0.5) / (len(seen) + 1)
        expected = math.log(share / (1 - share)) if kind == "binary" else seen.mean() * 2.0**-working.exponent
        np.testing.assert_allclose(working.offset[folds == fold], expected, rtol=1e-12)


@pytest.mark.host
@pytest.mark.parametrize("forward", ["first", "best"])
def test_exclusive_or_is_found(forward):
    chosen = ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR, forward=forward)
    assert chosen.columns == [*NAMES, ("a", "c")]
    assert chosen.interactions == [("a", "c")]
    assert chosen.encoder.columns == chosen.columns
    assert [step.action for step in chosen.path if step.key == ("a", "c")] == ["added", "confirmed"]
    encodings = chosen.encoder.fit_transform(FRAME, XOR)["a_x_c"]
    assert encodings[XOR == 1].min() > encodings[XOR == 0].max()


@pytest.mark.host
@pytest.mark.parametrize("kind", ["binary", "continuous", "multiclass"])
def test_nothing_is_found_in_noise(kind):
    found = tried = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = rng.integers(0, 8, (1000, 12))
        y = {"binary": rng.integers(0, 2, 1000), "continuous": rng.normal(size=1000) ** 3}.get(kind)
        y = rng.integers(0, 3, 1000) if y is None else y
        chosen = ge.choose_interactions(ge.TargetEncoder(target_type=kind), noise, y, random_state=seed)
        found, tried = found + len(chosen.interactions), tried + chosen.tried
    assert tried == 4 * 66
    assert found == 0


@pytest.mark.parametrize("kind", [pytest.param("binary", marks=pytest.mark.host), "continuous"])
def test_chance_is_a_chi_square_of_what_columns_leave_over(kind):
    """In all rows at once, as a normal deviate by Wilson and Hilferty, beside a chi-square's own tail."""
    scorer, entries, order = scorer_of(X, TARGETS[kind])
    state = scorer.start(entries)
    working = state.responses[0]
    offsets = [offset * 2.0**working.exponent for offset in working.offset.tolist()]
    z, h, _ = moments_by_loop(kind, TARGETS[kind][order].tolist(), offsets, [1.0] * N)
    for key in [(0, 1), (0, 2), (1, 3)]:
        names = [tuple(row[column] for column in key) for row in X[order].tolist()]
        weight, score = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for name, information, response in zip(names, h, z, strict=True):
            weight[name] += information
            score[name] += information * response
        for part in (0, 1, 0):
            for level in range(5):
                members = [name for name in weight if name[part] == level]
                mean = sum(score[name] for name in members) / sum(weight[name] for name in members)
                for name in members:
                    score[name] -= weight[name] * mean
        spread = sum(score[name] ** 2 / weight[name] for name in weight)
        surprise = scorer.surprise(state, key)
        assert surprise == pytest.approx(((spread / 16) ** (1 / 3) - 1 + 2 / 144) / math.sqrt(2 / 144), abs=1e-3)
        if surprise < 6:
            assert norm.sf(surprise) == pytest.approx(chi2.sf(spread, 16), rel=0.05)
        assert (surprise > 10) == (key == (0, 2))


@pytest.mark.host
def test_chance_rules_out_noise_and_nothing_that_is_chosen_without_it(monkeypatch):
    rng = np.random.default_rng(1)
    many = rng.integers(0, 6, (4000, 7))
    log_odds = sum(rng.normal(size=(6, 6))[many[:, i], many[:, j]] for i, j in [(0, 1), (2, 5), (0, 6)])
    y = (rng.random(4000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    for forward in ("first", "best"):
        with_chance = ge.choose_interactions(ge.TargetEncoder(), many, y, forward=forward)
        assert (with_chance.ruled_out_by_chance, with_chance.scored, with_chance.tried) == (18, 3, 21)
        with monkeypatch.context() as patch:
            patch.setattr(SumsScorer, "surprise", lambda *_: math.inf)
            without = ge.choose_interactions(ge.TargetEncoder(), many, y, forward=forward)
        assert (without.ruled_out_by_chance, without.scored) == (0, 21)
        assert with_chance.columns == without.columns
        assert sorted(with_chance.interactions) == [(0, 1), (0, 6), (2, 5)]
    anything = ge.choose_interactions(ge.TargetEncoder(), many, y, significance=1)
    assert (anything.ruled_out_by_chance, anything.scored) == (0, 21)


@pytest.mark.host
def test_classes_and_several_targets():
    kinds = np.where(XOR == 1, "x", np.where(X[:, 1] > 2, "y", "z"))
    chosen = ge.choose_interactions(ge.TargetEncoder(), FRAME, kinds)
    assert ("a", "c") in chosen.interactions
    both = np.column_stack([TARGETS["continuous"], RNG.normal(size=N)])
    assert ge.choose_interactions(ge.TargetEncoder(target_type="continuous"), FRAME, both).interactions == [("a", "c")]


@pytest.mark.host
def test_three_columns_together():
    even = np.random.default_rng(2).integers(0, 4, (N, 4))
    y = (even[:, 0] + even[:, 2] + even[:, 3]) % 2
    assert ge.choose_interactions(ge.TargetEncoder(), even, y).interactions == []
    chosen = ge.choose_interactions(ge.TargetEncoder(), even, y, order=3)
    assert chosen.interactions == [(0, 2, 3)]
    assert chosen.tried == 6 + 4


@pytest.mark.host
def test_every_kind_of_table_gives_the_same_choice():
    tables = [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME), [FRAME[:700], FRAME[700:]]]
    targets = [XOR, XOR, XOR, [XOR[:700], XOR[700:]]]
    for table, y in zip(tables, targets, strict=True):
        chosen = ge.choose_interactions(ge.TargetEncoder(), table, y)
        assert chosen.path == ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR).path or table is not FRAME
        assert chosen.columns == [*NAMES, ("a", "c")]
        assert chosen.score == ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR).score
    assert ge.choose_interactions(ge.TargetEncoder(), X, XOR).columns == [0, 1, 2, 3, (0, 2)]


@pytest.mark.host
@pytest.mark.parametrize("kind", TARGETS)
def test_backends_give_the_same_bits(kind):
    paths = []
    for name in ("numpy", "compiled"):
        with use_backend(name):
            paths.append(ge.choose_interactions(ge.TargetEncoder(), FRAME, TARGETS[kind], sample=500).report())
            once = ge.choose_interactions(ge.TargetEncoder(), FRAME, TARGETS[kind], order=3, forward="once")
            paths[-1] += once.report()
    assert paths[0] == paths[1]


@pytest.mark.host
def test_a_number_as_seed_repeats_the_choice_and_another_changes_the_order():
    order = [
        [step.key for step in ge.choose_interactions(ge.TargetEncoder(), X, XOR, significance=1, random_state=i).path]
        for i in (1, 1, 2)
    ]
    assert order[0] == order[1] != order[2]
    generator = np.random.default_rng(3)
    assert ge.choose_interactions(ge.TargetEncoder(), X, XOR, random_state=generator).interactions == [(0, 2)]


@pytest.mark.host
def test_keys_that_tell_nothing_are_ruled_out_by_counts():
    doubled = np.column_stack([X[:, 0], X[:, 0] * 7, np.arange(N)])
    chosen = ge.choose_interactions(ge.TargetEncoder(), doubled, TARGETS["binary"])
    assert (chosen.tried, chosen.ruled_out_by_counts, chosen.scored) == (3, 3, 0)


@pytest.mark.host
def test_a_sample_rules_out_and_chooses_as_all_rows_do():
    rng = np.random.default_rng(0)
    many = rng.integers(0, 6, (40_000, 6))
    y = (rng.random(40_000) < 0.3 + 0.4 * ((many[:, 1] + many[:, 4]) % 2)).astype(int)
    for forward in ("first", "best"):
        whole = ge.choose_interactions(ge.TargetEncoder(), many, y, forward=forward, tol=1e-3, sample=None)
        by_sample = ge.choose_interactions(ge.TargetEncoder(), many, y, forward=forward, tol=1e-3, sample=10_000)
        assert whole.columns == by_sample.columns == [*range(6), (1, 4)]
        assert by_sample.sampled == by_sample.tried == 15
        assert abs(by_sample.sampled_rows - 10_000) < 100
        ruled_out = by_sample.ruled_out_by_sample + by_sample.ruled_out_by_counts + by_sample.ruled_out_by_chance
        assert ruled_out + by_sample.scored == by_sample.tried
        assert (whole.sampled, whole.sampled_rows, whole.ruled_out_by_sample) == (0, 0, 0)
    assert by_sample.ruled_out_by_sample > 5


@pytest.mark.host
def test_keys_of_the_encoder_are_the_start_and_limits_are_kept():
    own = ge.TargetEncoder(columns=[("c", "a"), "b", "d"])
    chosen = ge.choose_interactions(own, FRAME, XOR)
    assert chosen.columns == [("c", "a"), "b", "d"]
    assert chosen.tried == 5
    assert own.columns == [("c", "a"), "b", "d"]
    full = ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR, max_columns=4)
    assert (full.columns, full.tried) == (NAMES, 0)
    given = ge.TargetEncoder(columns=["a", "c"], categories=["auto", [f"c{i}" for i in range(5)]])
    assert ge.choose_interactions(given, FRAME, XOR).encoder.categories == [*given.categories, "auto"]


@pytest.mark.host
def test_weights_count_by_their_proportions():
    paths = [
        ge.choose_interactions(ge.TargetEncoder(), X, TARGETS["binary"], sample_weight=weight).report()
        for weight in (WEIGHT, WEIGHT * 1e30, None, np.full(N, 3.0))
    ]
    assert paths[0] == paths[1] != paths[2]
    assert paths[2] == paths[3]
    ignored = np.where(np.arange(N) < 1000, 1.0, 0.0)
    y = np.where(ignored > 0, XOR, RNG.integers(0, 2, N))
    assert ge.choose_interactions(ge.TargetEncoder(), X, y, sample_weight=ignored).interactions == [(0, 2)]


@pytest.mark.host
def test_missing_values():
    table = FRAME.astype(object).mask(RNG.random(FRAME.shape) < 0.1)
    for policy in ("category", "prior", "nan"):
        encoder = ge.TargetEncoder(handle_missing=policy)
        assert ge.choose_interactions(encoder, table, XOR).interactions == [("a", "c")]


@pytest.mark.host
def test_folds_of_groups_are_kept_together():
    groups = RNG.integers(0, 60, N)
    # A column that identifies groups is useless for new groups.
    effect = RNG.normal(size=60)[groups]
    labelled = np.column_stack([groups // 8, groups % 8, X[:, 1]])
    y = effect + 0.3 * RNG.normal(size=N)
    encoder = ge.TargetEncoder(target_type="continuous")
    assert (0, 1) in ge.choose_interactions(encoder, labelled, y).interactions
    for folds in ({"folds": ge.GroupKFold(5)}, {}):
        cv = encoder if folds else clone(encoder).set_params(cv=ge.GroupKFold(5))
        assert ge.choose_interactions(cv, labelled, y, groups=groups, **folds).interactions == []


@pytest.mark.host
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_areas_are_those_of_the_offsets_in_every_fold(weight):
    """Compare the pairs of a positive and a negative row of one fold, one by one."""
    scorer, entries, order = scorer_of(X, TARGETS["binary"], weight, scoring="roc_auc")
    state = scorer.start(entries)
    larger, folds, y = scorer.add(state, (0, 2)), scorer.held_out.folds, TARGETS["binary"][order]
    w = np.ones(N) if weight is None else weight[order]
    for found in (state, larger):
        offset = found.responses[0].offset
        for fold, area in enumerate(found.score.by_fold):
            above, below = (np.flatnonzero((folds == fold) & (y == label)) for label in (1, 0))
            pairs = [
                (float(offset[i] > offset[j]) + float(offset[i] == offset[j]) / 2, w[i] * w[j])
                for i in above
                for j in below
            ]
            assert area == pytest.approx(mean_of(pairs), rel=1e-12)
    gain = scorer.gain(state, (0, 2))
    assert gain.mean > 0.05
    assert gain.mean == pytest.approx(larger.minus(state).mean, abs=0.01)


@pytest.mark.host
def test_areas_choose():
    for forward in ("first", "best"):
        for y in (XOR, np.where(XOR == 1, "x", np.where(X[:, 1] > 2, "y", "z"))):
            chosen = ge.choose_interactions(ge.TargetEncoder(), FRAME, y, forward=forward, scoring="roc_auc")
            assert chosen.interactions == [("a", "c")]
            assert chosen.score > 0.8
    with pytest.raises(ValueError, match="ranks rows of classes"):
        ge.choose_interactions(ge.TargetEncoder(), X, TARGETS["continuous"], scoring="roc_auc")


@pytest.mark.host
def test_an_estimator_chooses():
    made = [(ge.TargetEncoder(), LogisticRegression(), XOR), (ge.TargetEncoder(), Ridge(), XOR * 1.5 + X[:, 1] / 9)]
    for encoder, estimator, y in made:
        for forward in ("first", "best"):
            chosen = ge.choose_interactions(encoder, FRAME, y, estimator, forward=forward, folds=4)
            assert ("a", "c") in chosen.interactions
            assert chosen.score > chosen.path[0].score + 0.1
    scored = ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR, LogisticRegression(), scoring="roc_auc")
    assert scored.interactions[0] == ("a", "c")
    assert scored.score > 0.99


@pytest.mark.host
def test_an_estimator_sees_no_target_of_its_validation_rows():
    """Scores come from fits on only the other folds, in plain loops."""
    y, encoder = TARGETS["binary"], ge.TargetEncoder(smooth=5.0)
    chosen = ge.choose_interactions(encoder, X, y, LogisticRegression(), folds=3, max_columns=4)
    scheme = choose_scheme(encoder, encoder._parameters(), 3, 0)
    _, context = read_columns(encoder._parameters(), scheme, Inputs(X, y))
    plan = checked_plan(scheme, context)
    folds = np.asarray(number_folds(plan, scorer_of(X, y)[0].keys.rows))
    scores = []
    for fold in range(3):
        own, others = folds == fold, folds != fold
        fitted = clone(encoder).set_params(cv=folds[others])
        training = fitted.fit_transform(X[others], y[others])
        chances = LogisticRegression().fit(training, y[others]).predict_proba(fitted.transform(X[own]))
        scores.append(np.mean(np.log(chances[np.arange(own.sum()), y[own]])))
    assert chosen.path[0].score == pytest.approx(np.mean(scores), rel=1e-12)


@pytest.mark.host
@pytest.mark.parametrize("sparse_output", [True, False])
def test_a_linear_model_chooses_one_hot_columns(sparse_output):
    """The scores of each step are those of scikit-learn's encoder and folds, in plain loops."""
    encoder, model = ge.OneHotEncoder(sparse_output=sparse_output), LogisticRegression(C=0.1)
    chosen = ge.choose_interactions(encoder, FRAME, XOR, model, folds=3)
    assert chosen.interactions == [("a", "c")]
    assert type(chosen.encoder) is ge.OneHotEncoder
    assert chosen.encoder.columns == [*FRAME, ("a", "c")]
    by_mean = ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR, model, folds=3)
    _, context = read_columns(ge.TargetEncoder()._parameters(), ge.KFold(3), Inputs(X, XOR))
    folds = np.asarray(number_folds(checked_plan(ge.KFold(3), context), scorer_of(X, XOR)[0].keys.rows))
    together = FRAME.astype(str).assign(both=FRAME["a"].astype(str) + "," + FRAME["c"].astype(str))
    for table, score in ((together.drop(columns="both"), chosen.path[0].score), (together, chosen.score)):
        found = []
        for fold in range(3):
            own, others = folds == fold, folds != fold
            theirs = TheirOneHotEncoder(handle_unknown="ignore").fit(table[others])
            fitted = clone(model).fit(theirs.transform(table[others]), XOR[others])
            chances = fitted.predict_proba(theirs.transform(table[own]))
            found.append(np.mean(np.log(chances[np.arange(own.sum()), XOR[own]])))
        assert score == pytest.approx(np.mean(found), abs=1e-4)
    assert chosen.score != by_mean.score


@pytest.mark.host
def test_what_is_told():
    chosen = ge.choose_interactions(ge.TargetEncoder(), FRAME, XOR)
    assert repr(chosen).startswith("ChosenInteractions\n1 of 6 conjunctions chosen: 0 ruled out by counts")
    assert "a x c" in chosen.report()
    table = pd.DataFrame(chosen.as_dicts())
    assert list(table) == ["action", "key", "score", "gain", "standard_error"]
    assert table["action"][0] == "start"
    assert chosen.path[-1].score == chosen.score


REFUSED = [
    ({"order": 1}, "'order' parameter of choose_interactions must be an integer of at least 2"),
    ({"forward": "worst"}, "'forward' parameter of choose_interactions must be one of 'first', 'best', 'once'"),
    ({"top": 0}, "'top' parameter of choose_interactions must be an integer of at least 1"),
    ({"max_tries": 0}, "'max_tries' parameter of choose_interactions must be an integer of at least 1"),
    ({"folds": 1}, "must be an integer of at least 2"),
    ({"folds": ge.LeaveOneOut()}, "must be a scheme whose folds see other folds whole"),
    ({"tol": -1}, "'tol' parameter of choose_interactions must be a finite number of at least 0"),
    ({"significance": 0}, "above 0 and at most 1"),
    ({"sample": 0}, "'sample' parameter"),
    ({"estimator": Ridge(), "folds": 2}, "must leave two other folds"),
    ({"random_state": "a"}, "random_state must be"),
    ({"scoring": "accuracy"}, "is the score of an estimator"),
]


@pytest.mark.host
@pytest.mark.parametrize(("refused", "message"), REFUSED)
def test_what_is_refused(refused, message):
    with pytest.raises(ValueError, match=message):
        ge.choose_interactions(ge.TargetEncoder(), X, XOR, **refused)


@pytest.mark.host
def test_other_encoders_are_refused():
    with pytest.raises(TypeError, match="Got estimator=5 instead"):
        ge.choose_interactions(ge.TargetEncoder(), X, XOR, 5)
    with pytest.raises(TypeError, match="Got CountEncoder instead"):
        ge.choose_interactions(ge.CountEncoder(), X, XOR)
    with pytest.raises(TypeError, match="needs an estimator for the columns of a OneHotEncoder"):
        ge.choose_interactions(ge.OneHotEncoder(), X, XOR)


@pytest.mark.host
@pytest.mark.parametrize("most", [1, 2, 3, 7, 19, 20, 57, 58, 1000])
@pytest.mark.parametrize("entries", [[(0,), (1,)], [(2, 3), (0,), (1, 2, 4)]])
def test_as_many_conjunctions_are_listed_as_may_be_tried(most, entries):
    every, left_out = candidates(6, 4, entries, 0, 10**9)
    assert left_out == 0
    assert {frozenset(key) for key in every} == {
        frozenset(key) for size in (2, 3, 4) for key in combinations(range(6), size)
    } - {frozenset(entry) for entry in entries}
    listed, left_out = candidates(6, 4, entries, 0, most)
    assert len(listed) == len(set(listed)) == min(most, len(every))
    assert len(listed) + left_out == len(every)
    # Those of fewer columns come first; a size that has room as a whole has the order that it has without a limit.
    assert [*map(len, listed)] == [*map(len, every)][:most]
    for size in (2, 3, 4):
        whole = [key for key in every if len(key) == size]
        there = [key for key in listed if len(key) == size]
        assert there == whole or len(there) < len(whole)
    assert candidates(6, 4, entries, 0, most) == (listed, left_out)


@pytest.mark.host
@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("n_left", [0, 1, 2])
def test_conjunctions_that_the_encoder_has_are_not_drawn(monkeypatch, most, n_left):
    pairs = list(combinations(range(10), 2))

    class FewDraws(np.random.RandomState):
        draws = iter(range(1000))

        def choice(self, *given, **options):
            next(self.draws)
            return super().choice(*given, **options)

    monkeypatch.setattr(np.random, "RandomState", FewDraws)
    listed, left_out = candidates(10, 2, pairs[n_left:], 0, most)
    assert {*listed} <= {*pairs[:n_left]}
    assert (len(listed), left_out) == (min(most, n_left), max(n_left - most, 0))


@pytest.mark.host
@pytest.mark.parametrize("forward", ["first", "best", "once"])
def test_what_is_left_out_is_said(forward):
    wide = np.random.default_rng(0).integers(0, 3, (200, 300))
    with pytest.warns(ConvergenceWarning, match=r"left out 335,291,095 conjunctions, since max_tries=30\. Raise"):
        chosen = ge.choose_interactions(
            ge.TargetEncoder(), wide, wide[:, 0] % 2, order=4, forward=forward, max_tries=30
        )
    assert (chosen.tried, chosen.left_out) == (30, math.comb(300, 2) + math.comb(300, 3) + math.comb(300, 4) - 30)
    assert f"; {chosen.left_out} left out" in repr(chosen)


@pytest.mark.host
def test_no_round_begins_that_would_look_at_too_many():
    found = ge.choose_interactions(ge.TargetEncoder(), X, XOR, order=3, forward="best")
    assert found.left_out == 0
    with pytest.warns(ConvergenceWarning, match="begun no further round, since max_tries=10"):
        one = ge.choose_interactions(ge.TargetEncoder(), X, XOR, order=3, forward="best", max_tries=10)
    assert (one.tried, one.left_out, len(one.interactions)) == (10, 0, 1)
