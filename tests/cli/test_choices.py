"""The words of ``fit-transform`` become the choices that they name, or one line of help."""

import pytest

from gpu_encode.cli.arguments import parse
from gpu_encode.cli.choices import make_choices
from gpu_encode.cli.encoders import encoder_choices
from gpu_encode.cli.messages import UsageError


def choices(line: str) -> dict:
    return encoder_choices(parse(["fit-transform", "in.csv", "out.csv", "--target", "y", *line.split()]))


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("auto", "auto"),
        ("none", "None"),
        ("12.5", "12.5"),
        ("m=10", "MEstimate(m=10.0)"),
        ("sigmoid", "Sigmoid()"),
        ("sigmoid:k=20,f=10", "Sigmoid(k=20.0, f=10.0)"),
        ("eb", "EmpiricalBayes(tau='total')"),
        ("eb:between", "EmpiricalBayes(tau='between')"),
        ("eb:anova", "EmpiricalBayes(tau='anova')"),
        ("eb:anova,pooled", "EmpiricalBayes(tau='anova', pooled=True)"),
        ("eb:,pooled", "EmpiricalBayes(tau='total', pooled=True)"),
        ("james-stein", "JamesStein()"),
        ("partial-pooling", "PartialPooling()"),
        ("glmm", "GLMM()"),
    ],
)
def test_smooth(text: str, formula: str) -> None:
    assert str(choices(f"--smooth {text}")["smooth"]) == formula


@pytest.mark.parametrize(
    ("line", "scheme"),
    [
        ("", "KFold(random_state=0)"),
        ("--folds 7 --stratify --seed 3", "KFold(n_splits=7, stratify=True, random_state=3)"),
        ("--order interleaved --blow-up", "KFold(order='interleaved', blow_up=True, random_state=0)"),
        ("--folds-by order --seed 7", "KFold(by=['order'], random_state=7)"),
        ("--folds 3 --folds-by shop,day", "KFold(n_splits=3, by=['shop', 'day'], random_state=0)"),
        ("--scheme greedy", "Greedy()"),
        ("--scheme loo", "LeaveOneOut()"),
        ("--scheme holdout --fraction 0.4", "Holdout(fraction=0.4, random_state=0)"),
        (
            "--scheme holdout --mask held --new-rows all --calibration-rows nan",
            "Holdout(mask='held', new_rows='all', calibration_rows='nan', random_state=0)",
        ),
        ("--scheme time --time day --gap 1", "TimeFolds(time='day', gap=1)"),
        ("--groups shop", "GroupKFold(groups='shop', random_state=0)"),
        (
            "--scheme ordered --permutations 4 --no-average --burn-in 0.1",
            "Ordered(n_permutations=4, average=False, burn_in=0.1, random_state=0)",
        ),
        ("--scheme ordered --block auto", "Ordered(block='auto', random_state=0)"),
        ("--scheme ordered --block 64", "Ordered(block=64, random_state=0)"),
        ("--scheme ordered --no-shuffle", "Ordered(shuffle=False, random_state=0)"),
        ("--scheme ordered --time day --burn-in 12", "Ordered(time='day', burn_in=12, random_state=0)"),
        ("--scheme time --time day --half-life 7d", "TimeFolds(time='day', half_life='7d')"),
        ("--scheme time --time day --window 30", "TimeFolds(time='day', window=30)"),
        (
            "--scheme ordered --time day --half-life 0.5",
            "Ordered(time='day', half_life=0.5, random_state=0)",
        ),
        ("--scheme ordered --time day --window 12h", "Ordered(time='day', window='12h', random_state=0)"),
        ("--fold-column fold", "fold"),
    ],
)
def test_scheme(line: str, scheme: str) -> None:
    assert str(choices(line)["cv"]) == scheme


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("zip=zip4,zip3", "['zip4', 'zip3']"),
        ("zip=prefix:4,3", "Prefixes(4, 3)"),
        ("zip=parts:.,from_end", "Parts('.', from_end=True)"),
        ("zip=parts:/", "Parts('/')"),
        ("zip=bits:24,16,8", "Bits(24, 16, 8)"),
    ],
)
def test_hierarchy(text: str, levels: str) -> None:
    assert str(choices(f"--hierarchy {text}")["hierarchy"]["zip"]) == levels


@pytest.mark.parametrize(
    ("line", "prior"),
    [
        ("", "mean"),
        ("--prior category_mean", "category_mean"),
        ("--prior 0.3", 0.3),
        ("--prior city=0.2 --prior zip=1", {"city": 0.2, "zip": 1.0}),
        ("--prior city=category_mean --prior a=b=1", {"city": "category_mean", "a=b": 1.0}),
    ],
)
def test_prior(line: str, prior: object) -> None:
    assert choices(line).get("prior", "mean") == prior


@pytest.mark.parametrize(
    ("line", "smooth"),
    [
        ("--smooth m=2", "MEstimate(m=2.0)"),
        ("--smooth m=m=2", "{'m': 'MEstimate(m=2.0)'}"),
        ("--smooth city=2 --smooth zip=none", "{'city': '2.0', 'zip': 'None'}"),
        (
            "--smooth city+zip=sigmoid:k=5,f=2 --smooth zip=eb:tau=between",
            "{'city+zip': 'Sigmoid(k=5.0, f=2.0)', 'zip': \"EmpiricalBayes(tau='between')\"}",
        ),
    ],
)
def test_smoothing_by_column(line: str, smooth: str) -> None:
    chosen = choices(line)["smooth"]
    assert str({name: str(one) for name, one in chosen.items()} if isinstance(chosen, dict) else chosen) == smooth


@pytest.mark.parametrize(
    ("line", "schemes"),
    [
        ("--scheme time:time=day,half-life=7d", "TimeFolds(time='day', half_life='7d')"),
        (
            "--scheme city=loo --scheme city+zip=group:groups=2024,folds=3 --seed 7",
            "{'city': 'LeaveOneOut()', 'city+zip': \"GroupKFold(groups='2024', n_splits=3, random_state=7)\"}",
        ),
        (
            "--scheme zip=ordered:no-shuffle --scheme city=kfold:folds-by=a+b,seed=2",
            "{'zip': 'Ordered(shuffle=False, random_state=0)', 'city': \"KFold(by=['a', 'b'], random_state=2)\"}",
        ),
    ],
)
def test_scheme_by_column(line: str, schemes: str) -> None:
    chosen = choices(line)["cv"]
    assert str({name: str(one) for name, one in chosen.items()} if isinstance(chosen, dict) else chosen) == schemes


def test_made_makes_the_choices_inside_a_dict() -> None:
    class Library:
        Prefixes = staticmethod(lambda *lengths: sum(lengths))

    assert make_choices(choices("--hierarchy zip=prefix:4,3")["hierarchy"], Library) == {"zip": 7}
    assert make_choices("auto", Library) == "auto"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--smooth sigmod", r"--smooth 'sigmod' is unknown; did you mean 'sigmoid'\? \(choose from a number, auto"),
        ("--smooth 1o", "--smooth wants a number, not '1o'"),
        ("--smooth m=x", "--smooth m wants a number, not 'x'"),
        ("--smooth sigmoid:q=1", "--smooth sigmoid takes k=NUMBER, f=NUMBER, not 'q=1'"),
        ("--smooth james-stein:1", "--smooth james-stein takes no parameters, not '1'"),
        ("--smooth eb:within", "--smooth eb wants total, between or anova, "),
        ("--prior men", r"--prior 'men' is unknown; did you mean 'mean'\?"),
        ("--prior mean --prior city=1", "--prior is given once for all columns"),
        ("--prior city=x", r"--prior city 'x' is unknown \(choose from mean, category_mean or a number\)"),
        ("--smooth city=2 --smooth city=3", "--smooth gives the column 'city' twice"),
        ("--smooth 2 --smooth city=3", "--smooth is given once for all columns, or as COL=VALUE"),
        ("--smooth city=sigmod", r"--smooth 'sigmod' is unknown; did you mean 'sigmoid'\?"),
        ("--hierarchy zip", "--hierarchy 'zip' is not of the form COL=LEVELS"),
        ("--hierarchy zip=a --hierarchy zip=b", "--hierarchy gives the column 'zip' twice"),
        ("--hierarchy zip=prefix:x", "--hierarchy prefix: wants whole numbers such as prefix:16,8, not 'x'"),
        ("--hierarchy zip=parts:", "--hierarchy parts: wants a separator"),
        (
            "--encoder one-hot --drop frist",
            r"--drop 'frist' is unknown; did you mean 'first'\? \(choose from first, if",
        ),
        ("--encoder one-hot --drop first --drop city=Bonn", "--drop is given once for all columns, or as COL=VALUE"),
        ("--drop old --drop new", "--drop is given once: first, or the label of a class"),
        ("--handle-unknown erorr", r"--handle-unknown 'erorr' is unknown; did you mean 'error'\?"),
        ("--target-type binry", r"--target-type 'binry' is unknown; did you mean 'binary'\?"),
        ("--scheme tme:time=day", r"--scheme 'tme' is unknown; did you mean 'time'\?"),
        ("--scheme city=lo", r"--scheme 'lo' is unknown; did you mean 'loo'\? \(choose from greedy, kfold"),
        ("--scheme city=loo --folds 3", "--folds is for one scheme of all columns: say it behind that of a column"),
        ("--scheme city=loo:folds=3", "--scheme loo takes no options, not 'folds=3'"),
        ("--scheme city=ordered:burn=3", "--scheme ordered takes permutations=..., time=..., no-average, burn-in=..."),
        ("--scheme city=kfold:stratify=1", "--scheme kfold takes folds=..., folds-by=..., order=..., stratify"),
        ("--scheme city=time:folds=3", "--scheme time needs --time COL .*--scheme city=time:time=COL"),
        ("--scheme loo --scheme kfold", "--scheme is given once for all columns, or as COL=VALUE"),
        ("--gap 1", "--gap is for --scheme time, not kfold"),
        ("--half-life 7d", "--half-life is for --scheme ordered or time, not kfold"),
        ("--scheme loo --window 30", "--window is for --scheme ordered or time, not loo"),
        ("--scheme loo --folds 3", "--folds is for --scheme kfold or time or group, not loo"),
        ("--scheme time", "--scheme time needs --time COL"),
        ("--scheme group", "--scheme group needs --groups COL"),
        ("--time day", "--time is for --scheme ordered or time, not kfold"),
        ("--no-average", "--no-average is for --scheme ordered, not kfold"),
        ("--fold-column fold --folds 3", "--fold-column brings the folds: leave out --folds"),
        ("--fold-column fold --scheme loo", "--fold-column brings the folds: leave out --scheme"),
        ("--scheme ordered --burn-in few", "--burn-in wants a number, not 'few'"),
    ],
)
def test_refusals(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choices(line)
