"""The words that each command takes."""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from gpu_encode.cli.messages import close_match, say
from gpu_encode.cli.row_arguments import add_fit_transform, add_transform


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
