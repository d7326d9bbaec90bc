"""Expressions of public names are read as in Python, and everything else is refused."""

import shlex

import pytest

import gpu_encode
from gpu_encode.cli.arguments import parse
from gpu_encode.cli.encoders import encoder_parameters
from gpu_encode.cli.expressions import CALLED, MOST_LEVELS, class_named, read
from gpu_encode.cli.messages import UsageError
from gpu_encode.formulas.smoothing import NoSmoothing, Smoothing
from gpu_encode.schemes.plans import Scheme
from gpu_encode.tables.categories.hierarchy import Derived


def parameters(line: str) -> dict:
    words = ["fit-transform", "in.csv", "out.csv", "--target", "y", *shlex.split(line)]
    return encoder_parameters(parse(words))


def test_every_public_scheme_smoothing_and_hierarchy_can_be_called_and_nothing_else() -> None:
    public = {name: getattr(gpu_encode, name) for name in gpu_encode.__all__}
    classes = {name: one for name, one in public.items() if isinstance(one, type)}
    expected = {name for name, one in classes.items() if issubclass(one, Scheme | Smoothing | Derived)}
    assert set(CALLED) == expected
    assert not issubclass(NoSmoothing, tuple(classes.values()))
    for name in CALLED:
        assert class_named(name.lower()) == name


@pytest.mark.parametrize(
    "text",
    [
        "(5)", "[]", "{}", "()", "(1,)", '""', "[True, False, None]", "[-1.5e-3, +2, - -1]", "'a\"b'", '"\\u00e9"',
        '{"shop": 20, ("shop", "city"): (1, [2, {3: "x"}])}', "[18446744073709551615, 1e999]",
        '{1: 2, 1.5: "x"}', '"a" "b"', "[\n 1,\n 2]",
    ],
)  # fmt: skip
def test_literals_are_those_of_python(text: str) -> None:
    value, expected = read(text, "--set"), eval(text, {})
    assert value == expected
    assert repr(value) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}()" for name in CALLED if name != "TimeFolds"),
        'TimeFolds(4, time="day", half_life="7d")', 'KFold(3, by=["shop", "day"], random_state=4)', "Prefixes(4, 3)",
        'Parts(".", from_end=True)', "Bits(24, 16, width=64)", '{"shop": 20, ("shop", "city"): Sigmoid(k=2, f=10)}',
        '[Holdout(0.4, mask="held"), (Ordered(burn_in=0.1),)]', 'EmpiricalBayes("anova", pooled=True)',
    ],
)  # fmt: skip
def test_calls_are_those_of_python(text: str) -> None:
    expected = eval(text, {name: getattr(gpu_encode, name) for name in CALLED})
    assert repr(read(text, "--cv")) == repr(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("auto", "auto"), ("5", 5), ("-2.5", -2.5), ("1e3", 1000.0), (".5", 0.5), ("02138", "02138"), ("7d", "7d"),
        ("2024-01-01", "2024-01-01"), ("0", 0), ("True", True), ("null", None), ("none", "none"), ("nan", "nan"),
        ("mean,std", ["mean", "std"]), ("0, 0.5", [0, 0.5]), ("a,", ["a"]), ("1+1", "1+1"),
        ("-Infinity", -float("inf")),
        ("a.b", "a.b"), ("", ""), ("[1, null, true, Infinity]", [1, None, True, float("inf")]), ("1_0", "1_0"),
    ],
)  # fmt: skip
def test_words_without_quotes(text: str, value: object) -> None:
    assert repr(read(text, "--set")) == repr(value)


def test_the_seed_is_that_of_schemes_that_name_none() -> None:
    made = read('{"a": KFold(), "b": Ordered(random_state=1), "c": LeaveOneOut()}', "--cv", seed=7)
    assert (made["a"].random_state, made["b"].random_state) == (7, 1)


@pytest.mark.parametrize(
    "text",
    [
        '__import__("os").system("true")', 'getattr(KFold(), "fit")', "KFold().__class__", "KFold.__init__(3)",
        "().__class__.__bases__", "[one for one in (1, 2)]", "{one for one in ()}", "{1: 2 for _ in ()}",
        "(lambda: 1)()",
        "(yield)", "(await x)", "(x := 1)", '"a" % ()', '"a".format(1)', "[1][0]", "[1, 2][0:1]", "[*[1]]", "{**{}}",
        "KFold(*[3])", 'KFold(**{"n_splits": 3})', "(1 if 1 else 2)", "(1 < 2)", "(1 and 2)", "(not 1)", "(~1)",
        "(2 ** 9)", 'f"{1}"', 'f"{KFold()}"', 'b"a"', "(1j)", "[...]", "{1, 2}", "load('x.model')", "tune()",
        "TargetEncoder()", "exec('1')", "eval('1')", "open('x')", "KFold()()", "(KFold)(3)(4)", "[KFold]", "[__name__]",
        "[nan]", "[city]", "{[1]: 2}", "{KFold(): 1, {}: 2}", '{"a": 1, "a": 2}', "{1: 1, True: 2}",
        "KFold(n_splits=3, n_splits=4)", "KFold(3, n_splits=4)", "KFold(3, 4)", "KFold(n_splts=3)", "TimeFolds()",
        "Prefixes(width=3)", "Parts(1, 2, 3)", "MergeableStatistic()", "Statistic()", "NoSmoothing()", "Scheme()",
        "import os; (1)", "(1); (2)", "x = (1)", "(1", "1)", "'", '"\0"', "(\ud800)", "#(1)", "(# 1)", "('a' 'b' c)",
        "[18446744073709551616]", "-18446744073709551616", "9" * 5000, f"({'9' * 5000})", f"[0x{'f' * 4000}]",
        "[" * (MOST_LEVELS + 2) + "]" * (MOST_LEVELS + 2), "[" * 5000, "(" * 300 + ")" * 300, "-" * 5000 + "(1)",
        "[" + "-" * 9000 + "1]", "(" + "not " * 2400 + "1)", "(" + "1+" * 4900 + "1)", "(a" + ".a" * 4900 + ")",
        "f" + "()" * 4900, '{"a":' * 1900, "(" + "lambda:" * 1400 + "1)", "KFold(" * 1600, 'f"{' * 3000, "[0]" * 3000,
        "('" + "a" * 10_000 + "')", "(1 if 1 else " * 700, "KFold(KFold(" * (MOST_LEVELS + 1),
    ],
)  # fmt: skip
def test_attacks_and_mistakes_are_one_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[object] = []
    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "open"):
            patched.setattr(f"builtins.{name}", lambda *given, **_: run.append(given))
        with pytest.raises(UsageError) as refusal:
            read(text, "--cv")
    assert run == []
    said = str(refusal.value)
    assert said.startswith("--cv")
    assert len(said) < 450
    assert "\n" not in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--cv 'KFolds(3)'", "Sigmoid; did you mean 'KFold'? (at character 1: KFolds(3))"),
        ("--cv '{\"é\": KFold(3), \"a\": KFold(n_splts=3)}'",
         "order, stratify, blow_up, random_state) (at character 28: n_splts=3)"),
        ("--cv 'KFold(n_splts=3)'", "--cv: KFold has no parameter 'n_splts'; did you mean 'n_splits'? (it takes"),
        ("--cv 'TimeFolds()'", "--cv: TimeFolds: missing a required argument: 'time' (it takes n_splits, time, gap"),
        ("--cv time", "--cv time needs the name of a column: --cv 'TimeFolds(time=\"COL\")'"),
        ("--cv group", "--cv group needs the name of a column: --cv 'GroupKFold(groups=\"COL\")'"),
        ("--cv '[KFold]'", "--cv: KFold is a class: write KFold() (at character 2: KFold)"),
        ("--smooth '{shop: 2}'", '--smooth: text stands in quotes: write "shop" (at character 2: shop)'),
        ("--smooth '{\"a\": nul}'", "write \"nul\"; did you mean 'null'?"),
        ("--smooth '{\"a\": 2'", "--smooth: {\"a\": 2 is no expression: '{' was never closed (at character 1)"),
        ("--smooth '(2 + 3)'", "or a call such as KFold(3), not BinOp (at character 2: 2 + 3)"),
        ("--smooth '{\"a\": 1, \"a\": 2}'", "--smooth: the key 'a' is there twice (at character 10: \"a\")"),
        ("--smooth sigmod", "--smooth 'sigmod' is unknown; did you mean 'Sigmoid'? (a number, auto, none, GLMM"),
        ("--smooth 2 --smooth 3", "--smooth: smooth is given already by --smooth; give it once"),
        ("--smooth 2 --set smooth=3", "--set: smooth is given already by --smooth; give it once"),
        ("--encoder count --cv 3", "--cv is for --encoder catboost or cluster or gradient or"),
        ("--smooth shop=20", "--smooth: 'shop=20' is no expression, such as '{\"shop\": 20}' or 'Sigmoid(k=20, f=10)'"),
        ("--cv group:groups=region", "--cv: 'group:groups=region' is no expression"),
        ("--hierarchy zip=prefix:4,3", "--hierarchy: 'zip=prefix:4,3' is no expression"),
        ("--set prior=city=0.2", "--set: 'city=0.2' is no expression"),
        ("--order value", "--order is for --encoder ordinal, not target"),
    ],
)  # fmt: skip
def test_refusals(line: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parameters(line)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("--cv 5", "cv", "5"),
        ("--cv loo", "cv", "LeaveOneOut()"),
        ("--cv leave-one-out", "cv", "LeaveOneOut()"),
        ("--cv ordered --seed 3", "cv", "Ordered(random_state=3)"),
        ("--cv fold", "cv", "'fold'"),
        ("--cv '\"loo\"'", "cv", "'loo'"),
        ("--smooth none", "smooth", "None"),
        ("--encoder impact --smooth none", "smooth", "0.0"),
        ("--smooth eb", "smooth", "EmpiricalBayes()"),
        ("--smooth james-stein", "smooth", "JamesStein()"),
        ("--smooth 12.5", "smooth", "12.5"),
        ("--prior category_mean", "prior", "'category_mean'"),
        ("--set prior=0.3", "prior", "0.3"),
        ("--target-type binary,continuous", "target_type", "['binary', 'continuous']"),
        ("--drop 02138", "drop", "'02138'"),
        ("--drop 'a=b(1)'", "drop", "'a=b(1)'"),
        ("--encoder statistic --statistics mean", "statistics", "['mean']"),
        ("--encoder statistic --statistics '[(\"quantile\", 0.9)]'", "statistics", "[('quantile', 0.9)]"),
        ("--encoder catboost --priors 0.5", "priors", "[0.5]"),
        ("--encoder catboost --priors '{\"a\": [0.5]}'", "priors", "{'a': [0.5]}"),
        ("--encoder catboost --borders 2.5,", "borders", "[2.5]"),
    ],
)  # fmt: skip
def test_parameters(line: str, name: str, value: str) -> None:
    assert repr(parameters(line)[name]) == value
