"""Forged model files, drawn at random: whole archives whose document, arrays or members are not what `save` wrote."""

import copy
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tests.storage.altered import Members, archive_of, members_of, stream_of

# Numbers that are sizes, positions or counts somewhere, and the limits of types.
NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 8, 64, 255, 256, 1_000, 65_535, 65_536, 10**6, 10**9),
    *(side + step for side in (2**31, 2**32, 2**53, 2**63, 2**64, -(2**31), -(2**63)) for step in (-1, 0, 1)),
    2**200,
]
JUNK = [
    *(None, True, False, 0.5, -0.0, 1e308, -1e-308, "", "x", "values", "\x1b[2J", "\u0000", "\ud800", "x" * 5_000),
    *([], [0], [None], [[]], {}, {"": None}, {"float": "nan"}, {"float": "-inf"}, {"float": "1e400"}, {"tuple": []}),
    {"class": "Greedy", "parameters": {}},
    {"decimal": "1e999999999"},
    {"timedelta": 10**30},
    {"datetime": "9999-12-31T23:59:59+00:00"},
    {"dtype": "<M8[ns]"},
    {"scalar": ["<M8[ns]", -(2**63)]},
    {"ndarray": {"dtype": "|O", "shape": [2], "values": [1, "a"]}},
    {"dict": [[1, 2], [None, {"tuple": [1]}]]},
    {"of_pandas": ["interval", "interval[float64]", "x"]},
    {"of_pandas": ["period", "period[Q-DEC]", 2**63 - 1]},
    {"type": "float64"},
    {"bytes": "00ff"},
]
DTYPES = ["|b1", "|i1", "<i4", ">i8", "<u8", "<f4", "<f8", ">f2", "<M8[ns]", "<M8[99Y]", "<m8[D]", "<U3", "|S2", "|O"]
TYPES = [pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.bool_(), pa.large_string(), pa.large_binary(), pa.int8()]
NESTING = (20, 200, 900)
Forgery = tuple[str, bytes]


def forge(content: bytes, chosen: random.Random) -> Forgery:
    """Draw one to three changes of a model file; give them in words, with the forged file."""
    members = members_of(content)
    said = []
    for _ in range(chosen.choice([1, 1, 1, 2, 3])):
        name = chosen.choice(["model.json", chosen.choice(sorted(members))])
        changes: list[Callable[[Members, str, random.Random], str]] = [change_member, swap_members]
        changes += [change_document] * 8 if name == "model.json" else [change_header, change_numbers, change_numbers]
        said.append(chosen.choice(changes)(members, name, chosen))
    if chosen.random() < 0.03:
        said.append("bytes of the archive")
        return "; ".join(said), change_bytes(archive_of(members), chosen)
    return "; ".join(said), archive_of(members)


def change_bytes(content: bytes, chosen: random.Random) -> bytes:
    """Cut, lengthen or flip some bytes, or write a number over some."""
    kind = chosen.randrange(4)
    position = chosen.randrange(len(content) + 1)
    if kind == 0:
        return content[:position]
    if kind == 1:
        return content[:position] + bytes(chosen.choice([1, 8, 64, 5_000])) + content[position:]
    changed = bytearray(content)
    for _ in range(chosen.randrange(1, 5) if content else 0):
        at = chosen.randrange(len(content))
        if kind == 2:
            changed[at] ^= 1 << chosen.randrange(8)
        else:
            form, number = chosen.choice(["<B", "<H", "<I", "<Q"]), chosen.choice(NUMBERS)
            size = struct.calcsize(form)
            at -= at % size
            changed[at : at + size] = struct.pack(form, number % (1 << 8 * size))
    return bytes(changed)


def change_member(members: Members, name: str, chosen: random.Random) -> str:
    """Change the bytes of a member, whatever they are."""
    members[name] = change_bytes(members[name], chosen)
    return f"bytes of {name}"


def swap_members(members: Members, name: str, chosen: random.Random) -> str:
    """Give two members the content of one another, or one of them that of both."""
    other = chosen.choice(sorted(members))
    members[name], members[other] = members[other], chosen.choice([members[name], members[other]])
    return f"{name} and {other} swapped"


def change_header(members: Members, name: str, chosen: random.Random) -> str:
    """Write a number over one of an Arrow message: lengths of arrays, positions and lengths of buffers."""
    content = bytearray(members[name])
    end = max(16, min(len(content), 600))
    at = chosen.randrange(0, end - 8, 4)
    number, before = chosen.choice(NUMBERS), struct.unpack_from("<q", content, at)[0]
    number = chosen.choice([number, before + chosen.choice([-8, -1, 1, 8, 64]), 2 * before])
    form, size = chosen.choice([("<I", 4), ("<Q", 8)])
    content[at : at + size] = struct.pack(form, number % (1 << 8 * size))
    members[name] = bytes(content)
    return f"{number} at byte {at} of {name}"


def change_numbers(members: Members, name: str, chosen: random.Random) -> str:
    """Change values, length or type of an Arrow array."""
    try:
        with pa.ipc.open_stream(members[name]) as stream:
            values = stream.read_next_batch().column(0).to_pylist()
    except (pa.ArrowException, StopIteration, OSError, IndexError, UnicodeDecodeError):
        return change_member(members, name, chosen)
    kind = chosen.randrange(6)
    if kind == 0 or not values:
        values += [chosen.choice([*NUMBERS, 0.5, "x", b"x", None])]
    elif kind == 1:
        del values[chosen.randrange(len(values)) :]
    elif kind == 2:
        chosen.shuffle(values)
    else:
        for _ in range(chosen.randrange(1, 4)):
            old = values[at := chosen.randrange(len(values))]
            values[at] = neighbour(old, chosen)
    for type_ in (pa.infer_type([value for value in values if value is not None][:1]), *chosen.sample(TYPES, 3)):
        try:
            stored = type_ if kind else chosen.choice(TYPES)
            stored = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(stored, stored)
            members[name] = stream_of(pa.array(values, stored))
            break
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
    return f"values of {name}"


def neighbour(old: Any, chosen: random.Random) -> Any:
    """Give another value, often of the same type."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return chosen.choice([old + 1, old - 1, -old, 2 * old, chosen.choice(NUMBERS)])
    if isinstance(old, float):
        return chosen.choice([old + 1, -old, np.nextafter(old, 9).item(), float("nan"), float("inf"), 1e308, 5e-324])
    if isinstance(old, str):
        return chosen.choice([old + "x", old[1:], "", old.upper(), "é" * 3, "\U0001f600", "x" * 5_000, "i12", "f0x1p5"])
    if isinstance(old, bytes):
        return chosen.choice([old + b"x", b"", b"\xff\xfe"])
    return chosen.choice([*NUMBERS, *JUNK])


def slots_of(document: Any) -> list[tuple[Any, Any]]:
    """Give each container of a JSON document with each of its keys or indices."""
    found, left = [], [document]
    while left:
        container = left.pop()
        if isinstance(container, dict | list):
            keys = list(container) if isinstance(container, dict) else range(len(container))
            found += [(container, key) for key in keys]
            left += [container[key] for key in keys]
    return found


def change_document(members: Members, name: str, chosen: random.Random) -> str:
    """Change a value of the document: another one, a neighbour, one of elsewhere; remove, double or nest it."""
    try:
        document = json.loads(members[name])
    except (ValueError, RecursionError):
        return change_member(members, name, chosen)
    if not (slots := slots_of(document)):
        return "nothing"
    container, key = chosen.choice(slots)
    old = container[key]
    new: Any = "nothing"
    try:
        if chosen.random() < 0.1:
            del container[key]
        else:
            # What an earlier change has nested may be too deep to be copied.
            container[key] = new = another(old, slots, chosen)
        members[name] = json.dumps(document).encode()
    except (ValueError, RecursionError):
        return "nothing"
    return f"{key} of the document: {str(new)[:60]} for {str(old)[:40]}"


def another(old: Any, slots: list[tuple[Any, Any]], chosen: random.Random) -> Any:
    """Give what takes the place of a value of a document."""
    of_elsewhere = [container[key] for container, key in chosen.choices(slots, k=8)]
    texts = [value for value in of_elsewhere if isinstance(value, str)]
    ways: list[Callable[[], Any]] = [
        lambda: chosen.choice(NUMBERS),
        lambda: copy.deepcopy(chosen.choice(JUNK)),
        lambda: copy.deepcopy(of_elsewhere[0]),
        lambda: neighbour(old, chosen),
    ]
    if isinstance(old, list):
        ways += [
            lambda: old + copy.deepcopy(old) * chosen.choice([1, 1, 50]),
            lambda: chosen.sample(old, len(old)),
        ]
    if isinstance(old, str):
        ways.append(lambda: chosen.choice([*DTYPES, *texts]))
    if chosen.random() < 0.03:
        ways = [lambda: nested(old, chosen.choice(NESTING), chosen)]
    return chosen.choice(ways)()


def nested(value: Any, depth: int, chosen: random.Random) -> Any:
    """Wrap a value many times."""
    kind = chosen.randrange(3)
    for _ in range(depth):
        value = ([value], {"tuple": [value]}, {"dict": [[1, value]]})[kind]
    return value
