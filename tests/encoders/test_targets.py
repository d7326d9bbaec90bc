"""Every kind of target, one or several, with weights."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder, tune
from gpu_encode.scale.parts import Part, encode
from gpu_encode.seam import devices, ops
from gpu_encode.sums import targets
from gpu_encode.tables.frames import NumberedLabels
from tests.scale.parts.in_parts import encoded_in_parts, fitted_in_parts

FOLDS = KFold(3, order="interleaved")


def encodings_of(frame, y, weight=None, **parameters):
    """Return the encodings of training rows and of new rows, side by side."""
    encoder = TargetEncoder(**{"columns": ["city", ("city", "shop")], "cv": FOLDS, **parameters})
    trained = encoder.fit_transform(frame, y, sample_weight=weight)
    return encoder, np.hstack(
        [part.drop(columns=["zip", "day"]).to_numpy() for part in (trained, encoder.transform(frame))]
    )


LABELS = {
    "integers": [7, -3],
    "text": ["yes", "no"],
    "bool": [True, False],
    "floats": [0.5, 0.25],
    "large integers": [2**62 + 1, 2**62],
    "unsigned": list(np.array([2**63 + 1, 1], np.uint64)),
    "bytes": [b"x", b"w"],
}


@pytest.mark.parametrize("pair", LABELS.values(), ids=LABELS.keys())
@pytest.mark.parametrize("make", [np.array, pytest.param(list, marks=pytest.mark.host)])
def test_any_two_labels(frame, labels, pair, make):
    _, expected = encodings_of(frame, labels)
    # The label that sorts last is the 1.
    y = make([max(pair) if label else min(pair) for label in labels])
    # Fractions are a quantity, and bytes are nothing to scikit-learn, unless said otherwise.
    for kind in ["binary"] if isinstance(pair[0], (float, bytes)) else ["binary", "auto"]:
        encoder, encodings = encodings_of(frame, y, target_type=kind)
        np.testing.assert_array_equal(encodings, expected)
        assert encoder.target_type_ == "binary"
        assert encoder.classes_.tolist() == sorted(pair)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (np.arange(12) / 7, "continuous"),
        (np.float32([0.5, 1.5] * 6), "continuous"),
        (np.full(12, 1e300), "continuous"),
        (np.ones(12), "binary"),
        (np.arange(12.0) % 2, "binary"),
        (np.arange(12) % 3, "multiclass"),
        (np.arange(12.0) % 3, "multiclass"),
        (list("abc") * 4, "multiclass"),
    ],
)
def test_what_auto_infers(frame, y, kind):
    assert TargetEncoder().fit(frame, y).target_type_ == kind


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_many_whole_numbers_are_warned_of(dtype):
    X, y = np.zeros((300, 1)), (np.arange(300) % 21).astype(dtype)
    says = r'^y holds whole numbers and was inferred to be multiclass with 21 classes\. Pass target_type="continuous"'
    with pytest.warns(UserWarning, match=says) as caught:
        assert TargetEncoder().fit(X, y).target_type_ == "multiclass"
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TargetEncoder().fit(X, y % 20)
        for kind in ("continuous", "multiclass"):
            TargetEncoder(target_type=kind).fit(X, y)


@pytest.mark.host
def test_many_whole_numbers_of_many_rows_are_warned_of():
    y = np.arange(targets.MANY_ROWS) % 101
    with pytest.warns(UserWarning, match="multiclass with 101 classes"):
        assert targets.infer_kind(targets.Labels(ops.host(len(y)), y)) == "multiclass"


PRICES = np.arange(3000) * 7
CITIES = (PRICES % 300)[:, None]
# Functions whose memory grows with the classes.
CALLS = {
    "fit": lambda encoder: encoder.fit(CITIES, PRICES),
    "partial_fit": lambda encoder: encoder.partial_fit(CITIES, PRICES),
    "folds": lambda encoder: encoder.fit_transform(CITIES, PRICES),
    "leave one out": lambda encoder: encoder.set_params(cv=LeaveOneOut()).fit_transform(CITIES, PRICES),
    "an order": lambda encoder: encoder.set_params(cv=Ordered()).fit_transform(CITIES, PRICES),
    "pieces": lambda encoder: encoder.fit_transform([CITIES[:9], CITIES[9:]], [PRICES[:9], PRICES[9:]]),
    "parts": lambda encoder: encoded_in_parts(encoder.set_params(cv=KFold(3)), [Part(CITIES, PRICES)]),
    "tune": lambda encoder: tune(encoder, CITIES, PRICES),
}


@pytest.mark.host
@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_classes_that_memory_has_no_room_for(call, monkeypatch):
    monkeypatch.setattr(devices, "available_bytes", lambda: 8 << 20)
    says = r'y has 3000 classes.* Pass target_type="continuous" .* take at least [\d.]+ GiB, and 0\.0 GiB'
    tracemalloc.start()
    with pytest.raises(ValueError, match=says):
        call(TargetEncoder(target_type="multiclass"))
    # The memory is refused before it is allocated.
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    TargetEncoder(target_type="continuous").fit_transform(CITIES, PRICES)


@pytest.mark.host
@pytest.mark.parametrize("scheme", [KFold(3), LeaveOneOut()], ids=["folds", "rows"])
def test_rows_that_memory_has_no_room_for(scheme, monkeypatch):
    # Few categories, so that the sums of a few rows fit, and the encodings of many do not.
    encoder = TargetEncoder(target_type="multiclass", cv=scheme)
    X, y = np.tile(CITIES[:50], (10, 1)), np.arange(500) % 50
    encoded = encoder.fit_transform(X, y)
    monkeypatch.setattr(devices, "available_bytes", lambda: encoded.nbytes - 1)
    for call in (encoder.transform, lambda X: encoder.fit_transform(X, y), lambda X: part_of(encoder, X, y)):
        with pytest.raises(ValueError, match="y has 50 classes"):
            call(X)
    monkeypatch.setattr(devices, "available_bytes", lambda: encoded.nbytes)
    np.testing.assert_array_equal(encoder.transform(X).shape, encoded.shape)


def part_of(encoder, X, y):
    """Encode rows as one part, with sums from a process that has more memory."""
    with pytest.MonkeyPatch.context() as roomy:
        roomy.setattr(devices, "available_bytes", lambda: 1 << 40)
        tables = fitted_in_parts(encoder, [Part(X, y)])
    return encode(tables, Part(X, y))


STRAYS = {
    "text": [*map(str, range(300)), "n/a?", "1.5"],
    "text of NumPy": np.array([*map(str, range(300)), "n/a?", "1.5"]),
    "mixed": [*range(300), "n/a?", 1.5],
    "0/1": [*["0", "1"] * 150, "n/a?", "1"],
}


@pytest.mark.host
@pytest.mark.parametrize("y", STRAYS.values(), ids=STRAYS.keys())
def test_a_typing_error_among_numbers_is_named(y):
    X = np.zeros((302, 1))
    y = y if isinstance(y, np.ndarray) else pd.Series(y, dtype=object)
    with pytest.raises(
        ValueError, match=r"^y holds numbers in all but 1 .* text, such as 'n/a\?', in row 300\. Correct"
    ):
        TargetEncoder().fit(X, y)
    with pytest.raises(ValueError, match=r"text, such as 'n/a\?', in row 300 \(row 298 of y\[1\]\)\. Correct"):
        TargetEncoder().fit([X[:2], X[2:]], [y[:2], y[2:]])
    with pytest.raises(ValueError, match=r"continuous target needs numbers in y, but it holds 'n/a\?' in row 300\."):
        TargetEncoder(target_type="continuous").fit(X, y)
    if isinstance(y, np.ndarray) or isinstance(y[0], str):
        with pytest.raises(ValueError, match=r"^y holds numbers in all but 1 .* text, such as 'n/a\?'\. Correct"):
            fitted_in_parts(TargetEncoder(), [Part(X[:2], y[:2]), Part(X[2:], y[2:], first_row=2)])
        # The user may state that these are labels.
        assert "n/a?" in TargetEncoder(target_type="multiclass").fit(X, y).classes_


@pytest.mark.host
def test_text_classes_stay_fine():
    X, some = np.zeros((400, 1)), ["x", "y"] * 198
    words = [f"word {row % 30}" for row in range(400)]
    for y in (
        [*some, "1", "2", "3", "4"],
        [*words[:300], *map(str, range(20)), *words[:80]],
        [*["1"] * 396, *["x"] * 4],
    ):
        assert TargetEncoder().fit(X, y).target_type_ in ("binary", "multiclass")


# How people write numbers: a text for each whole number.
WRITTEN = {
    "plain": str,
    "cents": "{:,.2f}".format,
    "thousands": lambda number: f"{1000 + number:,}",
    "points for commas": lambda number: f"1.{number:03d},50",
    "spaces for commas": lambda number: f"1\u00a0{number:03d}",
    "apostrophes": lambda number: f"1'{number:03d}",
    "dollars": "${}.1".format,
    "a negative price": "-${}".format,
    "euros": "{} €".format,
    "euros before": "€ {},50".format,
    "a code of a currency": "USD {}".format,
    "a code behind": "{} EUR".format,
    "spaces behind": "{}  ".format,
    "a tab before": "\t{}".format,
    "a percent sign": "{}%".format,
    "a negative number of accountants": "({}.00)".format,
    "a minus sign": "\u2212{}".format,
    "an exponent": "{}e-3".format,
    "a scale": "{}k".format,
    "a unit": "{} kg".format,
    "leading zeros": "{:05d}".format,
}
NO_NUMBERS = {
    "words": "word {}".format,
    "codes": "E{}.9".format,
    "dates": lambda number: f"{number % 28 + 1:02d}.05.{2000 + number}",
    "dates of ISO": lambda number: f"{2000 + number}-05-01",
    "addresses": "10.0.0.{}".format,
    "ranges": "{0}-{0}9".format,
    "names that begin with a number": "{} apples".format,
    "spaces": lambda number: " " * 5000 + f"x{number}",
}
IN_MEMORY = {
    "pandas": pd.Series,
    "objects": lambda y: pd.Series(y, dtype=object),
    "NumPy": np.array,
    "category": lambda y: pd.Series(y, dtype="category"),
}


@pytest.mark.host
@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN.keys())
def test_numbers_written_as_text_are_warned_of(write):
    X, y = np.zeros((300, 1)), [write(row % 60) for row in range(300)]
    with pytest.warns(UserWarning, match=r"^y holds numbers written as text, such as .* multiclass with 60 classes"):
        assert TargetEncoder().fit(X, y).target_type_ == "multiclass"
    some = ["?" if row % 20 == 7 else text for row, text in enumerate(y)]
    with pytest.warns(UserWarning, match=r"read '\?' as a missing value .* pass target_type=\"continuous\""):
        TargetEncoder().fit(X, some)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TargetEncoder(target_type="multiclass").fit(X, y)
        TargetEncoder().fit(X, [write(row % 20) for row in range(300)])


@pytest.mark.host
@pytest.mark.parametrize("write", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
def test_text_that_is_no_number_is_not_warned_of(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TargetEncoder().fit(np.zeros((300, 1)), [write(row % 60) for row in range(300)])


@pytest.mark.host
@pytest.mark.parametrize("make", IN_MEMORY.values(), ids=IN_MEMORY.keys())
@pytest.mark.parametrize("write", [int, float, *list(WRITTEN.values())[:2], NO_NUMBERS["words"]])
def test_a_thousand_numbers_are_classes_only_if_the_user_says_so(make, write):
    fewer, more = (make([write(row % n_classes) for row in range(3000)]) for n_classes in (999, 1000))
    X, parts = np.zeros((3000, 1)), lambda y: fitted_in_parts(TargetEncoder(cv=KFold(2)), [Part(X, y)])
    if write is NO_NUMBERS["words"]:
        TargetEncoder(cv=KFold(2)).fit(X, more)
        return
    for fit in (
        lambda y: TargetEncoder(cv=KFold(2)).fit(X, y),
        lambda y: TargetEncoder(cv=KFold(2)).fit([X[:9], X[9:]], [y[:9], y[9:]]),
        parts,
    ):
        with pytest.warns(UserWarning, match="multiclass with 999 classes"):
            fit(fewer)
        says = r'would be 1000 classes, .* target_type="continuous" .*"multiclass" .* allows so many classes\.$'
        with pytest.raises(ValueError, match=says):
            fit(more)
    assert len(TargetEncoder(target_type="multiclass").fit(X, more).classes_) == 1000


def test_labels_that_come_numbered_are_warned_of_if_they_are_numbers():
    """As labels of text on a GPU do."""
    numbered = NumberedLabels(np.arange(60, dtype=np.int32), np.array(sorted(map("${}.1".format, range(60))), object))
    with pytest.warns(UserWarning, match=r"such as '\$0\.1', and was inferred to be multiclass with 60 classes"):
        targets.infer_kind(targets.Labels.of(ops.resolve(60), numbered))


def test_rare_classes_are_warned_of_with_an_integer_cv_only(frame, labels):
    with pytest.warns(UserWarning, match="only 6 members, which is less than n_splits=7"):
        TargetEncoder(cv=7).fit_transform(frame, labels)
    TargetEncoder(cv=KFold(7)).fit_transform(frame, labels)
    TargetEncoder(cv=7).fit(frame, labels)


@pytest.mark.parametrize("weight", [None, np.arange(12) / 8], ids=["", "weighted"])
def test_a_dropped_class_changes_no_other(frame, weight):
    y = np.array(list("zxyzxyxxyzzz"))
    encoder, whole = encodings_of(frame, y, weight)
    fewer, less = encodings_of(frame, y, weight, drop="first")
    np.testing.assert_array_equal(less, whole[:, [1, 2, 4, 5, 7, 8, 10, 11]])
    assert encoder.classes_.tolist() == fewer.classes_.tolist() == ["x", "y", "z"]
    assert encoder.target_mean_.tolist()[1:] == fewer.target_mean_.tolist()
    for place, label in enumerate("xyz"):
        without, columns = encodings_of(frame, y, weight, drop=label)
        np.testing.assert_array_equal(columns, np.delete(whole, [place, place + 3, place + 6, place + 9], axis=1))
        assert without.classes_.tolist() == ["x", "y", "z"]
        assert not any(name.endswith(f"_{label}") for name in without.get_feature_names_out())
        kept = [codes for number, codes in enumerate(encoder.encodings_) if number % 3 != place]
        assert all(map(np.array_equal, without.encodings_, kept))
    np.testing.assert_array_equal(encodings_of(frame, y == "x", drop=True)[1], encodings_of(frame, y == "x")[1])
    # Binary and continuous targets have one column anyway.
    np.testing.assert_array_equal(encodings_of(frame, y == "x", drop="first")[1], encodings_of(frame, y == "x")[1])


@pytest.mark.parametrize("weight", [None, np.arange(1, 13) / 8], ids=["", "weighted"])
@pytest.mark.parametrize("cv", [FOLDS, LeaveOneOut(), Ordered(2, average=False)], ids=["folds", "rows", "ordered"])
def test_several_targets_are_encoded_as_each_alone(frame, y, labels, weight, cv):
    kinds = ["continuous", "multiclass", "binary"]
    parts = [y.tolist(), ["x", "y", "z"] * 4, [bool(label) for label in labels]]
    encoder = TargetEncoder(columns=["city"], cv=cv, target_type=kinds)
    trained = encoder.fit_transform(frame, pd.DataFrame(dict(zip("abc", parts, strict=True))), sample_weight=weight)
    new, start = encoder.transform(frame), 0
    for number, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
        alone = TargetEncoder(columns=["city"], cv=cv, target_type=kind)
        expected = alone.fit_transform(frame, part, sample_weight=weight)
        width = expected.shape[1] - 3
        for mine, theirs in ((trained, expected), (new, alone.transform(frame))):
            np.testing.assert_array_equal(mine.iloc[:, start : start + width], theirs.iloc[:, :width])
        start += width
        assert encoder.target_type_[number] == kind
        np.testing.assert_array_equal(encoder.target_mean_[number], alone.target_mean_)
        np.testing.assert_array_equal(encoder.classes_[number], alone.classes_)
    assert len(encoder.encodings_) == 5


BIG = 2**53
# Categories, integers that a float cannot tell apart or hold the sum of, and their means.
INTEGERS = [
    ("aab", [BIG + 1, -BIG, 3], [0.5, 3.0]),
    ("aaa", [BIG + 1, BIG, BIG], [(3 * BIG + 1) / 3]),
    ("aaaa", [2**62 + 1, -(2**62), 2**62, -(2**62)], [0.25]),
]


@pytest.mark.parametrize(("keys", "y", "expected"), INTEGERS)
def test_integers_beyond_the_digits_of_a_float(keys, y, expected):
    encoder = TargetEncoder(target_type="continuous", smooth=None).fit(np.array([*keys])[:, None], np.array(y))
    # The sum is exact, and its quotient is rounded once.
    assert encoder.encodings_[0].tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, bool])
def test_a_quantity_of_any_numeric_type(frame, dtype):
    y = np.array([1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0]).astype(dtype)
    _, encodings = encodings_of(frame, y, target_type="continuous")
    np.testing.assert_array_equal(encodings, encodings_of(frame, y.astype(float), target_type="continuous")[1])


@pytest.mark.parametrize(("names", "kind"), [(["no", "yes"], "binary"), (["maybe", "no", "yes"], "multiclass")])
def test_the_kind_of_labels_that_come_numbered(names, kind):
    """As labels of text on a GPU do."""
    numbered = NumberedLabels(np.arange(12, dtype=np.int32) % len(names), np.array(names, object))
    assert targets.infer_kind(targets.Labels.of(ops.resolve(12), numbered)) == kind
