"""Sums that an engine adds up: the lines that it gets, and the encodings from its sums, have the bits of one table."""

import math
import pickle

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import (
    GLMM,
    CountEncoder,
    EmpiricalBayes,
    GroupKFold,
    Holdout,
    JamesStein,
    KFold,
    LeaveOneOut,
    MEstimate,
    Ordered,
    Sigmoid,
    TargetEncoder,
    TimeFolds,
)
from gpu_encode.scale.engines import buckets, calls
from gpu_encode.scale.files import shuffle
from gpu_encode.scale.files.look_up import Joined
from tests.scale.engines.dealt import Dealt, Shuffle, dealt
from tests.scale.engines.rows import SCHEMES, encoder, rows, same

pytestmark = pytest.mark.host
BY_ID = KFold(3, by="id")
NOTHING = {"nan": None}
SERVED = {name: cv for name, cv in SCHEMES.items() if not isinstance(cv, GroupKFold)}


class Shuffled:
    """An encoder; plain loops add its sums and join its encodings to rows."""

    def __init__(self, encoder, table, y="sold", weight=None, training=True):
        shuffle.check_parameters(encoder, training)
        self.table = dealt(table)[0]
        reading = calls.read_training(encoder, self.table, y, weight, None)
        self.shared, measured = calls.survey(encoder, self.table, reading, training)
        lines = measured.map(shuffle.sum_table, self.shared)
        names = lines.column_names
        keys, digits = names[: -self.shared.n_sums], names[-self.shared.n_sums :]
        added = lines.group_by(keys).aggregate([(name, "sum") for name in digits])
        added = added.select([*keys, *(f"{name}_sum" for name in digits)]).rename_columns(names)
        encoded = shuffle.encode_lines(self.shared, added)
        self.encoded, self.joined = encoded, Joined.of(self.shared)
        self.found = {
            (line["entry"], *(line[name] for name in self.joined.keys[line["entry"]].stored)): line["encodings"]
            for line in encoded.to_pylist()
        }
        assert len(self.found) == len(encoded)

    def training(self):
        """Give the encodings of training rows."""
        viewed = self.table.map(shuffle.add_views, (self.shared, "view"))
        aside = self.shared.reading.roles.beside
        return self.look_up(viewed, viewed["view"].to_pylist(), [*self.joined.passed, *aside])

    def transform(self, table):
        """Give the encodings of new rows."""
        passed = [name for name in self.joined.passed if name in table.column_names]
        return self.look_up(table, None, passed)

    def look_up(self, table, views, others):
        columns = {}
        for entry, key in enumerate(self.joined.keys):
            width = len(key.outputs)
            for row, line in enumerate(table.select(key.columns).to_pylist()):
                values = [NOTHING.get(repr(value), value) for value in line.values()]
                place = width * (key.new_rows if views is None else views[row])
                known = self.found.get((entry, *values))
                if known is not None:
                    encodings = known[place : place + width]
                elif key.policy != "category" and None in values:
                    encodings = key.missing[place : place + width]
                else:
                    assert views is None
                    encodings = key.unknown
                for name, encoding in zip(key.outputs, encodings, strict=True):
                    columns.setdefault(name, []).append(encoding)
        made = {name: pa.array(values, pa.from_numpy_dtype(self.joined.dtype)) for name, values in columns.items()}
        return pa.table({**made, **{name: table[name] for name in others}})


@pytest.fixture(autouse=True)
def buckets_of_few_rows(monkeypatch):
    monkeypatch.setattr(buckets, "CATEGORIES", 10)
    monkeypatch.setattr(buckets, "ROWS_OF_PIECE", 30)


class InBuckets:
    """An encoder whose sums an engine adds up in buckets, where rows find their encodings."""

    def __init__(self, encoder, table, y="sold", weight=None, training=True):
        self.rows = Shuffle(table, y, weight)
        self.shared, self.encodings = self.rows.learn(encoder, training)
        self.joined = Joined.of(self.shared)

    def training(self):
        return self.rows.encode_training(self.shared, self.joined, self.encodings)

    def transform(self, table):
        return Shuffle(table).encode_new(self.joined, self.encodings)


def check(make, table, y="sold", weight=None):
    """Compare encodings of training rows and new rows with those of one table."""
    aside = [*([y] if isinstance(y, str) else y), *([] if weight is None else [weight])]
    X, target = table.drop_columns(aside), table[y] if isinstance(y, str) else table.select(y)
    vectors = {} if weight is None else {"sample_weight": table[weight]}
    alone = make()
    training, new = alone.fit_transform(X, target, **vectors), targets(seed=4).select(X.column_names)
    expected = alone.transform(new)
    for way in (Shuffled, InBuckets):
        there = way(make(), table, y, weight)
        assert same(there.training(), training, *aside)
        assert same(there.transform(new), expected)
        assert same(way(make(), table, y, weight, training=False).transform(new), expected)


@pytest.mark.filterwarnings("ignore:.* rows see no rows", "ignore::gpu_encode.LeakWarning")
@pytest.mark.parametrize("name", SERVED)
def test_schemes_give_the_bits_of_one_table(name):
    weight = None if isinstance(SERVED[name], LeaveOneOut) else "weight"
    check(lambda: encoder(SERVED[name]), rows(), weight=weight)


def targets(seed=3):
    """Make rows with targets of all kinds, floats of far apart sizes among them."""
    table, random = rows(seed=seed), np.random.default_rng(5)
    wide = np.ldexp(random.normal(size=len(table)), random.integers(-900, 900, len(table)))
    return table.append_column("wide", pa.array(wide)).append_column(
        "kind", pa.array(random.integers(0, 3, len(table)))
    )


@pytest.mark.parametrize("y", ["price", "wide", "day", "kind", ["sold", "price"]], ids=str)
def test_targets_of_all_kinds(y):
    kinds = {"kind": "multiclass"}.get(y, "auto") if isinstance(y, str) else ["binary", "continuous"]
    check(lambda: encoder(BY_ID, target_type=kinds), targets(), y)


@pytest.mark.parametrize("y", ["size", "wide"])
@pytest.mark.parametrize("whole_pass", [2, 3])
def test_digits_by_how_rows_are_cut(whole_pass, y, monkeypatch):
    """The bound for some rows' sums may exceed the limit of whole numbers while the bound for all rows does not."""
    table = targets().slice(0, 40)
    sizes = pa.array([2**57 if row == 7 else (row % 4) << 32 for row in range(len(table))])
    table = table.append_column("size", sizes)

    def tables(self):
        self._passes.append(self._table.column_names)
        step = len(self._table) if len(self._passes) == whole_pass else 1
        return [self._table.slice(start, step) for start in range(0, len(self._table), step)]

    monkeypatch.setattr(Dealt, "_tables", tables)
    alone, there = (encoder(BY_ID, target_type="continuous") for _ in range(2))
    expected = alone.fit_transform(table.drop_columns([y]), table[y])
    assert same(Shuffled(there, table, y).training(), expected, y)


def test_a_target_of_classes_with_each_row_left_out():
    check(lambda: encoder(LeaveOneOut(), target_type="multiclass"), targets(), "kind")


def test_weights_with_fractions_of_which_some_are_zero():
    table = targets().append_column("share", pa.array(np.arange(203) % 4 / 3.0)).drop_columns(["wide", "kind"])
    check(lambda: encoder(BY_ID), table, "price", "share")


RULES = {
    "empirical Bayes": {"smooth": EmpiricalBayes()},
    "sigmoid": {"smooth": Sigmoid()},
    "means": {"smooth": None},
    "a number as prior": {"prior": 0.25, "smooth": MEstimate(3.0)},
    "few rows": {"min_count": 4, "handle_unknown": -1.0},
    "another scale": {"scale": "logit"},
    "short floats": {"dtype": "float32"},
    "no unknown values": {"handle_unknown": "nan"},
    "by key": {"smooth": {"color": MEstimate(9.0)}},
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("cv", [BY_ID, LeaveOneOut()], ids=["folds", "others"])
def test_rules(name, cv):
    check(lambda: encoder(cv).set_params(**RULES[name]), rows())


@pytest.mark.parametrize("policy", ["category", "prior", "nan"])
@pytest.mark.parametrize("cv", [BY_ID, LeaveOneOut()], ids=["folds", "others"])
def test_missing_values(policy, cv):
    table = rows()
    floats = pa.array([[None, math.nan, 0.0, -0.0, 1.5][row % 5] for row in range(len(table))])
    table = table.set_column(table.column_names.index("price"), "price", floats)
    check(
        lambda: encoder(cv, handle_missing=policy).set_params(columns=["price", "customer", ("customer", "color")]),
        table,
    )


def test_a_row_never_sees_its_own_target():
    table = rows()
    for cv in (BY_ID, LeaveOneOut()):
        before = Shuffled(encoder(cv), table).training().sort_by("id")
        for row in (5, 77):
            flipped = np.where(table["id"].to_numpy() == row, 1 - table["sold"].to_numpy(), table["sold"].to_numpy())
            changed = table.set_column(table.column_names.index("sold"), "sold", pa.array(flipped))
            after = Shuffled(encoder(cv), changed).training().sort_by("id")
            names = ["customer", "color", "customer_x_color"]
            assert after.select(names).slice(row, 1).equals(before.select(names).slice(row, 1))
            assert not after.select(names).equals(before.select(names))


def test_what_all_workers_know_does_not_grow_with_categories():
    sizes = []
    for n_categories in (5, 5000):
        random = np.random.default_rng(0)
        table = pa.table(
            {"id": np.arange(5000), "city": random.integers(0, n_categories, 5000), "y": np.arange(5000) % 2}
        )
        there = Shuffled(TargetEncoder(columns=["city"], cv=BY_ID, device="cpu"), table, "y")
        sizes.append(len(pickle.dumps(there.shared)))
    assert abs(sizes[1] - sizes[0]) < 100


def test_a_pass_reads_what_it_needs():
    table, passes = dealt()
    reading = calls.read_training(encoder(BY_ID), table, "sold", None, None)
    calls.survey(encoder(BY_ID), table, reading, training=True)[1].map(lambda *_: rows(), None)
    assert passes == [["id", "sold"], ["id", "sold"], ["customer", "color", "id", "sold"]]


REFUSED = {
    "a list": {"categories": [[1], ["red"], [1]]},
    "indicators": {"indicators": True},
    "min_frequency": {"min_frequency": 3},
    "TimeFolds": {"cv": TimeFolds(time="day", half_life=2)},
    "Ordered": {"cv": Ordered(time="day")},
    "GroupKFold": {"cv": GroupKFold(3, groups="shop")},
    "JamesStein": {"smooth": JamesStein()},
    "GLMM": {"smooth": {"color": GLMM()}},
    "prior": {"prior": "category_mean"},
    "LeaveOneOut": {"cv": LeaveOneOut(), "target_type": "continuous"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_takes_more_than_sums_of_single_categories(words):
    with pytest.raises(ValueError, match=rf'tables="shuffle": .*{words}.* Or pass tables="broadcast"\.'):
        Shuffled(encoder(BY_ID).set_params(**REFUSED[words]), rows())


def test_so_many_folds_and_classes(monkeypatch):
    monkeypatch.setattr(shuffle, "MOST_SUMS", 5)
    with pytest.raises(ValueError, match="6 sums here, by fold and class, 5 at most"):
        Shuffled(encoder(BY_ID), rows())


def test_other_encoders_and_schemes():
    with pytest.raises(ValueError, match="Got CountEncoder"):
        Shuffled(CountEncoder(columns=["color"]), rows())
    with pytest.raises(ValueError, match=r'cv=KFold\(5, by="order_id"\)'):
        Shuffled(encoder(Holdout()), rows())
    with pytest.raises(ValueError, match="None of the parts has rows"):
        Shuffled(encoder(BY_ID), rows().slice(0, 0))
