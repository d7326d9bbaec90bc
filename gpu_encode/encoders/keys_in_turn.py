"""`fit_transform` of a few keys at a time: rows, targets and folds are read once for all keys."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_encode.fitting.columns import locate, map_columns
from gpu_encode.fitting.fit import FitContext, encode_rows, plan_keys, read_shared, select_columns
from gpu_encode.fitting.inputs import Inputs, read_categories
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.schemes.plans import Plan
from gpu_encode.seam import devices
from gpu_encode.seam.ops import device_of
from gpu_encode.words import notices


def read_once(parameters: Parameters, inputs: Inputs) -> tuple[FitContext, list[Plan]]:
    """Read the data that all keys share, and plan who may look at whom under each key; categories are not read yet."""
    # Wrong parameters of any key raise an error before the first key is read.
    context = read_shared(parameters, inputs)
    inputs.warn_of_groups(parameters)
    columns = context.rows.columns_of(context.selection.entries, device_of(context.rows.ops) == "cpu")
    context = replace(context, rows=replace(context.rows, columns=columns), columns=columns)
    return context, plan_keys(context)


def encode_in_turn(encoder: Any, context: FitContext, plans: Sequence[Plan], n_keys: int) -> Iterator[tuple[Any, Any]]:
    """Give the training encodings of at most `n_keys` keys at a time, and an encoder that is fitted to these keys."""
    told: set[tuple[str, type[Warning]]] = set()
    n_parts = -(-len(plans) // n_keys)
    for part in range(n_parts):
        # The parts have nearly equal sizes, since a part of few keys would not be encoded together.
        numbers = range(len(plans) * part // n_parts, len(plans) * (part + 1) // n_parts)
        of_these = of_keys(encoder, context, numbers)
        with notices.kept() as messages, devices.explain_memory():
            encodings = encode_keys(of_these, context, [plans[number] for number in numbers])
        for message in messages:
            if message not in told:
                told.add(message)
                notices.warn(*message)
        yield encodings, of_these
        # The caller may have dropped these encodings; memory has no room for them and for the next ones.
        del encodings, of_these


def of_keys(encoder: Any, context: FitContext, numbers: range) -> Any:
    """Give an unfitted encoder of some of the keys; its parameters name no other keys."""
    frame, entries = context.rows.frame, context.selection.entries
    chosen = {entries[number].members for number in numbers}

    def is_chosen(key: Any) -> bool:
        named = key if isinstance(key, tuple) else (key,)
        return tuple(locate(frame, column, "columns:") for column in named) in chosen

    made, listed = copy.copy(encoder), encoder.columns
    for name in [*vars(made)]:
        if name == "_model" or name.endswith("_"):
            delattr(made, name)
    for name, value in encoder.get_params(deep=False).items():
        if isinstance(value, Mapping):
            setattr(made, name, {key: of_key for key, of_key in value.items() if is_chosen(key)})
    if not isinstance(encoder.categories, str):
        made.categories = [encoder.categories[number] for number in numbers]
    if not isinstance(listed, list):
        labels = range(frame.n_columns) if frame.names is None else frame.names
        keys = [tuple(labels[column] for column in entry.members) for entry in entries]
        listed = [key if len(key) > 1 else key[0] for key in keys]
    made.columns = [listed[number] for number in numbers]
    return made


def encode_keys(encoder: Any, context: FitContext, plans: Sequence[Plan]) -> Any:
    """Fit an encoder to rows that have been read, and give the training encodings of its keys."""
    parameters, columns = encoder._checked_parameters(), replace(context.columns, joined={})
    rows = replace(context.rows, columns=columns)
    selection = select_columns(parameters, rows.frame)
    rules = parameters.rules(selection, rows.frame)
    categories = read_categories(parameters, rows, selection.entries, rules, False, [])
    own = replace(
        context,
        parameters=parameters,
        rows=rows,
        selection=selection,
        categories=categories,
        rules=rules,
        columns=map_columns(rows.frame),
    )
    arrays, sums = encode_rows(own, plans)
    encoder._keep(own, sums)
    model = encoder._model
    return encoder._assemble(
        rows.frame, arrays, own.columns, replace(model, selection=replace(model.selection, passed=[]))
    )
