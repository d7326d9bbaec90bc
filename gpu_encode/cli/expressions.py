"""Expressions of public names, such as ``KFold(3, by="day")``, are read from the syntax tree; nothing is evaluated."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any, NoReturn

import gpu_encode
from gpu_encode.cli.messages import close_match, refuse
from gpu_encode.words.terminal import one_line

# The classes that an expression may call, with their kinds: all public schemes, smoothings and hierarchies.
CALLED = {
    name: home.rpartition(".")[2]
    for name, home in gpu_encode._HOME.items()
    if home.endswith(("schemes", "smoothing", "hierarchy"))
}
SHORT_NAMES = {"loo": "LeaveOneOut", "time": "TimeFolds", "group": "GroupKFold"}
SHORT_NAMES |= {"m": "MEstimate", "eb": "EmpiricalBayes", "prefix": "Prefixes"}
# The words of JSON for values that have other names in Python.
CONSTANTS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf")}
MARKS = re.compile(r"[\[\](){}'\"]")
NUMBER = re.compile(r"[-+]?(?!0\d)(\d+\.?\d*|\.\d+|Infinity)(e[-+]?\d+)?|NaN|true|false|null|True|False|None", re.ASCII)
MOST_CHARACTERS, MOST_LEVELS, MOST_BITS = 10_000, 8, 64
EXPECTED = "expected a number, text in quotes, True, False, None, a list, tuple or dict, or a call such as KFold(3)"


def class_named(word: str, kind: str = "") -> str | None:
    """Find the public class for a word, of one kind or of any: upper case, lower case and dashes do not matter.

    Examples
    --------
    >>> class_named("james-stein"), class_named("loo", "schemes"), class_named("loo", "smoothing")
    ('JamesStein', 'LeaveOneOut', None)
    """
    name = SHORT_NAMES.get(word, word.replace("-", "")).lower()
    return next((one for one, of in CALLED.items() if one.lower() == name and kind in ("", of)), None)


def read(text: str, option: str, seed: int | None = None) -> Any:
    """Read a value: an expression, or plain numbers and text, separated by commas.

    Examples
    --------
    >>> read("0.5,log", "--set"), read('{"shop": [20, null]}', "--set"), read("02138", "--set")
    ([0.5, 'log'], {'shop': [20, None]}, '02138')
    >>> read("Holdout(0.5)", "--cv", seed=7)
    Holdout(fraction=0.5, random_state=7)
    """
    if len(text) > MOST_CHARACTERS:
        refuse(f"{option} takes at most {MOST_CHARACTERS:,} characters, not {len(text):,}: use Python for more")
    if MARKS.search(text):
        return Expression(text, option, seed).read()
    words = [piece.strip() for piece in text.split(",")]
    # Dates, time spans and numbers with leading zeros are text.
    pieces = [Expression(word, option).read() if NUMBER.fullmatch(word) else word for word in words]
    return [piece for piece in pieces if piece != ""] if len(pieces) > 1 else pieces[0]


class Expression:
    """An expression on the command line; `seed` is the ``random_state`` of every class in it that has none."""

    def __init__(self, text: str, option: str, seed: int | None = None) -> None:
        self.text, self.option, self.seed = " ".join(text.strip().splitlines()), option, seed

    def read(self) -> Any:
        """Give the value of the expression."""
        try:
            body = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            where = "" if error.offset is None else f" (at character {error.offset})"
            refuse(f"{self.option}: {shortened(self.text)} is no expression: {error.msg}{where}; {EXPECTED}")
        except (ValueError, MemoryError, RecursionError):
            refuse(f"{self.option}: {shortened(self.text)} is no expression: too many levels, or a character of none")
        return self.value(body)

    def value(self, node: ast.expr, level: int = 0) -> Any:
        """Give the value of a node of the tree; other kinds of nodes are refused."""
        if level > MOST_LEVELS:
            self.refuse(node, f"there are more than {MOST_LEVELS} levels")
        kinds: dict[type, Callable[[Any, int], Any]] = {
            ast.Constant: self.constant,
            ast.Name: self.name,
            ast.UnaryOp: self.signed,
            ast.List: lambda many, inner: [self.value(one, inner) for one in many.elts],
            ast.Tuple: lambda many, inner: tuple(self.value(one, inner) for one in many.elts),
            ast.Dict: self.dict,
            ast.Call: self.call,
        }
        return kinds.get(type(node), self.unexpected)(node, level + 1)

    def unexpected(self, node: ast.expr, _: int = 0) -> NoReturn:
        """Refuse a node that is not a value."""
        self.refuse(node, f"{EXPECTED}, not {type(node).__name__}")

    def constant(self, node: ast.Constant, _: int) -> Any:
        """Give a number, text, True, False or None."""
        if not isinstance(node.value, bool | int | float | str | None):
            self.unexpected(node)
        if isinstance(node.value, int) and node.value.bit_length() > MOST_BITS:
            self.refuse(node, f"a whole number has more than {MOST_BITS} bits")
        return node.value

    def name(self, node: ast.Name, _: int) -> Any:
        """Give the value of a word of JSON."""
        if node.id in CALLED:
            self.refuse(node, f"{node.id} is a class: write {node.id}()")
        if node.id not in CONSTANTS:
            self.refuse(node, f'text stands in quotes: write "{node.id}"{close_match(node.id, (*CONSTANTS, *CALLED))}')
        return CONSTANTS[node.id]

    def signed(self, node: ast.UnaryOp, level: int) -> Any:
        """Give a number with its sign."""
        number = self.value(node.operand, level)
        if type(number) not in (int, float) or not isinstance(node.op, ast.USub | ast.UAdd):
            self.unexpected(node)
        return -number if isinstance(node.op, ast.USub) else number

    def dict(self, node: ast.Dict, level: int) -> dict[Any, Any]:
        """Give a dict whose keys are all different."""
        values: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self.unexpected(value)
            name = self.value(key, level)
            try:
                if name in values:
                    self.refuse(key, f"the key {name!r} is there twice")
                values[name] = self.value(value, level)
            except TypeError:
                self.refuse(key, "a key is text, a number, or a tuple of these")
        return values

    def call(self, node: ast.Call, level: int) -> Any:
        """Make an object of a public class."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in CALLED:
            self.refuse(node, f"only these are called: {', '.join(CALLED)}{close_match(name, CALLED)}")
        made_by = getattr(gpu_encode, name)
        signature = inspect.signature(made_by)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in signature.parameters:
                hint = close_match(keyword.arg or "", signature.parameters)
                self.refuse(keyword, f"{name} has no parameter {keyword.arg or '**'!r}{hint}{taken(signature)}")
            if keyword.arg in named:
                self.refuse(keyword, f"{keyword.arg} is there twice")
            named[keyword.arg] = self.value(keyword.value, level)
        given = [self.value(one, level) for one in node.args]
        if self.seed is not None and "random_state" in signature.parameters:
            named.setdefault("random_state", self.seed)
        try:
            signature.bind(*given, **named)
            return made_by(*given, **named)
        except (TypeError, ValueError) as error:
            self.refuse(node, f"{name}: {one_line(error)}{taken(signature)}")

    def refuse(self, node: ast.expr | ast.keyword, message: str) -> NoReturn:
        """Raise UsageError with the position in the expression."""
        before = self.text.encode()[: node.col_offset].decode()
        piece = ast.get_source_segment(self.text, node) or self.text
        refuse(f"{self.option}: {message} (at character {len(before) + 1}: {shortened(piece)})")


def taken(signature: inspect.Signature) -> str:
    """Describe the parameters of a class."""
    return f" (it takes {', '.join(signature.parameters) or 'nothing'})"


def shortened(text: str) -> str:
    """Give the beginning of a text."""
    return text if len(text) <= 60 else f"{text[:60]}..."
