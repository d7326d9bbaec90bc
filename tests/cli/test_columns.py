"""Names become columns, also names that contain a comma or a plus."""

import pyarrow as pa
import pytest

from gpu_encode.cli.arguments import parse
from gpu_encode.cli.columns import Roles, roles
from gpu_encode.cli.encoders import encoder_parameters
from gpu_encode.cli.messages import UsageError

SCHEMA = pa.schema(
    {
        "city": pa.large_string(),
        "device": pa.dictionary(pa.int32(), pa.string()),
        "member": pa.bool_(),
        "zip": pa.string(),
        "zip3": pa.string(),
        "day": pa.int64(),
        "a,b": pa.int64(),
        "c+d": pa.int64(),
        "y": pa.string(),
        "w": pa.int64(),
    }
)


def roles_of(*words: str, target: str = "y") -> Roles:
    options = parse(["fit-transform", "in.csv", "out.csv", "--target", target, *words])
    return roles(SCHEMA, options, encoder_parameters(options))


def test_text_dictionaries_and_booleans_are_encoded_unless_columns_are_named() -> None:
    assert roles_of().keys == ["city", "device", "member", "zip", "zip3"]
    assert roles_of().chosen
    assert not roles_of("--columns", "day").chosen


def test_columns_with_another_role_are_not_chosen() -> None:
    words = ("--cv", 'GroupKFold(groups="city")', "--hierarchy", '{"zip": ["zip3"]}')
    assert roles_of(*words).keys == ["device", "member", "zip"]


def test_lists_and_joint_keys() -> None:
    assert roles_of("--columns", "city,device+zip", "--columns", "day").keys == ["city", ("device", "zip"), "day"]


def test_columns_in_the_words_of_python() -> None:
    assert roles_of("--columns", '["a,b", ("city", "c+d")]', "--columns", "day").keys == ["a,b", ("city", "c+d"), "day"]


def test_a_name_as_it_stands_comes_first() -> None:
    assert roles_of("--columns", "a,b", "--columns", "c+d").keys == ["a,b", "c+d"]


def test_target_and_weight_are_set_aside() -> None:
    plan = roles_of("--weight", "w", target="y,day")
    assert (plan.targets, plan.weight) == (["y", "day"], "w")


@pytest.mark.parametrize(
    ("words", "dropped"),
    [
        (["--drop", "first"], "first"),
        (["--drop", '{"zip": "02138", ("city", "member"): ("Bonn", True)}'],
         {"zip": "02138", ("city", "member"): ("Bonn", True)}),
        (["--columns", "day", "--set", 'drop={"day": 3}'], {"day": 3}),
    ],
)  # fmt: skip
def test_categories_to_drop_are_as_they_are_given(words: list[str], dropped: object) -> None:
    options = parse(["fit-transform", "in.csv", "out.csv", "--encoder", "one-hot", *words])
    assert encoder_parameters(options)["drop"] == dropped


@pytest.mark.parametrize(("target", "label"), [("y", "3"), ("day", 3), ("y,day", "3")])
def test_labels_to_drop_have_the_type_of_the_target(target: str, label: object) -> None:
    options = parse(["fit-transform", "in.csv", "out.csv", "--target", target, "--drop", "3"])
    given = encoder_parameters(options)
    assert (given | roles(SCHEMA, options, given).parameters)["drop"] == label


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "city+"], r"--columns: 'city\+' lacks the name of a column beside the \+"),
        (["--columns", "City,sity"], r"--columns: there is no column 'City'; did you mean 'city'\?"),
        (["--columns", "city+devise"], r"--columns: there is no column 'devise'; did you mean 'device'\?"),
        (["--columns", "('city', 'device')"], r"did you mean 'city'\?; a joint key is written shop\+city"),
        (["--columns", "qqqqqq"], r"there is no column 'qqqqqq' \(there are city, device"),
        (["--columns", ","], "no text or boolean column to encode"),
        (["--columns", "city,y"], "column 'y' is the target or weight: it cannot be encoded too"),
        (["--weight", "wieght"], "--weight: there is no column 'wieght'"),
        (["--cv", "GroupKFold(groups='shop')"], "--cv: there is no column 'shop'"),
        (["--cv", "kfolds"], "--cv: 'kfolds' is no scheme and no column; did you mean 'KFold'"),
        (["--cv", "Holdout(mask='held')"], "--cv: there is no column 'held'"),
        (["--cv", "{'city': KFold(by=['zip', 'shop'])}"], "--cv: there is no column 'shop'"),
        (["--hierarchy", '{"zip": ["zip2"]}'], r"--hierarchy: there is no column 'zip2'; did you mean 'zip"),
        (["--hierarchy", '{"zpi": Prefixes(3)}'], r"--hierarchy: there is no column 'zpi'; did you mean 'zip'\?"),
        (["--columns", "[city]"], r'--columns: text stands in quotes: write "city" \(at character 2: city\)'),
        (["--text", "sip"], r"--text: there is no column 'sip'; did you mean 'zip'\?"),
        (["--interaction-order", "2"], "--interaction-order is for --interactions"),
    ],
)
def test_refusals(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        roles_of(*words)


@pytest.mark.parametrize(("target", "message"), [("y,y", "names the column 'y' twice"), (",", "names no column")])
def test_targets_that_are_refused(target: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"--target {message}"):
        roles_of(target=target)


def test_no_column_to_encode_is_refused() -> None:
    options = parse(["fit-transform", "in.csv", "out.csv", "--target", "y"])
    with pytest.raises(UsageError, match="name the columns with --columns"):
        roles(pa.schema({"y": pa.string(), "price": pa.float64()}), options, encoder_parameters(options))
