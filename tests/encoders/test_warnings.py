"""Calls that succeed but are probably mistakes give one warning, in words, of a class that can be silenced."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold as ScikitGroupKFold

import gpu_encode
from gpu_encode import CountEncoder, GroupKFold, KFold, LeakWarning, LeaveOneOut, TargetEncoder, UnseenWarning

N = 40
ROWS = np.arange(N)
X = pd.DataFrame({"shop": [f"s{row % 3}" for row in ROWS], "number": ROWS % 4})
Y = pd.Series((ROWS % 5) / 2)


def caught(call, *category):
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        call()
    return [str(message.message) for message in messages if issubclass(message.category, category or UserWarning)]


def split(holds_itself):
    tests = [ROWS[fold::2] for fold in range(2)]
    return [(np.concatenate([np.setdiff1d(ROWS, test), test[:holds_itself]]), test) for test in tests]


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (gpu_encode.Greedy(), "Greedy training encodings contain"),
        (LeaveOneOut(), "LeaveOneOut training encodings do not contain a row's own target, but"),
        (KFold(3, blow_up=True), "all but one of these contain its own target"),
        (split(1), "2 splits of cv train on rows that they encode"),
        ([(ROWS, ROWS[fold::2]) for fold in range(2)], "2 splits of cv train on rows that they encode"),
        (split(0), None),
        (KFold(3), None),
        (gpu_encode.TimeFolds(time="number"), None),
        (gpu_encode.Holdout(0.5), None),
        (gpu_encode.Ordered(), None),
    ],
)
def test_schemes_from_which_the_own_target_can_be_read(cv, words) -> None:
    encoder = TargetEncoder(columns=["shop"], cv=cv)
    messages = caught(lambda: encoder.fit_transform(X, Y), LeakWarning)
    assert len(messages) == (words is not None)
    assert all(words in message for message in messages)
    assert not caught(lambda: encoder.fit(X, Y), LeakWarning)


def test_groups_that_nobody_asks_for() -> None:
    groups = ROWS % 7
    for cv in (3, KFold(2), GroupKFold(2, groups="number"), split(0)):
        messages = caught(lambda cv=cv: TargetEncoder(columns=["shop"], cv=cv).fit_transform(X, Y, groups=groups))
        assert any("groups are ignored: " in message for message in messages)
        reads = any("GroupKFold reads those of its column 'number'." in message for message in messages)
        assert reads == isinstance(cv, GroupKFold)
    messages = caught(lambda: CountEncoder(columns=["shop"]).fit_transform(X, groups=groups))
    assert any("groups are ignored: CountEncoder takes none" in message for message in messages)
    for cv in (GroupKFold(2), ScikitGroupKFold(2)):
        assert not caught(lambda cv=cv: TargetEncoder(cv=cv).fit_transform(X, Y, groups=groups))


def test_vectors_in_another_order_than_the_rows() -> None:
    shuffled = Y.sample(frac=1, random_state=0)
    for named in ({"y": shuffled}, {"y": Y, "sample_weight": shuffled + 1}):
        (message,) = caught(lambda named=named: TargetEncoder().fit(X, **named))
        assert "has another index than X, but is matched by position" in message
    pieces = [X[:15], X[15:]]
    (message,) = caught(lambda: TargetEncoder().fit(pieces, [Y[:15], shuffled[15:]]))
    assert message.startswith("y has another index than X")
    assert not caught(lambda: TargetEncoder().fit(pieces, [Y[:15], Y[15:]]))
    for y in (Y, Y.to_numpy(), Y.tolist(), pd.Series(Y.to_numpy(), index=X.index)):
        assert not caught(lambda y=y: TargetEncoder().fit(X, y))


@pytest.mark.parametrize("columns", [["shop"], ["number"], [("shop", "number")]])
def test_values_that_fit_has_not_seen(columns) -> None:
    encoder = CountEncoder(columns=columns).fit(X)
    for share, warned in ((0.0, False), (0.5, False), (0.55, True), (1.0, True)):
        new = X.copy()
        new.loc[share * N > ROWS, ["shop", "number"]] = ["never seen", 999]
        messages = caught(lambda new=new: encoder.transform(new), UnseenWarning)
        assert len(messages) == warned
        assert all(f"{share:.0%} of the rows" in message for message in messages)
    assert not caught(lambda: encoder.transform(new[:19]), UnseenWarning)


@pytest.mark.filterwarnings("ignore:.* rows see no rows")
@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%b %Y", "%H:%M", "%Y-%d-%m"])
@pytest.mark.parametrize("cv", [gpu_encode.Ordered(time="day"), gpu_encode.TimeFolds(time="day")])
def test_text_that_does_not_sort_as_times_do(form, cv) -> None:
    days = pd.Series(pd.date_range("2024-01-15", periods=N, freq="9D"))
    encoder = TargetEncoder(columns=["shop"], cv=cv)
    with pytest.raises(ValueError, match=r"The time column 'day' is text, .* Row \d+ has .* Parse it first"):
        encoder.fit_transform(X.assign(day=days.dt.strftime(form)), Y)
    expected = encoder.fit_transform(X.assign(day=days), Y)["shop"]
    for iso in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%MZ"):
        assert encoder.fit_transform(X.assign(day=days.dt.strftime(iso)), Y)["shop"].equals(expected)
    mixed = days.dt.strftime("%Y-%m-%d").where(ROWS != 7, "2024-02-01 10:00")
    with pytest.raises(ValueError, match="Row 7 has '2024-02-01 10:00'"):
        encoder.fit_transform(X.assign(day=mixed), Y)


@pytest.mark.parametrize("encoder", ["TargetEncoder", "CountEncoder", "OrdinalEncoder", "OneHotEncoder"])
def test_messages_name_the_encoder(encoder) -> None:
    fitted = getattr(gpu_encode, encoder)().fit([["a", "b"]] * 4, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=f"X has 1 features, but {encoder} is expecting 2 features"):
        fitted.transform([["a"]])


def test_columns_in_no_order() -> None:
    with pytest.raises(ValueError, match="columns must be a list of names"):
        TargetEncoder(columns={"shop", "number"}).fit(X, Y)


@pytest.mark.parametrize("cv", [3, KFold(3), LeaveOneOut(), split(0)])
def test_a_random_state_that_is_none(cv) -> None:
    with pytest.raises(ValueError, match=r"random_state must be an integer, None or a NumPy generator\. Got 'x'"):
        TargetEncoder(cv=cv, random_state="x").fit(X, Y)


@pytest.mark.parametrize(
    "encoder",
    [TargetEncoder(columns=["shop"]), CountEncoder(columns=["shop"]), gpu_encode.HashingEncoder(4, columns=["shop"])],
)
def test_columns_that_fit_has_not_seen(encoder) -> None:
    encoder.fit(X, Y)
    (message,) = caught(lambda: encoder.transform(X.assign(more=1, target=Y)))
    assert "columns that fit has not seen, and the output leaves them out: 'more', 'target'. Drop them" in message
    assert not caught(lambda: encoder.transform(X))
