"""Forged documents: complete archives whose parts do not fit together are refused."""

import contextlib
import json
import random
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gpu_encode import ClusterEncoder, StatisticEncoder, TargetEncoder
from tests.storage.altered import (
    archive_of,
    assert_refused,
    changed,
    load_or_refuse,
    members_of,
    stream_of,
    with_numbers,
)
from tests.storage.fitted import NEW

CHANGES = 400


Change = Callable[[Any], Any]


def document(address: str, value: Any) -> Change:
    """Give a change of one value of a document, such as ``model/keys/0/given``: a new value, or a function of it."""

    def change(content: Any) -> None:
        *steps, last = (int(step) if step.isdigit() else step for step in address.split("/"))
        for step in steps:
            content = content[step]
        if callable(value):
            value(content[last])
        else:
            content[last] = value

    return change


def model(address: str, value: Any) -> Change:
    return document(f"model/{address}", value)


def class_of(name: str, **parameters: Any) -> dict[str, Any]:
    return {"class": name, "parameters": parameters}


def array_of(dtype: str, shape: list[int], values: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "values": values}


NOTHING = {"entries": [], "keys": [], "formulas": [], "statistics": []}
INCONSISTENT: dict[str, tuple[Change, str]] = {
    "encoder": (document("estimator", "os.system"), "names the encoder 'os.system'"),
    "class": (document("parameters/cv", class_of("Popen")), "names the class 'Popen', which no model holds"),
    "parameters": (document("parameters", lambda given: given.pop("cv")), "the parameters of TargetEncoder are"),
    "tag": (document("parameters/cv", {"eval": "1"}), "the unknown tag 'eval'"),
    "two tags": (document("parameters/cv", {"float": "1", "x": 1}), ""),
    "dtype": (document("parameters/cv", {"scalar": ["O8,(1000,)f8", 1]}), "is no type of values"),
    "texts": (
        document("parameters/cv", {"ndarray": array_of("<U99999999", [1], ["a"])}),
        "unfolds to more than 8 times its size",
    ),
    "short texts": (document("parameters/cv", {"ndarray": array_of("<U1", [1], ["ab"])}), "are not of <U1"),
    "container": (document("output", "exec"), "'output' holds 'exec'"),
    "names": (model("feature_names", ["a"]), "1 names for 7 columns"),
    "fewer columns": (model("n_features", 2), r"'members' holds 2, which is not in \[0, 1\]"),
    "no columns": (model("n_features", 0), "'n_features' holds 0"),
    "flag": (model("indicators", 1), "'indicators' holds '1'"),
    "an unknown flag": (model("indicators", ["absent"]), "the field 'indicators' holds"),
    "a flag twice": (model("indicators", ["unseen", "unseen"]), "the field 'indicators' holds"),
    "a flag of another kind": (model("indicators", [["unseen"]]), "the field 'indicators' holds"),
    "type of encodings": (model("dtype", "object"), "'dtype' holds 'object'"),
    "permutations": (model("permutations", 0), "'permutations' holds 0"),
    "no entries": (document("model", lambda content: content.update(NOTHING)), "has no columns or no targets"),
    "entry": (model("entries/1/members", [0, 0]), "is made of the columns"),
    "rule": (model("entries/0/rule", class_of("MEstimate", m=1)), "hierarchy that does not fit"),
    "rule's range": (model("entries/2/rule", class_of("Prefixes", lengths=[1, 2])), "must fall strictly"),
    "rule's kind": (model("entries/2/rule", class_of("Bits", lengths=[8], width=32)), "does not apply to"),
    "joint categories of fewer": (
        model("keys/1/members/shape", lambda shape: shape.__setitem__(slice(None), [2 * shape[0], 1])),
        "categories of 2 columns are stored as int32 of shape",
    ),
    "keys": (model("keys", []), "describes 0 of 3 parts"),
    "columns of a key": (model("keys/1/vocabularies", lambda words: words.pop()), "describes 1 of 2 parts"),
    "joint categories of one": (model("keys/0/members", array_of("<i4", [0, 1], [])), "column with joint categories"),
    "a joint key's missing": (model("keys/1/has_missing", True), "categories of a single column"),
    "joint categories of none": (model("keys/1/members", None), "'dtype' is missing"),
    "kind of values": (model("keys/0/vocabularies/0/kind", "number"), "categories are damaged"),
    "kind of targets": (model("targets/0/kind", "ordinal"), "'kind' holds 'ordinal'"),
    "classes of numbers": (model("targets/1/kind", "continuous"), "a continuous target has class labels"),
    "too many classes": (model("targets/1/kind", "binary"), "a binary target has class labels"),
    "fewer classes": (
        model("targets/1/classes", array_of("<U1", [2], ["a", "b"])),
        "sums of 'city' are int64 of shape",
    ),
    "classes in disorder": (model("targets/1/classes", array_of("<U1", [4], [*"abdc"])), "labels are not sorted"),
    "formula": (model("formulas/0/readout", class_of("Greedy")), "Greedy is no smoothing"),
    "squares": (model("formulas/0/readout", class_of("PartialPooling")), "do not fit a continuous target and Partial"),
    "smoothing's range": (model("formulas/0/readout", class_of("MEstimate", m=-1)), "must be a finite number"),
    "prior": (model("formulas/0/prior", "median"), "the prior is 'median'"),
    "least count": (model("formulas/0/min_count", None), "is no number"),
    "encoding of unseen": (model("formulas/0/unseen", [1]), "is no number"),
    "windows": (model("statistics/0/0/windows/0", None), "do not fit a continuous target"),
    "far window": (model("statistics/0/0/windows/1/0", 10**9), "'low' holds 1000000000"),
    "whole window": (model("statistics/0/0/windows/1/2", True), "whole number is kept at the digits"),
    "outputs": (model("statistics/0/1/first_output", 1), "differ in their outputs"),
    "output of numbers": (model("statistics/0/0/first_output", 1), "'first_output' holds 1"),
    "shape": (model("statistics/0/0/cells/shape", lambda shape: shape.reverse()), "the sums of 'city' are int64"),
    "rows": (model("statistics/0/0/added", -1), "'added' holds -1"),
}


@pytest.mark.parametrize("name", INCONSISTENT)
def test_documents_that_do_not_fit_together(name: str, saved: Any, path: Path) -> None:
    change, message = INCONSISTENT[name]
    assert_refused(path, changed(saved[0], change), f"is damaged: .*{message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda numbers: numbers + 100, "has a value that its column has not"),
        (lambda numbers: numbers - 2, "has a value that its column has not"),
        (lambda numbers: numbers.reshape(-1, 2)[::-1].ravel(), "are not sorted"),
        (lambda numbers: numbers * 0, "are not sorted, or one is there twice"),
    ],
)
def test_joint_categories_that_are_none(change: Any, message: str, saved: Any, path: Path) -> None:
    content = with_numbers(saved[0], lambda document: document["keys"][1]["members"]["array"], change)
    assert_refused(path, content, f"is damaged: .*{message}")


@pytest.mark.parametrize("target", [0, 1])
def test_negative_counts(target: int, saved: Any, path: Path) -> None:
    content = with_numbers(saved[0], lambda document: document["statistics"][0][target]["cells"]["array"], np.negative)
    assert_refused(path, content, "is damaged: a category of 'city' has a negative count")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_no_category_can_be(number: float, path: Path) -> None:
    TargetEncoder().fit(np.array([[1.5], [2.5]]), [0, 1]).save(path)
    content = with_numbers(
        path.read_bytes(),
        lambda content: content["keys"][0]["vocabularies"][0]["array"],
        lambda numbers: np.append(numbers[:-1], number),
    )
    assert_refused(path, content, "is damaged: a number among the categories is not finite")


@pytest.mark.parametrize("text", ["fnan", "finf", "dInfinity", "dNaN"])
def test_decimals_that_no_category_can_be(text: str, path: Path) -> None:
    TargetEncoder().fit(np.array([[Decimal("1.5")], [Decimal("2.5")]]), [0, 1]).save(path)
    members = members_of(path.read_bytes())
    name = json.loads(members["model.json"])["model"]["keys"][0]["vocabularies"][0]["array"]
    content = archive_of(members | {name: stream_of(pa.array(["d1.5", text], pa.large_string()))})
    assert_refused(path, content, "is damaged: (a number among the categories is not finite|the stored categories)")


def test_a_key_has_no_more_clusters_than_categories(path: Path) -> None:
    ClusterEncoder(n_clusters=2, output="onehot").fit([["a"], ["b"], ["c"]] * 4, [0, 1, 1] * 4).save(path)
    content = changed(path.read_bytes(), lambda document: document["learned"].update(widths=[1 << 16]))
    assert_refused(path, content, "is damaged: clusters of a key do not fit its 3 categories")


def test_a_number_is_not_shown_as_something_else(path: Path) -> None:
    TargetEncoder().fit(np.array([[1.5], [2.5]]), [0, 1]).save(path)
    content = changed(path.read_bytes(), model("keys/0/vocabularies/0/dtype", "S1000"))
    assert_refused(path, content, "is damaged: numbers are shown as 'S1000'")


JUNK = [None, True, -1, 0, 1, 2**70, 0.5, "", "x", [], [0], {}, {"float": "nan"}, {"class": "Greedy", "parameters": {}}]


def positions_of(document: Any) -> list[tuple[Any, Any]]:
    """Every (container, index) of a JSON document."""
    if not isinstance(document, dict | list):
        return []
    keys = list(document) if isinstance(document, dict) else range(len(document))
    return [position for key in keys for position in [(document, key), *positions_of(document[key])]]


def dates() -> tuple[bytes, Any]:
    """Give the file of an encoder of text and dates, and new rows."""
    X = pd.DataFrame({"shop": [*"aab"], "word": ["x", "z", "y"], "when": pd.date_range("2020", periods=3, tz="UTC")})
    asked = {"shop": {"word": ["mode"], "when": ["last", "seconds_since_last"]}}
    with tempfile.TemporaryDirectory() as folder:
        StatisticEncoder(asked).fit(X).save(f"{folder}/model")
        return Path(f"{folder}/model").read_bytes(), X


FORGED_DATES: dict[str, tuple[Change, str]] = {
    "kind": (model("targets/0/kind", "datetime"), "values of a column of datetime are of text"),
    "no labels": (model("targets/0", lambda content: content.pop("vocabulary")), "the field 'vocabulary' is missing"),
    "dates": (model("dates", [1]), "column 'when' of dates is not among those that are read"),
    "name": (model("targets/1/name", "when?"), r"the column 'when\?' of dates is not among those that are read"),
    "statistic": (
        model("formulas/0/readout/parameters/pairs/0/0", [{"tuple": ["quantile", {"float": "0.5"}]}]),
        "'word' holds text, for which the model has",
    ),
}


@pytest.mark.parametrize("name", FORGED_DATES)
def test_dates_that_do_not_fit_together(name: str, path: Path) -> None:
    change, message = FORGED_DATES[name]
    assert_refused(path, changed(dates()[0], change), f"is damaged: .*{message}")


def test_places_of_other_values(path: Path) -> None:
    content = with_numbers(
        dates()[0], lambda document: document["statistics"][0][0]["distribution"]["values"]["array"], lambda at: at + 1
    )
    assert_refused(path, content, "counts of the values of 'word' name values that it does not have")


@pytest.mark.parametrize("kind", ["means", "dates"])
def test_a_forged_document_gives_a_value_error_or_an_encoder_that_works(kind: str, saved: Any, path: Path) -> None:
    content, new = (saved[0], NEW) if kind == "means" else dates()
    chosen = random.Random(1)
    n_positions = len(positions_of(json.loads(members_of(content)["model.json"])))

    for _ in range(CHANGES):
        number, junk = chosen.randrange(n_positions), chosen.choice(JUNK)

        def change(document: Any, number: int = number, junk: Any = junk) -> None:
            container, key = positions_of(document)[number]
            if chosen.random() < 0.2:
                container.pop(key)
            else:
                container[key] = junk

        again = load_or_refuse(path, changed(content, change))
        if again is not None:
            # Columns that differ from those of the new rows are an error of the new rows.
            with contextlib.suppress(ValueError):
                again.transform(new)
