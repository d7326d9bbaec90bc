"""The commands of the command line, with their arguments and options."""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

from gpu_encode.cli.encoders import ENCODERS, Given, setting
from gpu_encode.cli.messages import close_match, say

INPUT = (
    "Parquet (.parquet, .pq), CSV (.csv, .csv.gz, .tsv, .tsv.gz) or Arrow (.feather, .arrow), told by the suffix; "
    "several files of one format, a glob, or a folder (also of year=2024/...) are read in chunks; or URLs (s3://...)"
)


def natural_number(word: str) -> int:
    """Read a whole number from 0 up.

    Examples
    --------
    >>> natural_number("20"), natural_number("1e9"), natural_number("1_000_000")
    (20, 1000000000, 1000000)
    """
    if match := re.fullmatch(r"(\d{1,3})e(\d{1,2})", word, re.ASCII):
        return int(match[1]) * 10 ** int(match[2])
    if not re.fullmatch(r"\d+(_\d+)*", word, re.ASCII):
        message = f"{word!r} is not a whole number from 0 up"
        raise argparse.ArgumentTypeError(message)
    return int(word)


# An option: its name, its value (a placeholder, the allowed words, or nothing), its help, and further settings of
# argparse.
Option = tuple[Any, ...]

WHOLE_NUMBER: dict[str, Any] = {"type": int}
SEVERAL_TIMES: dict[str, Any] = {"action": "append"}
LIST: dict[str, Any] = {"action": "append", "default": []}
# An option for the parameter with the same name, as an expression.
PARAMETER: dict[str, Any] = {"action": "append", "dest": "given", "default": []}

FILES: list[Option] = [
    ("input", "INPUT", INPUT, {"nargs": "+"}),
    ("output", "OUTPUT", "where the encoded rows go; appears when it is complete; a folder gets a file per input file"),
]
MEMORY: list[Option] = [
    ("--memory-limit", "SIZE", "read and write in chunks, and use at most this much memory: 2GiB"),
    ("--overwrite", None, "replace an existing output and model, at the end"),
    ("--resume", None, "continue an interrupted run of the same command"),
]
TABLES: Option = (
    "--tables", ["auto", "memory", "disk"],
    "where categories are kept: on disk if they do not fit in memory (auto); MODEL is then a folder",
)  # fmt: skip
TEXT_FILES: list[Option] = [
    ("--text", "A,B", "columns of CSV files, or of folders, to read as text: keeps the zeros of 02138, and NA", LIST),
    ("--missing-text", "TEXT", ("text that stands for a missing value in any file, such as '?'; may be given several "
     "times"), LIST),
    ("--missing-words", "WORD", ("words that stand for a missing value in a CSV file, in place of those of pandas (NA, "
     "N/A, NaN, null, None, ...); may be given several times; an empty cell is missing"),
     {"action": "append", "default": None}),
    ("--delimiter", "SIGN", "between the cells of a CSV file, such as ';' (a comma; in .tsv a tab)"),
    ("--quote", "SIGN", "around the cells of a CSV file; '' for none (a double quote)"),
    ("--encoding", "NAME", "of a CSV file: latin-1, utf-16, ... (utf-8, or what a byte-order mark says)"),
]  # fmt: skip
JSON: Option = ("--json", None, "for programs")

# Options that are not given stay None: the encoders have the defaults, and refuse options of other encoders.
FIT_TRANSFORM: dict[str, list[Option]] = {
    "": [
        *FILES,
        ("--target", "COL", "column to learn from, for encoders that learn from one; several: a,b"),
        ("--model", "MODEL", "save the fitted encoder here, for transform and inspect"),
        ("--keep-target", None, "pass the target and weight columns through, last (the default)", {"default": True}),
        ("--drop-target", None, "leave the target and weight columns out of the output",
         {"dest": "keep_target", "const": False}),
    ],
    "more than memory": [*MEMORY, TABLES],
    "encoder: what a category becomes": [
        ("--encoder", list(ENCODERS), "target unless given", {"default": "target"}),
        ("--kind", "HOW", "count: count, frequency or log (count)", PARAMETER),
        ("--order", "HOW", "ordinal: the order of the numbers: value, frequency, target or random (value)", PARAMETER),
        ("--n-components", "N", "hashing: number of columns (8)", PARAMETER),
        ("--regularization", "R", "weight-of-evidence: rows added to each label (1); gradient: to hessians (10)",
         PARAMETER),
        ("--statistics", "A,B", ("statistic: count, sum, mean, var, std, sem, skew, kurt, min, max, median, mode, "
         "nunique, or '[\"mean\", (\"quantile\", 0.9), (\"share\", 10)]'; of text count, nunique, mode; of dates "
         "these, min, max, first, last, seconds_since_last (mean)"), PARAMETER),
        ("--values", "A,B", "statistic: use these columns (numbers, text or dates) instead of the target",
         PARAMETER),
        ("--parts", "A,B", "impact: impact, logit, deviation, prevalence (all but logit)", PARAMETER),
        ("--statistic", "HOW", "catboost: mean, borders, buckets, counter or frequency (mean)", PARAMETER),
        ("--priors", "P,P", "catboost: a column for each prior (0,0.5,1)", PARAMETER),
        ("--borders", "N|P,P", "catboost: number of borders at quantiles of the target, or the borders", PARAMETER),
        ("--set", "NAME=EXPR", ("any other parameter of the encoder, by its name in Python: scale=log, "
         "'indicators=[\"missing\"]'; may be given several times"),
         {"dest": "given", "action": "append", "default": [], "type": setting}),
    ],
    "columns": [
        ("--columns", "A,B+C", ("columns to encode, b+c is a joint key; all text and boolean columns unless given; the "
         "rest pass through"), SEVERAL_TIMES),
        ("--interactions", "A,B,C", "encode these columns and all their joint keys"),
        ("--interaction-order", "N", "most columns in one of those keys (2)", WHOLE_NUMBER),
        ("--weight", "COL", "column of row weights"),
        ("--missing-target", "HOW", ("error; or keep: rows without a target are encoded, and categories known, but "
         "nothing is learned from them (error)"), PARAMETER),
        ("--drop-missing-target", None, "leave out rows without a target"),
    ],
    "how text files are read": TEXT_FILES,
    "learning: which rows a training row may learn from, and how sums become a number": [
        ("--cv", "SCHEME", ("a number of folds; kfold, holdout, loo, ordered, greedy (which leaks); the column of your "
         "own fold numbers; or 'GroupKFold(3, groups=\"region\")', 'TimeFolds(time=\"day\", half_life=\"7d\")' (5; "
         "catboost: ordered)"), PARAMETER),
        ("--smooth", "RULE", ("auto, none, a number of rows, sigmoid, james-stein, partial-pooling, glmm; or "
         "'Sigmoid(k=20, f=10)', 'EmpiricalBayes(\"anova\", pooled=True)' (target: auto; impact: partial-pooling)"),
         PARAMETER),
        ("--prior", "PRIOR", "target: mean, category_mean or a number (mean)", PARAMETER),
        ("--hierarchy", "LEVELS", ("target: from fine to coarse: '{\"zip\": [\"zip4\", \"zip3\"], "
         "\"key\": Prefixes(4, 3), \"url\": Parts(\".\", from_end=True), \"ip\": Bits(24, 16, 8)}'"), PARAMETER),
        ("--seed", "N", "seed of folds, orders and hashes (0)", WHOLE_NUMBER),
    ],
    "treatment of values and output": [
        ("--min-count", "N", "categories of fewer rows count as unseen (0)", PARAMETER),
        ("--min-frequency", "N|SHARE", "categories of fewer rows are infrequent", PARAMETER),
        ("--max-categories", "N", "most categories of a column, all others being infrequent", PARAMETER),
        ("--handle-unknown", "HOW", ("prior (or zero), nan, error or a number; ordinal: error or use_encoded_value; "
         "one-hot: error, ignore, infrequent_if_exist or warn (the first)"), PARAMETER),
        ("--handle-missing", "HOW", "category, prior (or zero), nan or error (category)", PARAMETER),
        ("--indicators", None, ("add a 0/1 column per encoded column: whether its category is unseen (missing: "
         "--set 'indicators=[\"missing\"]' instead)"),
         {"dest": "given", "action": "append_const", "const": Given("--indicators", "indicators", "True")}),
        ("--drop", "WHAT", ("target: first, or the label of a class, of several classes; one-hot: first (category), "
         "if_binary (the first of two), or a category of each of some columns: '{\"city\": \"Bonn\"}'"), PARAMETER),
        ("--target-type", "TYPE", ("auto, binary, continuous or multiclass; one per target: binary,continuous (auto; "
         "statistic: continuous)"), PARAMETER),
        ("--dtype", "TYPE", "of the output: float64, float32; ordinal, one-hot: int32, ... (float64)", PARAMETER),
        ("--device", "WHERE", "where to compute: auto, cpu or cuda (auto)", PARAMETER),
    ],
}  # fmt: skip
# What `--help` shows of a command with more options than a screen has lines.
COMMON = (
    "-h", "--help-all", "--target", "--model", "--columns", "--interactions", "--encoder", "--cv", "--smooth",
    "--weight", "--memory-limit", "--overwrite", "--resume", "--html", "--json", "--rows", "--groups",
    "--device-memory",
)  # fmt: skip
# Options with one value for all columns also accept a dict with a value for each column.
BY_COLUMN = """one value for all columns, or one for each (cv, smooth, prior, regularization, priors, handle-unknown):
  --smooth '{"shop": 20, ("shop", "city"): Sigmoid(20, 10)}'
Any parameter takes an expression in the words of Python: numbers, text in quotes, lists, tuples, dicts, calls of the
schemes, smoothings and hierarchies that gpu_encode makes public.
"""
TRANSFORM: dict[str, list[Option]] = {
    "": [*FILES, ("--model", "MODEL", "an encoder saved by fit-transform", {"required": True})],
    "how text files are read": TEXT_FILES,
    "more than memory": MEMORY,
}
INSPECT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        ("--column", "COL", "show this column only; a joint key as a+b"),
        ("--top", "N", "categories to show of each column (20)", {"type": natural_number, "default": 20}),
        JSON,
    ]
}
LEAK_REPORT: dict[str, list[Option]] = {
    "": [
        FILES[0],
        ("--target", "COL", "column to learn from", {"required": True}),
        ("--html", "FILE", "write the report here as one page"),
        ("--overwrite", None, "replace a page that is there already"),
        JSON,
        ("--rows", "N", ("use this many rows, drawn at random and kept in their order; no others are held in memory "
         "(20000)"), {"type": natural_number, "default": 20_000}),
        ("--shuffles", "N", "fits to shuffled targets (10)", {"type": natural_number, "default": 10}),
        ("--groups", "COL", "also say whether folds of any scheme split these groups"),
        ("--flips", "N", "fits with the target of one row changed (20)", {"type": natural_number, "default": 20}),
    ],
    **{title: options for title, options in FIT_TRANSFORM.items() if title not in ("", "more than memory")},
}  # fmt: skip
PLAN: dict[str, list[Option]] = {
    "": [
        FILES[0],
        ("--target", "COL", "column to learn from, for encoders that learn from one"),
        ("--rows", "N", "plan for this many rows, with the values of these files (all rows of the files)",
         {"type": natural_number}),
        ("--device-memory", "SIZE", "free memory of a GPU, which need not be there: 80GiB (what is free here)"),
        JSON,
    ],
    **{title: options for title, options in FIT_TRANSFORM.items() if title not in ("", "more than memory")},
}  # fmt: skip
DIALECTS = ["duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"]
EXPORT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        ("output", "OUTPUT", "the file to write; of Arrow, and with --tables, the folder; appears whole or not at all"),
        ("--to", ["arrow", "json", "onnx", "sql"], "what to write", {"required": True}),
        ("--min-count", "N", "leave out categories with fewer rows: their rows are encoded like unseen values (0)",
         {"type": float, "default": 0.0}),
        ("--hash-key-file", "FILE", ("replace values by hashes, whose key is the bytes of this file, 16 or more; "
         "new rows have to hold the same hashes (gpu_encode.export.hash_values)")),
        ("--overwrite", None, "replace the output that is there already"),
    ],
    "onnx": [
        ("--types", "A=float64,B=str", "types of inputs that differ from those at fit", LIST),
        ("--matrix", None, "one input of all columns, instead of one for each"),
        ("--missing-text", "TEXT", "the text that means a missing value; by default there is none"),
    ],
    "onnx or sql": [("--drop-passed", None, "leave out the columns that pass through: rows need not have them")],
    "sql": [
        ("--dialect", DIALECTS, "whose SQL (duckdb)"),
        ("--table", "TABLE", "the table that is encoded, as the dialect writes it: sales.orders"),
        ("--keep", "A,B", "columns that come first in the result, such as an id: SQL promises no order of rows", LIST),
        ("--category-tables", "NAME", ("create tables of categories, whose names begin with NAME, before the query; "
          "otherwise the query holds all categories")),
        ("--tables", ["parquet", "csv"], ("write the categories to files in the folder OUTPUT, beside encode.sql, "
         "which loads them; NAME is that of the folder unless --category-tables gives one")),
        ("--tables-at", "URL", "where the database finds these files: s3://models/shops (OUTPUT, as it is given)"),
    ],
}  # fmt: skip
DRIFT: dict[str, list[Option]] = {
    "": [
        ("model", "MODEL", "an encoder saved by fit-transform"),
        FILES[0],
        MEMORY[0],
        JSON,
        ("--fail-if", "CONDITION", ("exit with status 1 if a column meets it: 'unknown>0.05', 'missing>1%%', "
         "'shop+city:psi>2*psi_by_chance'; may be given several times"), {"action": "append", "default": []}),
    ],
    "how text files are read": TEXT_FILES,
}  # fmt: skip
DEMO: dict[str, list[Option]] = {
    "": [("--rows", "N", "rows to make (20000)", {"type": natural_number, "default": 20_000})]
}

# Name of a command, its module, what it does, an example, and its options by group.
COMMANDS: tuple[tuple[str, str, str, str, dict[str, list[Option]]], ...] = (
    ("fit-transform", "fit_transform", "learn encodings from a file of rows and write it encoded",
     "orders.parquet encoded.parquet --target returned --columns shop,shop+city --model shops.model", FIT_TRANSFORM),
    ("transform", "transform", "encode new rows with a saved model",
     "new_orders.csv new_encoded.csv --model shops.model", TRANSFORM),
    ("leak-report", "leak_report", "try an encoder on a file of rows, and say whether it leaks the target",
     "orders.parquet --target returned --columns shop --cv loo --html report.html", LEAK_REPORT),
    ("plan", "plan", "tell how much memory fit-transform takes at most, before anything is encoded",
     "orders.parquet --target returned --interactions shop,city,day --device-memory 80GiB", PLAN),
    ("inspect", "inspect_model", "show what a saved model holds", "shops.model --column shop+city --json", INSPECT),
    ("export", "export", "write a saved model for a system without Python",
     "shops.model shops.sql --to sql --dialect postgres --table orders --keep id", EXPORT),
    ("drift", "drift", "compare new rows with the training rows of a saved model",
     "shops.model new_orders.parquet --fail-if 'unknown>5%'", DRIFT),
    ("doctor", "doctor", "show what was found on this machine and what to install for more", "--json", {"": [JSON]}),
    ("warm-up", "warm_up", "compile everything now, so that no later process has to: for container images", "", {}),
    ("demo", "demo", "make rows, encode them, and check every scheme for leaks", "--rows 50000", DEMO),
    ("benchmark", "benchmark", "measure this library and others on this machine (in a checkout, with its own options)",
     "--rows 1e6 --works mean,folds --keys int --contenders ours,sklearn,polars --out measured", {}),
)  # fmt: skip


class Versions(argparse.Action):
    """Prints the versions in use, and ends."""

    def __call__(self, *_: object) -> NoReturn:
        """Print the line; the modules that it needs are loaded here."""
        from gpu_encode.cli.doctor import versions_at_work

        sys.stdout.write(versions_at_work() + "\n")
        raise SystemExit(0)


class ShortHelp(argparse.Action):
    """Prints the help without the options that are rarely used, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Hide these options, and name the option that shows them."""
        hidden = [one for one in parser._actions if one.option_strings and one.option_strings[0] not in COMMON]
        for one in hidden:
            one.help = argparse.SUPPRESS
        positional = " ".join(
            parser._get_formatter()._format_args(one, one.dest) for one in parser._get_positional_actions()
        )
        parser.usage = f"%(prog)s [OPTIONS] {positional}"
        parser.epilog = f"{parser.prog} --help-all tells {len(hidden)} more options.\n\n{parser.epilog}"
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def __init__(self, *positional: Any, **options: Any) -> None:
        super().__init__(*positional, **options)
        # Python 3.15 names the nearest choice by itself, and `error` does so in all versions.
        self.suggest_on_error = False

    def error(self, message: str) -> NoReturn:
        """Write the error on one line and leave with status 2."""
        if (wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)) is not None:
            message += close_match(wrong[1], wrong[2].replace("'", "").split(", "))
        say(f"error: {message} (see {self.prog} --help)")
        raise SystemExit(2)

    def options(self) -> list[str]:
        """Return every option of this parser, as it is written."""
        return [word for one in self._actions for word in one.option_strings]


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
        epilog="python -m gpu_encode.accel script.py runs a script, and serves the scikit-learn encoders in it.",
    )
    parser.add_argument("--version", nargs=0, action=Versions, help="show the versions and the backend at work")
    chosen = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    commands = {}
    for name, module, line, example, groups in COMMANDS:
        learns = "columns" in groups
        command: Parser = chosen.add_parser(
            name,
            help=line,
            description=f"{line[0].upper()}{line[1:]}.",
            epilog=f"{BY_COLUMN if learns else ''}example:\n  gpu-encode {name} {example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=not learns,
        )
        if learns:
            command.add_argument("-h", "--help", nargs=0, action=ShortHelp, help="show the options that are used most")
        command.add_argument("--help-all", action="help", help="show all options" if learns else argparse.SUPPRESS)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error, and every warning")
        for title, options in groups.items():
            group: argparse._ActionsContainer = command.add_argument_group(title) if title else command
            for option in options:
                add(group, *option)
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
    if settings is PARAMETER:
        kind["type"] = partial(Given, option, option.strip("-").replace("-", "_"))
    group.add_argument(option, help=line, **kind | dict(settings))
