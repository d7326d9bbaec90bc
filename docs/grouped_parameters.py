"""Extension of Griffe: parameters that share a description, such as `X, y, sample_weight`, keep types of their own.

Griffe gives all names of such a line the annotation and the default of the first one.
"""

import re
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"^Parameters\n-+\n.*?(?=\n\n\w+\n---|\Z)", re.DOTALL | re.MULTILINE)
GROUP = re.compile(r"^(\w+(?:, \w+)+)$((?:\n    .*)*)", re.MULTILINE)


def write_apart(docstring: str) -> str:
    """Give each name of a group a line of its own, with the description of all."""

    def repeat(group: re.Match[str]) -> str:
        return "\n".join(name + group[2] for name in group[1].split(", "))

    return SECTION.sub(lambda section: GROUP.sub(repeat, section[0]), docstring)


class GroupedParameters(Extension):
    """Write groups of parameters apart before docstrings are read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = write_apart(obj.docstring.value)
