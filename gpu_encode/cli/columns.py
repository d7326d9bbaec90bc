"""The columns of a table that a command uses."""

import argparse
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_encode import Parts, Prefixes
from gpu_encode.cli.expressions import CALLED, SHORT_NAMES, read
from gpu_encode.cli.messages import close_match, refuse
from gpu_encode.scale.files.formats import is_text, value_type
from gpu_encode.scale.files.text import TextRules
from gpu_encode.tables.frames.columns import index_of

Key = str | tuple[str, ...]
DROP_RULES = ("first", "if_binary")


@dataclass(frozen=True)
class Roles:
    """The role of each column of the input.

    Parameters
    ----------
    targets : list of str
        Columns to learn from.
    weight : str or None
        Column of row weights.
    keys : list of str or tuple of str
        Columns to encode; a tuple is a joint key.
    chosen : bool
        Whether the keys were chosen by default, since the user named none.
    parameters : dict of str to object
        Parameters that name columns or have a value for each column, in the form that the encoder takes.
    """

    targets: list[str]
    weight: str | None
    keys: list[Key]
    chosen: bool
    parameters: dict[str, Any]


def roles(schema: pa.Schema, options: argparse.Namespace, parameters: dict[str, Any]) -> Roles:
    """Find in `schema` every column that `options` name; an unknown name is a `UsageError`."""
    targets = [] if options.target is None else names([options.target], schema, "--target")
    weight = find_column(schema.names, options.weight, "--weight") if options.weight is not None else None
    schemes = used_by_schemes(parameters.get("cv"), schema)
    names(options.text, schema, "--text", at_least=0)
    values = names(parameters["values"], schema, "--values") if "values" in parameters else []
    hierarchy = parameters.get("hierarchy", {})
    levels = [one for group in hierarchy.values() if isinstance(group, list) for one in group]
    for name in (*hierarchy, *levels):
        find_column(schema.names, name, "--hierarchy")
    given = joint_keys(options, schema)
    taken = [*targets, weight, *schemes, *values]
    used = {part for key in given or () for part in ((key,) if isinstance(key, str) else key)}
    check_apart(targets + ([weight] if weight else []), values, used)
    keys = default_columns(schema, [*taken, *levels]) if given is None else given
    if not keys:
        refuse("there is no text or boolean column to encode: name the columns with --columns")
    read_by = {"columns": keys} | ({"values": values} if values else {})
    if isinstance(label := parameters.get("drop"), str) and label not in DROP_RULES and len(targets) == 1:
        read_by["drop"] = value_of(label, targets[0], schema)
    return Roles(targets, weight, keys, given is None, read_by)


def used_by_schemes(cv: Any, schema: pa.Schema) -> list[str]:
    """Return the columns that schemes read, each of them in `schema`."""
    if isinstance(cv, str) and cv not in schema.names:
        refuse(f"--cv: {cv!r} is no scheme and no column{close_match(cv, [*schema.names, *CALLED, *SHORT_NAMES])}")
    schemes = cv.values() if isinstance(cv, dict) else [cv]
    used = [name for one in schemes for name in ([one] if isinstance(one, str) else used_columns(one))]
    return [find_column(schema.names, name, "--cv") for name in used]


def used_columns(scheme: Any) -> list[str]:
    """Return the columns that a scheme reads; a number of folds reads none."""
    used = scheme.used_columns() if hasattr(scheme, "used_columns") else []
    return [name for name in used if isinstance(name, str)]


def value_of(said: str, name: str, schema: pa.Schema) -> Any:
    """Read text as a value of a column's type."""
    kind = value_type(schema.field(name).type)
    try:
        return pa.array([said]).cast(kind)[0].as_py()
    except pa.ArrowException:
        refuse(f"--drop: {said!r} is no value of column {name!r}, which holds {kind}")


def check_apart(aside: Sequence[str], values: Sequence[str], used: Collection[str]) -> None:
    """Refuse a column that is encoded and has another role, or that has two other roles."""
    for name in (*aside, *values):
        if name in used:
            role = "the target or weight" if name in aside else "one of --values"
            refuse(f"column {name!r} is {role}: it cannot be encoded too")
    for name in values:
        if name in aside:
            refuse(f"column {name!r} is the target or weight: it cannot be one of --values too")


def joint_keys(options: argparse.Namespace, schema: pa.Schema) -> list[Key] | None:
    """Return the keys of ``--columns`` and ``--interactions``; None if neither is given."""
    if options.interaction_order is not None and options.interactions is None:
        refuse("--interaction-order is for --interactions")
    if options.columns is None and options.interactions is None:
        return None
    keys: list[Key] = []
    for word in names_or_words(options.columns or [], schema, "--columns"):
        # A column may have a plus in its own name; then the text means that column.
        parts = [word] if word in schema.names else word.split("+") if isinstance(word, str) else list(word)
        if "" in parts:
            refuse(f"--columns: {word!r} lacks the name of a column beside the +")
        for part in parts:
            find_column(schema.names, part, "--columns")
        keys.append(parts[0] if len(parts) == 1 else tuple(parts))
    if options.interactions is not None:
        from gpu_encode import interactions  # a mistake in the text above needs no library

        keys += interactions(
            names([options.interactions], schema, "--interactions"), order=options.interaction_order or 2
        )
    return list(dict.fromkeys(keys))


def names_or_words(words: Sequence[str], schema: pa.Schema, option: str) -> list[Any]:
    """Read lists that are written as in Python; split other text at commas, unless it is the name of a column."""
    split: list[Any] = []
    for word in words:
        listed = word.startswith("[") and word not in schema.names
        split += read(word, option) if listed else [word] if word in schema.names else split_names([word])
    return split


def split_names(words: Iterable[str]) -> list[str]:
    """Split lists of names at their commas.

    Examples
    --------
    >>> split_names(["a,b", "c"])
    ['a', 'b', 'c']
    """
    return [name for word in words for name in word.split(",") if name]


def names(words: Sequence[str], schema: pa.Schema, option: str, *, at_least: int = 1) -> list[str]:
    """Return the columns that a list names, all of them in `schema` and all different."""
    result = [find_column(schema.names, name, option) for name in names_or_words(words, schema, option)]
    if len(result) < at_least:
        refuse(f"{option} names no column")
    for number, name in enumerate(result):
        if name in result[:number]:
            refuse(f"{option} names the column {name!r} twice")
    return result


def find_column(columns: Sequence[str], name: str, option: str) -> str:
    """Return `name` if it is among `columns`; otherwise raise an error that names the option.

    Examples
    --------
    >>> find_column(["city"], "city", "--columns")
    'city'
    """
    if name not in columns:
        hint = (
            close_match(name, columns)
            or f" (there are {', '.join(columns[:10])}{', ...' if len(columns) > 10 else ''})"
        )
        joined = "; a joint key is written shop+city" if name.startswith("(") else ""
        refuse(f"{option}: there is no column {name!r}{hint}{joined}")
    return name


def default_columns(schema: pa.Schema, taken: Sequence[str | None]) -> list[Key]:
    """Return the text, dictionary and boolean columns that have no other role, and are no index of pandas.

    Examples
    --------
    >>> default_columns(pa.schema({"city": pa.string(), "price": pa.float64()}), [])
    ['city']
    """
    kinds = (is_text, pa.types.is_dictionary, pa.types.is_boolean)
    others = {*taken, *index_of(schema)}
    return [field.name for field in schema if field.name not in others and any(kind(field.type) for kind in kinds)]


def key_name(key: Key) -> str:
    """Return the name that a column or joint key has in the output.

    Examples
    --------
    >>> key_name(("city", "device"))
    'city_x_device'
    """
    return key if isinstance(key, str) else "_x_".join(key)


def text_rules(options: argparse.Namespace, parameters: dict[str, Any]) -> TextRules:
    """Return the rules by which text files are read; columns of which a hierarchy takes parts are text."""
    cut = [name for name, levels in parameters.get("hierarchy", {}).items() if isinstance(levels, Prefixes | Parts)]
    return TextRules(**{**reading_options(options), "text": [*split_names(options.text), *cut]})


def reading_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that say how text files are read, under the names of Python's parameters."""
    sign = {"\\t": "\t", "tab": "\t"}.get(options.delimiter, options.delimiter)
    return {
        "missing_text": options.missing_text,
        "missing_words": options.missing_words,
        "text": split_names(options.text),
        "delimiter": sign,
        "quote": options.quote,
        "encoding": options.encoding,
    }
