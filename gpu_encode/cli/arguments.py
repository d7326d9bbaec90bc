"""The words that each command takes."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from gpu_encode.cli.choices import SCHEMES
from gpu_encode.cli.encoders import ENCODERS
from gpu_encode.cli.export import DIALECTS, FORMATS
from gpu_encode.cli.messages import close_match, say

INPUT = (
    "Parquet (.parquet, .pq), CSV (.csv, .csv.gz, .tsv, .tsv.gz) or Arrow (.feather, .arrow), told by the suffix; "
    "several files of one format, a glob, or a folder (also of year=2024/...) are read in chunks; or URLs (s3://...)"
)
OUTPUT = "where the encoded rows go; appears whole or not at all; a folder (encoded/) gets a file per input file"


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


# An option, what stands behind it (a word for it, the words allowed, or nothing), what it does, and further settings
# of argparse.
Option = tuple[Any, ...]

WHOLE_NUMBER: dict[str, Any] = {"type": int}
SEVERAL_TIMES: dict[str, Any] = {"action": "append"}
LIST: dict[str, Any] = {"action": "append", "default": []}

MEMORY: list[Option] = [
    ("--memory-limit", "SIZE", "read and write in chunks, and take at most this much memory: 2GiB"),
    ("--overwrite", None, "replace the output, and the model, that are there already, at the end"),
    ("--resume", None, "go on from what an interrupted run of the same command had finished"),
]
TABLES: Option = (
    "--tables", ["auto", "memory", "disk"],
    "where the categories are: on disk where they have no room in memory (auto); MODEL is then a folder",
)  # fmt: skip
MISSING_TEXT: Option = (
    "--missing-text", "TEXT", ("text that stands for a missing value, such as '?'; may be given several times. "
    "In CSV, unquoted empty cells, NA, N/A, NaN and NULL are always missing"), LIST,
)  # fmt: skip
JSON: Option = ("--json", None, "for programs")
TARGET: list[Option] = [
    ("--keep-target", None, "pass the target and weight columns through, last (as is usual)",
     {"dest": "keep_target", "default": True}),
    ("--drop-target", None, "leave the target and weight columns out of the output",
     {"dest": "keep_target", "const": False}),
]  # fmt: skip

# What is not given stays None: the defaults are those of the encoders, and each refuses what is for another.
FIT_TRANSFORM: dict[str, list[Option]] = {
    "": [
        ("--target", "COL", "column to learn from, for encoders that learn from one; several: a,b"),
        ("--model", "MODEL", "save the fitted encoder here, for transform and inspect"),
    ],
    "more than memory": [*MEMORY, TABLES],
    "encoder: what a category becomes": [
        ("--encoder", list(ENCODERS), "target unless given", {"default": "target"}),
        ("--kind", "HOW", "count: count, frequency or log (count)"),
        ("--n-components", "N", "hashing: number of columns (8)"),
        ("--regularization", "R", ("weight-of-evidence: rows added to each label (1), or for each column: city=2, "
         "shop+city=0; gradient: to hessians (10)"), SEVERAL_TIMES),
        ("--statistics", "A,B", ("statistic: count, sum, mean, var, std, sem, skew, min, max, median, mode, "
         "nunique, quantile:0.9, share:10; of text count, nunique, mode; of dates these, min, max, first, last, "
         "seconds_since_last (mean)")),
        ("--values", "A,B", "statistic: columns of numbers, text or dates that it is of, in place of the target"),
        ("--parts", "A,B", "impact: impact, logit, deviation, prevalence (all but logit)"),
        ("--statistic", "HOW", "catboost: mean, borders, buckets, counter or frequency (mean)"),
        ("--priors", "P,P", "catboost: a column for each prior (0,0.5,1); or for each column: city=0,0.5",
         SEVERAL_TIMES),
        ("--borders", "N|P,P", "catboost: number of borders at quantiles of the target, or the borders"),
        ("--set", "NAME=VALUE", ("any other parameter of the encoder, by its name in Python; VALUE is JSON, or text as "
         'it stands: handle_infrequent=category, indicators=["missing"]; may be given several times'), LIST),
    ],
    "columns": [
        ("--columns", "A,B+C", ("columns to encode, b+c is a joint key; all text and boolean columns unless given; the "
         "rest pass through"), SEVERAL_TIMES),
        ("--interactions", "A,B,C", "encode these columns and all their joint keys"),
        ("--interaction-order", "N", "most columns in one of those keys (3)", WHOLE_NUMBER),
        ("--weight", "COL", "column of row weights"),
        ("--text", "A,B", "columns of a CSV file to read as text: keeps the zeros of 02138", LIST),
        MISSING_TEXT,
        ("--missing-target", ["error", "keep"], ("keep: rows without a target are encoded, and their categories known, "
         "but nothing is learned from them (error)")),
        ("--drop-missing-target", None, "leave out rows without a target"),
    ],
    "scheme: which rows a training row may learn from": [
        ("--scheme", "NAME", (f"{', '.join(SCHEMES)}; or one for each of several columns, the options below behind it: "
         "city=loo, shop+city=group:groups=region,folds=3 (kfold unless --groups, --fold-column or the encoder, as "
         "catboost: ordered, say otherwise; greedy leaks)"), SEVERAL_TIMES),
        ("--folds", "K", "number of folds (5)", WHOLE_NUMBER),
        ("--folds-by", "A,B", ("k-fold: columns whose values say which fold a row is in: rows of equal values stay "
         "together, in whatever order or part they come"), LIST),
        ("--order", ["random", "contiguous", "interleaved", "value", "frequency", "target"], ("k-fold: how rows fall: "
         "one of the first three (random); of --encoder ordinal: what its numbers rise with: one of the last three, "
         "or random (value)")),
        ("--stratify", None, "k-fold: same share of classes in every fold"),
        ("--blow-up", None, "k-fold: one column per fold's encoder"),
        ("--fraction", "SHARE", "holdout: share of the calibration rows (0.3)", {"type": float}),
        ("--mask", "COL", "holdout: column of 0 and 1, where 1 are the calibration rows"),
        ("--new-rows", ["calibration", "all"], "holdout: the rows that new rows learn from (calibration)"),
        ("--calibration-rows", ["other", "nan"], ("holdout: the calibration rows learn from the other rows, or get no "
         "encoding (other)")),
        ("--groups", "COL", ("column of groups that no fold may split; leak-report takes it beside any "
         "scheme, and says whether folds do")),
        ("--time", "COL", "time or ordered: column of times"),
        ("--gap", "FOLDS", "time: folds left out before each (0)", WHOLE_NUMBER),
        ("--half-life", "SPAN", "time or ordered: in which a row loses half its weight: 30 (of numbers), 7d, 12h"),
        ("--window", "SPAN", "time or ordered: rows that are older are not seen: 30 (of numbers), 7d, 12h"),
        ("--permutations", "N", "ordered: number of permutations (1)", WHOLE_NUMBER),
        ("--no-average", None, "ordered: one column per permutation", {"dest": "average", "const": False}),
        ("--no-shuffle", None, "ordered: rows in the order in which they stand", {"dest": "shuffle", "const": False}),
        ("--block", "N|auto", "ordered: consecutive rows that stay together (1)"),
        ("--burn-in", "N|SHARE", "ordered: the first rows get no encoding (0)"),
        ("--fold-column", "COL", "column of your own fold numbers"),
        ("--seed", "N", "seed of folds, orders and hashes (0)", WHOLE_NUMBER),
    ],
    "smoothing: how sums become a number (target, impact)": [
        ("--smooth", "RULE", ("auto, none, a number or m=10, sigmoid:k=20,f=10, eb:total, eb:between, "
         "eb:anova,pooled, james-stein, partial-pooling, glmm; or one for each of several columns: city=m=10, "
         "shop+city=none (target: auto; impact: partial-pooling)"), SEVERAL_TIMES),
        ("--prior", "PRIOR", "target: mean, category_mean or a number; or one for each column: city=0.2 (mean)",
         SEVERAL_TIMES),
        ("--hierarchy", "COL=LEVELS", ("target: finer to coarser: zip=zip4,zip3 (columns), zip=prefix:4,3, "
         "url=parts:.,from_end, ip=bits:24,16,8"), SEVERAL_TIMES),
    ],
    "treatment of values and output": [
        ("--min-count", "N", "categories of fewer rows count as unseen (0)"),
        ("--min-frequency", "N|SHARE", "categories of fewer rows are infrequent"),
        ("--max-categories", "N", "most categories of a column, all others being infrequent"),
        ("--handle-unknown", "HOW", ("prior (or zero), nan, error or a number, or city=nan,zip=0.5 for some columns; "
         "ordinal: error or use_encoded_value; "
         "one-hot: error, ignore, infrequent_if_exist or warn (the first)")),
        ("--handle-missing", "HOW", "category, prior (or zero), nan or error (category)"),
        ("--indicators", None, ("add a 0/1 column per encoded column: category unseen (missing: "
         "--set 'indicators=[\"missing\"]' instead)")),
        ("--drop", "WHAT", ("target: first, or the label of a class, of several classes; one-hot: first (category), "
         "if_binary (the first of two), or a category of each of some columns: city=Bonn, city+day=Bonn+3"),
         SEVERAL_TIMES),
        ("--target-type", "TYPE", ("auto, binary, continuous or multiclass; one per target: binary,continuous (auto; "
         "statistic: continuous)")),
        ("--dtype", "TYPE", "of the output: float64, float32; ordinal, one-hot: int32, ... (float64)"),
        ("--device", ["auto", "cpu", "cuda"], "where to compute (auto)"),
    ],
}  # fmt: skip
TRANSFORM: dict[str, list[Option]] = {
    "": [("--model", "MODEL", "an encoder saved by fit-transform", {"required": True}), MISSING_TEXT],
    "more than memory": MEMORY,
}
INSPECT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        ("--column", "COL", "show this column only; a joint key as a+b"),
        ("--top", "N", "categories to show of each (20)", {"type": natural_number, "default": 20}),
        JSON,
    ]
}
LEAK_REPORT: dict[str, list[Option]] = {
    "": [
        ("input", "INPUT", INPUT, {"nargs": "+"}),
        ("--target", "COL", "column to learn from", {"required": True}),
        ("--html", "FILE", "write the report here as one page"),
        ("--overwrite", None, "replace a page that is there already"),
        JSON,
        ("--rows", "N", ("try it out on so many rows, drawn and left in their order; no others are kept in memory "
         "(20000)"), {"type": natural_number, "default": 20_000}),
        ("--shuffles", "N", "fits to shuffled targets (10)", {"type": natural_number, "default": 10}),
        ("--flips", "N", "fits with the target of one row another (20)", {"type": natural_number, "default": 20}),
    ],
    **{title: options for title, options in FIT_TRANSFORM.items() if title not in ("", "more than memory")},
}  # fmt: skip
EXPORT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        ("output", "OUTPUT", "the file to write, of Arrow the folder; appears whole or not at all"),
        ("--to", list(FORMATS), "what to write", {"required": True}),
        ("--min-count", "N", "leave out categories of fewer rows: their rows are encoded as those of unseen ones (0)",
         {"type": float, "default": 0.0}),
        ("--hash-key-file", "FILE", ("hashes stand in place of values, by the key that this file's bytes are: 16 of "
         "them or more; new rows have to hold the same hashes (gpu_encode.serve.export.hash_values)")),
        ("--overwrite", None, "replace the output that is there already"),
    ],
    "onnx": [
        ("--types", "A=float64,B=str", "types of inputs, where they are to be others than those of fit", LIST),
        ("--matrix", None, "one input of all columns, instead of one for each"),
        ("--missing-text", "TEXT", "the text that stands for a missing value; otherwise none does"),
        ("--drop-passed", None, "leave columns that pass through out"),
    ],
    "sql": [
        ("--dialect", list(DIALECTS), "whose SQL (duckdb)"),
        ("--table", "TABLE", "the table that is encoded, as the dialect writes it: sales.orders"),
        ("--keep", "A,B", "columns that stand first in the result: an id, since SQL promises no order of rows", LIST),
        ("--category-tables", "NAME", ("create tables of categories, whose names begin so, before the query; otherwise "
         "the query holds them all")),
    ],
}  # fmt: skip
DRIFT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        ("input", "INPUT", INPUT, {"nargs": "+"}),
        MISSING_TEXT,
        MEMORY[0],
        JSON,
    ]
}
DEMO: dict[str, list[Option]] = {
    "": [("--rows", "N", "rows to make (20000)", {"type": natural_number, "default": 20_000})]
}

# Name of a command, its module, what it does, an example, and its options by group.
COMMANDS: tuple[tuple[str, str, str, str, dict[str, list[Option]]], ...] = (
    ("fit-transform", "fit_transform", "learn encodings from a file of rows and write it encoded",
     "orders.parquet encoded.parquet --target returned --columns shop,shop+city --model shops.model", FIT_TRANSFORM),
    ("transform", "transform", "encode new rows with a saved model",
     "new_orders.csv new_encoded.csv --model shops.model", TRANSFORM),
    ("leak-report", "leak_report", "try an encoder out on a file of rows, and tell whether it leaks the target",
     "orders.parquet --target returned --columns shop --scheme loo --html report.html", LEAK_REPORT),
    ("inspect", "inspect_model", "show what a saved model holds", "shops.model --column shop+city --json", INSPECT),
    ("export", "export", "write a saved model for a system without Python",
     "shops.model shops.sql --to sql --dialect postgres --table orders --keep id", EXPORT),
    ("drift", "drift", "compare new rows with those that a saved model has learned from",
     "shops.model new_orders.parquet --json", DRIFT),
    ("doctor", "doctor", "show what was found on this machine and what to install for more", "--json", {"": [JSON]}),
    ("warm-up", "warm_up", "compile everything now, so that no later process does: for images of containers", "", {}),
    ("demo", "demo", "make rows, encode them, and check every scheme for leaks", "--rows 50000", DEMO),
    ("benchmark", "benchmark", "measure this machine: ours beside other libraries (in a checkout, by its own options)",
     "--rows 1e6 --works mean,folds --keys int --contenders ours,sklearn,polars --out measured", {}),
)  # fmt: skip


class Versions(argparse.Action):
    """Says which versions are at work, and ends."""

    def __call__(self, *_: object) -> NoReturn:
        """Write the line; what it takes is loaded here."""
        from gpu_encode.cli.doctor import versions_at_work

        sys.stdout.write(versions_at_work() + "\n")
        raise SystemExit(0)


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
        # The benchmarks read their own arguments, and have their own help behind the one here.
        rest = [word for word in words[1:] if word != "--debug"]
        return argparse.Namespace(command="benchmark", module="benchmark", debug=False, arguments=rest)
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
        prog="gpu-encode",
        allow_abbrev=False,
        description="Turn categories into numbers, without leaks of the target.",
        epilog="python -m gpu_encode.accel script.py serves scikit-learn's encoders of a script as it is.",
    )
    parser.add_argument("--version", nargs=0, action=Versions, help="show the versions and the backend at work")
    chosen = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    commands = {}
    for name, module, line, example, groups in COMMANDS:
        command: Parser = chosen.add_parser(
            name,
            help=line,
            description=f"{line[0].upper()}{line[1:]}.",
            epilog=f"example:\n  gpu-encode {name} {example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_argument("--debug", action="store_true", help="show the traceback of an error, and every warning")
        if "more than memory" in groups:
            command.add_argument("input", metavar="INPUT", nargs="+", help=INPUT)
            command.add_argument("output", metavar="OUTPUT", help=OUTPUT)
        for title, options in groups.items():
            group: argparse._ActionsContainer = command.add_argument_group(title) if title else command
            for option in options:
                add(group, *option)
            if title == "columns" and "more than memory" in groups:
                either = group.add_mutually_exclusive_group()
                for option in TARGET:
                    add(either, *option)
        command.set_defaults(module=module)
        commands[name] = command
    return parser, commands


def add(
    group: argparse._ActionsContainer,
    option: str,
    value: str | list[str] | None,
    line: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Add an option of the tables above to a command, or to a group of its options."""
    kind: dict[str, Any] = {"metavar": value}
    if value is None:
        kind = {"action": "store_const", "const": True}
    elif isinstance(value, list):
        kind = {"choices": value}
    group.add_argument(option, help=line, **kind | dict(settings))
