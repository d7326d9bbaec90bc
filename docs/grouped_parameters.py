"""Extension of Griffe: names that share a description stand apart, types are shown as written, classes are linked.

Griffe gives all names of a line such as `X, y, sample_weight` the annotation and the default of the first one.  It
reads a type such as `"auto", float or dict` as Python, and shows `(auto, float or dict)`; so it does with errors.
Marks of references, `.. [1]` and `[1]_`, are no Markdown.
"""

import re
from typing import Any

from griffe import Extension, Object

import gpu_encode

SECTION = re.compile(r"^(?:Parameters|Raises)\n-+\n.*?(?=\n\n\w+\n---|\Z)", re.DOTALL | re.MULTILINE)
GROUP = re.compile(r"^(\w+(?:, \w+)+)$((?:\n    .*)*)", re.MULTILINE)
REFERENCE = re.compile(r"(?:\.\. )?(\[\d+\])_?")
NAME = re.compile(r"(?<![`\[])`([A-Z]\w+)`(?!`)")
NAMED = re.compile(r"(?<=\nSee Also\n--------\n)(?:.+\n?)+")
TYPE = re.compile(r"^(\w+ : )(.+?)(?=, default=|, optional$|$)", re.MULTILINE)


def write_apart(docstring: str) -> str:
    """Give each name of a group a line of its own, with the description of all."""

    def repeat(group: re.Match[str]) -> str:
        return "\n".join(name + group[2] for name in group[1].split(", "))

    return SECTION.sub(lambda section: GROUP.sub(repeat, section[0]), docstring)


def quote_types(docstring: str) -> str:
    """Write the words of types in marks that are not Python's, and lists of types so that Griffe leaves them alone.

    An invisible space after commas is no Python, either.
    """

    def quote(line: re.Match[str]) -> str:
        words = re.sub(r'"([^"]*)"', "\u201c\\1\u201d", re.sub("[{}]", "", line[2]))
        return line[1] + words.replace(", ", ", \u200b")

    return SECTION.sub(lambda section: TYPE.sub(quote, section[0]), docstring)


def link_classes(docstring: str, of: str) -> str:
    """Turn names of public classes, but for the name of the class itself, into links to their pages."""

    def link(found: re.Match[str]) -> str:
        name = found[1]
        return f"[`{name}`][gpu_encode.{name}]" if name in gpu_encode.__all__ and name != of else found[0]

    marked = NAMED.sub(lambda names: re.sub(r"^([A-Z]\w+)(?= :|$)", r"`\1`", names[0], flags=re.MULTILINE), docstring)
    return NAME.sub(link, marked)


class GroupedParameters(Extension):
    """Write groups of parameters apart, and types as they stand, before docstrings are read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            plain = REFERENCE.sub(r"\1", obj.docstring.value)
            of = obj.parent.name if obj.is_function and obj.parent else obj.name
            obj.docstring.value = link_classes(quote_types(write_apart(plain)), of)
