"""Data of Dask gives the bits of the whole frame, with all partitions and schedulers."""

import dask.dataframe as dd
import numpy as np
import pytest
from dask.tokenize import tokenize
from sklearn.model_selection import KFold as SplitterOfAllRows

from gpu_encode import GroupKFold, JamesStein, KFold, TargetEncoder
from gpu_encode.scale.dask import calls, tasks, trees
from tests.bits import assert_same_encoder
from tests.cases import pairs, some_of
from tests.scale.dask.cases import (
    ENCODERS,
    KEYS,
    NEEDS_MORE,
    ORDERS,
    TARGETS,
    assert_same,
    columns_of,
    one_or_more,
    partitioned,
    rows,
)

WHOLE = rows()
# Classes that folds miss, and encodings that leak, cause warnings; other tests cover them.
pytestmark = [
    pytest.mark.usefixtures("synchronous"),
    pytest.mark.filterwarnings("ignore:Greedy training encodings", "ignore:Some rows see no", "ignore:.*rows see"),
]


def both(parameters, targets, number, weighted=False, frame=WHOLE):
    """Encode the whole frame, and the same rows in partitions; give encoders and encodings."""
    cut = partitioned(frame, number)
    results = []
    for data in (frame, cut):
        encoder = TargetEncoder(**parameters)
        weight = data["weight"] if weighted else None
        encodings = encoder.fit_transform(
            data[columns_of(parameters)], one_or_more(data, TARGETS[targets]), sample_weight=weight
        )
        results.append((encoder, encodings))
    return results


@pytest.mark.parametrize(("name", "number"), some_of(ENCODERS, [1, 2, 7]))
def test_training_encodings_are_those_of_the_whole_frame(name, number):
    target = "quantity" if name != "stratified" else "binary"
    (whole, wanted), (encoder, encodings) = both(ENCODERS[name], target, number)
    assert encodings.npartitions == number
    assert_same(encodings.compute(), wanted)
    assert_same_encoder(encoder, whole)


@pytest.mark.parametrize(
    ("name", "targets", "weighted"),
    pairs(["folds", "leave one out", "ordered-rows", "ordered", "ordered-time"], TARGETS, [False, True]),
)
def test_every_target_with_and_without_weights(name, targets, weighted):
    parameters = ENCODERS[name] | ({"target_type": "continuous"} if targets == "two quantities" else {})
    (whole, wanted), (encoder, encodings) = both(parameters, targets, 5, weighted)
    assert_same(encodings.compute(), wanted)
    assert_same_encoder(encoder, whole)


@pytest.mark.parametrize("name", ["folds", "ordered-rows", "averaged"])
def test_many_partitions_most_of_them_empty(name):
    frame = rows(40)
    (_, wanted), (_, encodings) = both(ENCODERS[name], "quantity", 64, frame=frame)
    assert (encodings.map_partitions(len).compute() == 0).sum() > 20
    assert_same(encodings.compute(), wanted)


@pytest.mark.parametrize("name", ["folds", "holdout", "blow-up", "joint"])
def test_new_rows(name):
    parameters = ENCODERS[name]
    X, new = WHOLE[columns_of(parameters)], rows(97, seed=5)[columns_of(parameters)]
    whole = TargetEncoder(**parameters).fit(X, WHOLE["amount"])
    cut = partitioned(WHOLE, 4)
    encoder = TargetEncoder(**parameters)
    assert encoder.fit(cut[columns_of(parameters)], cut["amount"]) is encoder
    assert_same_encoder(encoder, whole)
    wanted = whole.transform(new)
    encodings = encoder.transform(partitioned(new, 6))
    assert encodings.npartitions == 6
    assert_same(encodings.compute(), wanted)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "scheme",
    [
        *(parameters.get("cv", "fold") for parameters in ENCODERS.values()),
        np.arange(len(WHOLE)) % 3,
        SplitterOfAllRows(3),
        len(WHOLE) + 1,
    ],
    ids=str,
)
def test_a_fit_alone_asks_no_more_of_the_scheme_than_one_call_does(scheme):
    parameters = {"cv": scheme, "columns": ["shop", "city"]}
    names, cut = [*KEYS, *NEEDS_MORE], partitioned(WHOLE, 4)
    whole = TargetEncoder(**parameters).fit(WHOLE[names], WHOLE["grade"])
    encoder = TargetEncoder(**parameters).fit(cut[names], cut["grade"])
    assert_same_encoder(encoder, whole)
    assert_same(encoder.transform(cut[names]).compute(), whole.transform(WHOLE[names]))


@pytest.mark.parametrize("order", range(3))
def test_the_order_in_which_tasks_are_done_does_not_matter(order, monkeypatch):
    """Sums are added in another order, and in trees of another shape."""
    rng, summed = np.random.default_rng(order), trees.add_up

    def add_up(summands):
        # Profiles hold the number of rows in each partition, in order.
        in_order = isinstance(summands[0], tasks.PartitionProfiles)
        return summed(summands if in_order else [summands[i] for i in rng.permutation(len(summands))])

    monkeypatch.setattr(trees, "add_up", add_up)
    monkeypatch.setattr(trees, "SPLIT_EVERY", 2 + order)
    (whole, wanted), (encoder, encodings) = both(ENCODERS["folds"], "quantity", 11)
    assert_same(encodings.compute(), wanted)
    assert_same_encoder(encoder, whole)


FORMS = {
    "series": lambda series: series,
    "list": lambda series: series.to_delayed(),
    "array": lambda series: series.to_dask_array(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_vectors_come_in_any_form(form):
    cut, names = partitioned(WHOLE, 4), {"y": "amount", "sample_weight": "weight", "groups": "buyer"}

    def encode(rows, form):
        encoder = TargetEncoder(cv=GroupKFold(3), columns=["shop", "city"])
        return encoder.fit_transform(rows[KEYS], **{role: form(rows[name]) for role, name in names.items()})

    assert_same(encode(cut, form).compute(), encode(WHOLE, FORMS["series"]))


@pytest.mark.parametrize("cv", [5, ORDERS["ordered-rows"], ORDERS["ordered"]], ids=str)
def test_folds_and_orders_follow_rows_where_partitions_are_picked(cv):
    cut = partitioned(WHOLE, 7)
    wanted = TargetEncoder(cv=cv).fit_transform(WHOLE[KEYS], WHOLE["amount"])
    encodings = TargetEncoder(cv=cv).fit_transform(cut[KEYS], cut["amount"])
    lengths = cut.map_partitions(len).compute().tolist()
    for number in (3, 6):
        start = sum(lengths[:number])
        assert_same(encodings.partitions[number].compute(), wanted.iloc[start : start + lengths[number]])
    assert_same(encodings.get_partition(5).compute(), encodings.compute().iloc[sum(lengths[:5]) : sum(lengths[:6])])
    assert_same(encodings[["city"]].compute(), wanted[["city"]])
    assert_same(encodings.tail(2, compute=True), wanted.tail(2))


def test_divisions_and_index_stay():
    cut = dd.from_pandas(WHOLE.sort_index(), npartitions=3)
    assert cut.known_divisions
    encoder, names = TargetEncoder(columns=["shop"], cv=3), [*KEYS, "price"]
    encodings = encoder.fit_transform(cut[names], cut["amount"])
    for lazy in (encodings, encoder.transform(cut[names])):
        assert (lazy.divisions, lazy.index.name) == (cut.divisions, "order")
    assert_same(encodings.loc[500:900].compute(), encodings.compute().loc[500:900])


@pytest.mark.parametrize("name", ["folds", "joint", "blow-up", "groups"])
def test_the_lazy_frame_says_what_it_will_hold(name):
    parameters = ENCODERS[name]
    cut = partitioned(WHOLE, 3)
    X = cut[columns_of(parameters)]
    encoder = TargetEncoder(**parameters)
    for lazy in (encoder.fit_transform(X, cut["amount"]), encoder.transform(X)):
        assert isinstance(lazy, dd.DataFrame)
        computed = lazy.compute()
        assert lazy.columns.tolist() == computed.columns.tolist() == encoder.get_feature_names_out().tolist()
        assert lazy.dtypes.astype(str).tolist() == computed.dtypes.astype(str).tolist()


def test_an_encoder_fitted_again_changes_no_lazy_encodings():
    cut = partitioned(WHOLE, 3)
    encoder = TargetEncoder(smooth=0.0).fit(cut[["shop"]], cut["amount"])
    encodings, training = encoder.transform(cut[["shop"]]), encoder.fit_transform(cut[["shop"]], cut["amount"])
    whole = TargetEncoder(smooth=0.0)
    wanted = encoder.transform(WHOLE[["shop"]]), whole.fit_transform(WHOLE[["shop"]], WHOLE["amount"])
    encoder.fit(WHOLE[["shop"]], WHOLE["sold"])
    for lazy, expected in zip((encodings, training), wanted, strict=True):
        assert_same(lazy.compute(), expected)


def test_a_generator_is_drawn_from_once_as_by_one_call():
    cut = partitioned(WHOLE, 3)
    generators = [np.random.default_rng(3), np.random.default_rng(3)]
    wanted = TargetEncoder(cv=KFold(3, random_state=generators[0])).fit_transform(WHOLE[KEYS], WHOLE["amount"])
    encodings = TargetEncoder(cv=KFold(3, random_state=generators[1])).fit_transform(cut[KEYS], cut["amount"])
    assert_same(encodings.compute(), wanted)
    assert generators[0].integers(1 << 40) == generators[1].integers(1 << 40)


@pytest.mark.parametrize("most", [None, 1, 3, 200])
@pytest.mark.parametrize("name", ["ordered-rows", "averaged", "ordered-time"])
def test_the_number_of_groups_of_an_order_does_not_matter(name, most, monkeypatch):
    if most is not None:
        monkeypatch.setattr(calls, "MOST_GROUPS", most)
        monkeypatch.setattr(calls, "MOST_ROWS", 50)
    # Parameters that need the categories of all rows first.
    parameters = ENCODERS[name] | {"smooth": JamesStein(), "prior": "category_mean"}
    (whole, wanted), (encoder, encodings) = both(parameters, "quantity", 6)
    assert_same(encodings.compute(), wanted)
    assert_same_encoder(encoder, whole)


def test_dask_tells_fitted_encoders_apart():
    """An encoder is a dataclass, and Dask looks only at its fields unless the class states what else counts."""
    # Long arrays: their `repr` would show only the ends.
    numbers, y = np.arange(5_000.0), np.zeros(5_000)
    others = np.where(numbers == 2_500, 1.0, y)
    first, other = (TargetEncoder(target_type="continuous").fit(numbers[:, None], target) for target in (y, others))
    assert tokenize(first) == tokenize(first) != tokenize(other)
