"""Which columns of a table a command is about."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gpu_encode.cli.choices import COLUMNS_READ, DROP_RULES, Choice, split_names
from gpu_encode.cli.messages import close_match, refuse
from gpu_encode.scale.files.formats import is_text, value_type

Key = str | tuple[str, ...]
# Options that may be given for each of several columns.
BY_COLUMN = {name: f"--{name}" for name in ("smooth", "prior", "regularization", "priors")} | {"cv": "--scheme"}


@dataclass(frozen=True)
class Roles:
    """What each column of the input is for.

    Parameters
    ----------
    targets : list of str
        Columns to learn from.
    weight : str or None
        Column of row weights.
    keys : list of str or tuple of str
        Columns to encode; a tuple is a joint key.
    chosen : bool
        Whether the keys were chosen for the user, who named none.
    values : list of str
        Columns that are summed up in place of a target.
    parameters : dict of str to object
        Those that name columns or hold their values, as the encoder takes them.
    """

    targets: list[str]
    weight: str | None
    keys: list[Key]
    chosen: bool
    values: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)


def roles(schema: pa.Schema, options: argparse.Namespace, parameters: dict[str, Any]) -> Roles:
    """Find every column that `options` name in `schema`; a name that is not there is a `UsageError`."""
    targets = [] if options.target is None else names([options.target], schema, "--target")
    weight = find_column(schema.names, options.weight, "--weight") if options.weight is not None else None
    read = [find_column(schema.names, name, option) for option, name in columns_of_schemes(parameters.get("cv"))]
    names(options.text, schema, "--text", at_least=0)
    values = [] if options.values is None else names([options.values], schema, "--values")
    hierarchy = parameters.get("hierarchy", {})
    levels = [one for group in hierarchy.values() if isinstance(group, list) for one in group]
    for name in (*hierarchy, *levels):
        find_column(schema.names, name, "--hierarchy")
    given = joint_keys(options, schema)
    taken = [*targets, weight, *read, *values]
    used = {part for key in given or () for part in ((key,) if isinstance(key, str) else key)}
    check_apart(targets + ([weight] if weight else []), values, used)
    keys = default_columns(schema, [*taken, *levels]) if given is None else given
    if not keys:
        refuse("there is no text or boolean column to encode: name the columns with --columns")
    by_column = {name: parameters[name] for name in BY_COLUMN if isinstance(parameters.get(name), dict)}
    read_by = {name: of_keys(said, keys, BY_COLUMN[name]) for name, said in by_column.items()}
    if "drop" in parameters:
        read_by["drop"] = dropped_values(parameters["drop"], keys, targets, schema)
    return Roles(targets, weight, keys, given is None, values, read_by)


def columns_of_schemes(cv: Any) -> list[tuple[str, str]]:
    """Give the columns that schemes read, each behind the option that names it.

    Examples
    --------
    >>> columns_of_schemes({"city": Choice("TimeFolds", {"time": "day"}), "shop": Choice("LeaveOneOut")})
    [('--time', 'day')]
    """
    if isinstance(cv, str):
        return [("--fold-column", cv)]
    schemes = cv.values() if isinstance(cv, dict) else [] if cv is None else [cv]
    read = [(option, one.parameters.get(name, [])) for one in schemes for name, option in COLUMNS_READ.items()]
    return [(option, name) for option, named in read for name in ([named] if isinstance(named, str) else named)]


def of_keys(values: dict[str, Any], keys: Sequence[Key], option: str) -> dict[Key, Any]:
    """Give what is said of columns, and of joint keys as a+b, by the keys of the encoder.

    Examples
    --------
    >>> of_keys({"city+device": 2.0}, ["city", ("city", "device")], "--smooth")
    {('city', 'device'): 2.0}
    """
    named = {key if isinstance(key, str) else "+".join(key): key for key in keys}
    return {named[find_column([*named], name, option)]: value for name, value in values.items()}


def dropped_values(drop: Any, keys: Sequence[Key], targets: Sequence[str], schema: pa.Schema) -> Any:
    """Give the categories, or the label, that are dropped, in the types of their columns; a rule as it is.

    Examples
    --------
    >>> dropped_values({"member+day": "true+3"}, [("member", "day")], [], pa.schema({"member": "bool", "day": "int8"}))
    {('member', 'day'): (True, 3)}
    """
    if isinstance(drop, str) and drop not in DROP_RULES and len(targets) == 1:
        return value_of(drop, targets[0], schema)
    if not isinstance(drop, dict):
        return drop
    return {key: category_of(said, key, schema) for key, said in of_keys(drop, keys, "--drop").items()}


def category_of(said: Any, key: Key, schema: pa.Schema) -> Any:
    """Give a category of a column, or of a joint key, whose values are joined as its columns are."""
    if isinstance(key, str):
        return value_of(said, key, schema)
    parts = said.split("+") if isinstance(said, str) else said
    if len(parts) != len(key):
        refuse(f"--drop {'+'.join(key)} wants {len(key)} values with + between, not {said!r}")
    return tuple(value_of(part, name, schema) for part, name in zip(parts, key, strict=True))


def value_of(said: Any, name: str, schema: pa.Schema) -> Any:
    """Read text as a value of a column."""
    if not isinstance(said, str):
        return said
    kind = value_type(schema.field(name).type)
    try:
        return pa.array([said]).cast(kind)[0].as_py()
    except pa.ArrowException:
        refuse(f"--drop: {said!r} is no value of column {name!r}, which holds {kind}")


def check_apart(aside: Sequence[str], values: Sequence[str], used: Collection[str]) -> None:
    """Refuse a column that is encoded and has another role, or has two others."""
    for name in (*aside, *values):
        if name in used:
            role = "the target or weight" if name in aside else "one of --values"
            refuse(f"column {name!r} is {role}: it cannot be encoded too")
    for name in values:
        if name in aside:
            refuse(f"column {name!r} is the target or weight: it cannot be one of --values too")


def joint_keys(options: argparse.Namespace, schema: pa.Schema) -> list[Key] | None:
    """Return what ``--columns`` and ``--interactions`` name, or None where neither is given."""
    if options.interaction_order is not None and options.interactions is None:
        refuse("--interaction-order is for --interactions")
    if options.columns is None and options.interactions is None:
        return None
    keys: list[Key] = []
    for word in names_or_words(options.columns or [], schema):
        # A column may have a plus in its own name; then that column is meant.
        parts = [word] if word in schema.names else word.split("+")
        for part in parts:
            find_column(schema.names, part, "--columns")
        keys.append(parts[0] if len(parts) == 1 else tuple(parts))
    if options.interactions is not None:
        from gpu_encode import interactions  # a mistake in the words above needs no library

        keys += interactions(
            names([options.interactions], schema, "--interactions"), order=options.interaction_order or 3
        )
    return list(dict.fromkeys(keys))


def names_or_words(words: Sequence[str], schema: pa.Schema) -> list[str]:
    """Split at commas what is not the name of a column as it stands."""
    return [piece for word in words for piece in ([word] if word in schema.names else split_names([word]))]


def names(words: Sequence[str], schema: pa.Schema, option: str, *, at_least: int = 1) -> list[str]:
    """Return the columns that a list names, each of them in `schema` and none of them twice."""
    result = [find_column(schema.names, name, option) for name in names_or_words(words, schema)]
    if len(result) < at_least:
        refuse(f"{option} names no column")
    for number, name in enumerate(result):
        if name in result[:number]:
            refuse(f"{option} names the column {name!r} twice")
    return result


def find_column(columns: Sequence[str], name: str, option: str) -> str:
    """Return `name` if it is among `columns`, or say which option names what is not there.

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
    """Return the text, dictionary and boolean columns that have no other role.

    Examples
    --------
    >>> default_columns(pa.schema({"city": pa.string(), "price": pa.float64()}), [])
    ['city']
    """
    return [field.name for field in schema if field.name not in taken and (is_text(field.type) or is_label(field.type))]


def is_label(kind: pa.DataType) -> bool:
    """Tell whether this type, other than text, is made for categories."""
    return bool(pa.types.is_dictionary(kind) or pa.types.is_boolean(kind))


def key_name(key: Key) -> str:
    """Return the name that a column or joint key has in the output.

    Examples
    --------
    >>> key_name(("city", "device"))
    'city_x_device'
    """
    return key if isinstance(key, str) else "_x_".join(key)


def text_columns(options: argparse.Namespace, parameters: dict[str, Any]) -> list[str]:
    """Return the columns of a CSV file that must not be read as numbers."""
    cut = [
        name
        for name, levels in parameters.get("hierarchy", {}).items()
        if isinstance(levels, Choice) and levels.name in ("Prefixes", "Parts")
    ]
    return [*split_names(options.text), *cut]
