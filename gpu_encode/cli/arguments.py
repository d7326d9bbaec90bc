"""The words that each command takes."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from gpu_encode.cli.encoders import ENCODERS
from gpu_encode.cli.messages import close_match, say

FORMATS = "Parquet (.parquet, .pq), CSV (.csv, .csv.gz, .tsv, .tsv.gz) or Arrow (.feather, .arrow), told by the suffix"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Write the error on one line and leave with status 2."""
        if (wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)) is not None:
            message += close_match(wrong[1], wrong[2].replace("'", "").split(", "))
        say(f"error: {message} (see {self.prog} --help)")
        raise SystemExit(2)

    def options(self) -> list[str]:
        """Return every option of this parser, as it is written."""
        return [word for action in self._actions for word in action.option_strings]


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Turn words into options; ``options.module`` names the module that runs them.

    Examples
    --------
    >>> parse(["inspect", "fraud.model", "--top", "5"]).top
    5
    """
    parser, commands = build()
    if words[:1] == ["benchmark"]:
        # The benchmarks read their own arguments, and have their own help.
        return argparse.Namespace(command="benchmark", module="benchmark", debug=False, arguments=list(words[1:]))
    options, unknown = parser.parse_known_args(words)
    if unknown:
        word = unknown[0].split("=")[0]
        kind = "option" if word.startswith("-") else "extra argument"
        commands[options.command].error(
            f"unknown {kind} {word!r}{close_match(word, commands[options.command].options())}"
        )
    return options


def build() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of the whole command line, and those of its commands."""
    parser = Parser(
        prog="gpu-encode", allow_abbrev=False, description="Turn categories into numbers, without leaks of the target."
    )
    chosen = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    commands = {}
    for name, module, fill, line in (
        ("fit-transform", "fit_transform", add_fit_transform, "learn codes from a file of rows and write it encoded"),
        ("transform", "transform", add_transform, "encode new rows with a saved model"),
        ("inspect", "inspect_model", add_inspect, "show what a saved model holds"),
        ("doctor", "doctor", add_doctor, "show what was found on this machine and what to install for more"),
        ("demo", "demo", add_demo, "make rows, encode them, and check every scheme for leaks"),
        ("benchmark", "benchmark", add_nothing, "measure this machine: ours beside other libraries (in a checkout)"),
    ):
        command: Parser = chosen.add_parser(
            name, help=line, description=f"{line[0].upper()}{line[1:]}.", allow_abbrev=False
        )
        command.set_defaults(module=module)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error, and every warning")
        fill(command)
        commands[name] = command
    return parser, commands


def add_fit_transform(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``fit-transform``."""
    add_input(parser, "rows to learn from")
    add_output(parser)
    parser.add_argument(
        "--target", metavar="COL", help="column to learn from, for encoders that learn from one; several: a,b"
    )
    parser.add_argument("--model", metavar="MODEL", help="save the fitted encoder here, for transform and inspect")
    add_encoder(parser.add_argument_group("encoder: what a category becomes"))
    add_columns(parser.add_argument_group("columns"))
    add_scheme(parser.add_argument_group("scheme: which rows a training row may learn from"))
    add_smoothing(parser.add_argument_group("smoothing: how sums become a number (target, impact)"))
    add_treatment(parser.add_argument_group("treatment of values and output"))


def add_encoder(group: argparse._ArgumentGroup) -> None:
    """Add the choice of an encoder and its own parameters, None where not given: an encoder refuses another's."""
    group.add_argument(
        "--encoder", default="target", choices=list(ENCODERS), metavar="NAME", help=f"{', '.join(ENCODERS)} (target)"
    )
    for option, metavar, line in (
        ("--kind", "HOW", "count: count, frequency or log (count)"),
        ("--n-components", "N", "hashing: number of columns (8)"),
        ("--regularization", "R", "weight-of-evidence: rows added to each label (1); gradient: to hessians (10)"),
        ("--statistics", "A,B", ("statistic: count, sum, mean, var, std, sem, skew, min, max, median, mode, "
                                 "nunique, quantile:0.9, share:10 (mean)")),
        ("--values", "A,B", "statistic: columns of numbers to sum up in place of the target"),
        ("--parts", "A,B", "impact: impact, logit, deviation, prevalence (all but logit)"),
        ("--statistic", "HOW", "catboost: mean, borders, buckets, counter or frequency (mean)"),
        ("--priors", "P,P", "catboost: a column for each prior (0,0.5,1)"),
        ("--borders", "N|P,P", "catboost: number of borders at quantiles of the target, or the borders"),
    ):  # fmt: skip
        group.add_argument(option, metavar=metavar, help=line)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the encoder, by its name in Python; VALUE is JSON, or text as it stands: "
        'handle_infrequent=category, indicators=["missing"]; may be given several times',
    )


def add_input(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add what both commands that read rows read."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="+",
        help=f"{purpose}: {FORMATS}; several files of one format, a glob, or a folder (also of year=2024/...) are read "
        "in chunks",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add where both commands that write rows write, and how much they may hold meanwhile."""
    parser.add_argument(
        "output",
        metavar="OUTPUT",
        help="where the encoded rows go; appears whole or not at all; a folder (codes/) gets a file per input file",
    )
    group = parser.add_argument_group("more than memory")
    group.add_argument(
        "--memory-limit", metavar="SIZE", help="read and write in chunks, and take at most this much memory: 2GiB"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from what an interrupted run of the same command had finished"
    )


def add_columns(group: argparse._ArgumentGroup) -> None:
    """Add what says which columns are encoded, and what the others are for."""
    group.add_argument(
        "--columns",
        action="append",
        metavar="A,B+C",
        help="columns to encode, b+c is a joint key; all text and boolean columns unless given; the rest pass through",
    )
    group.add_argument("--interactions", metavar="A,B,C", help="encode these columns and all their joint keys")
    group.add_argument("--interaction-order", type=int, metavar="N", help="most columns in one of those keys (3)")
    group.add_argument("--weight", metavar="COL", help="column of row weights")
    group.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="A,B",
        help="columns of a CSV file to read as text: keeps the zeros of 02138",
    )
    add_missing_text(group)
    group.add_argument("--drop-missing-target", action="store_true", help="leave out rows without a target")
    kept = group.add_mutually_exclusive_group()
    kept.add_argument(
        "--keep-target",
        dest="keep_target",
        action="store_true",
        default=True,
        help="pass the target and weight columns through, last (as is usual)",
    )
    kept.add_argument(
        "--drop-target",
        dest="keep_target",
        action="store_false",
        help="leave the target and weight columns out of the output",
    )


def add_missing_text(group: argparse._ActionsContainer) -> None:
    """Add the option that both commands that read rows have."""
    group.add_argument(
        "--missing-text",
        action="append",
        default=[],
        metavar="TEXT",
        help="text that stands for a missing value, such as '?'; may be given several times. "
        "In CSV, unquoted empty cells, NA, N/A, NaN and NULL are always missing",
    )


def add_scheme(group: argparse._ArgumentGroup) -> None:
    """Add the choice of a scheme and its parameters, None where not given: a scheme refuses what is for another."""
    flag: dict[str, Any] = {"action": "store_const", "const": True}
    group.add_argument(
        "--scheme",
        choices=["kfold", "greedy", "holdout", "loo", "ordered", "time", "group"],
        help="kfold unless --groups, --fold-column or the encoder (catboost: ordered) say otherwise; greedy leaks",
    )
    group.add_argument("--folds", type=int, metavar="K", help="number of folds (5)")
    group.add_argument(
        "--order",
        choices=["random", "contiguous", "interleaved", "value", "frequency", "target"],
        metavar="HOW",
        help="k-fold: how rows fall: random, contiguous or interleaved (random); of --encoder ordinal: what codes rise "
        "with: value, frequency, target or random (value)",
    )
    group.add_argument(
        "--stratify", action="store_const", const=True, help="k-fold: same share of classes in every fold"
    )
    group.add_argument("--blow-up", action="store_const", const=True, help="k-fold: one column per fold's encoder")
    group.add_argument("--fraction", type=float, metavar="SHARE", help="holdout: share of the calibration rows (0.3)")
    group.add_argument("--groups", metavar="COL", help="column of groups that no fold may split")
    group.add_argument("--time", metavar="COL", help="time or ordered: column of times")
    group.add_argument("--gap", type=int, metavar="FOLDS", help="time: folds left out before each (0)")
    group.add_argument("--permutations", type=int, metavar="N", help="ordered: number of permutations (1)")
    group.add_argument("--no-average", **flag, help="ordered: one column per permutation")
    group.add_argument("--no-shuffle", **flag, help="ordered: rows in the order in which they stand")
    group.add_argument("--burn-in", metavar="N|SHARE", help="ordered: the first rows get no code (0)")
    group.add_argument("--fold-column", metavar="COL", help="column of your own fold numbers")
    group.add_argument("--seed", type=int, metavar="N", help="seed of folds, orders and hashes (0)")


def add_smoothing(group: argparse._ArgumentGroup) -> None:
    """Add the choice of a smoothing, a prior and hierarchies."""
    group.add_argument(
        "--smooth",
        metavar="FORMULA",
        help="auto, none, a number or m=10, sigmoid:k=20,f=10, eb:total, eb:between, james-stein, "
        "partial-pooling, glmm (target: auto; impact: partial-pooling)",
    )
    group.add_argument(
        "--prior",
        action="append",
        metavar="PRIOR",
        help="target: mean, category_mean, a number, or a number for one column: city=0.2 (mean)",
    )
    group.add_argument(
        "--hierarchy",
        action="append",
        metavar="COL=LEVELS",
        help="target: finer to coarser: zip=zip4,zip3 (columns), zip=prefix:4,3, url=parts:.,from_end, ip=bits:24,16,8",
    )


def add_treatment(group: argparse._ArgumentGroup) -> None:
    """Add how odd values are treated and what the output looks like, None where not given: defaults are encoders'."""
    for option, metavar, line in (
        ("--min-count", "N", "rarer categories count as unseen (0)"),
        ("--min-frequency", "N|SHARE", "rarer categories are infrequent"),
        ("--max-categories", "N", "most categories of a column, all others being infrequent"),
        ("--handle-unknown", "HOW", ("prior (or zero), nan, error or a number; ordinal: error or use_encoded_value; "
                                     "one-hot: error, ignore, infrequent_if_exist or warn (the first)")),
        ("--handle-missing", "HOW", "category, prior (or zero), nan or error (category)"),
    ):  # fmt: skip
        group.add_argument(option, metavar=metavar, help=line)
    group.add_argument(
        "--indicators",
        action="store_const",
        const=True,
        help="add a 0/1 column per encoded column: category unseen (missing: --set 'indicators=[\"missing\"]' instead)",
    )
    group.add_argument(
        "--drop",
        choices=["first", "if_binary"],
        help="target: leave out the first class of several; one-hot: the first category, or the first of two",
    )
    group.add_argument(
        "--target-type",
        metavar="TYPE",
        help="auto, binary, continuous or multiclass; one per target: binary,continuous (auto; statistic: continuous)",
    )
    group.add_argument("--dtype", metavar="TYPE", help="of the codes: float64, float32; ordinal, one-hot: int32, ... "
                       "(float64)")  # fmt: skip
    group.add_argument("--device", choices=["auto", "cpu", "cuda"], help="where to compute (auto)")


def add_transform(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``transform``."""
    add_input(parser, "rows to encode")
    add_output(parser)
    parser.add_argument("--model", required=True, metavar="MODEL", help="an encoder saved by fit-transform")
    add_missing_text(parser)


def add_nothing(_: argparse.ArgumentParser) -> None:
    """Add no argument: all are passed on."""


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``inspect``."""
    parser.add_argument("model", metavar="MODEL", help="an encoder saved by fit-transform")
    parser.add_argument("--column", metavar="COL", help="show this column only; a joint key as a+b")
    parser.add_argument("--top", type=natural_number, default=20, metavar="N", help="categories to show of each (20)")
    parser.add_argument("--json", action="store_true", help="for programs")


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="for programs")


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``demo``."""
    parser.add_argument("--rows", type=natural_number, default=20_000, metavar="N", help="rows to make (20000)")


def natural_number(word: str) -> int:
    """Read a whole number from 0 up.

    Examples
    --------
    >>> natural_number("20")
    20
    """
    if not word.isdecimal():
        message = f"{word!r} is not a whole number from 0 up"
        raise argparse.ArgumentTypeError(message)
    return int(word)
