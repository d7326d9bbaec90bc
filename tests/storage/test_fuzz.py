"""A forged file is refused in words or is a model that works: it ends no process, and takes neither time nor memory."""

import json
import os
import struct
import sys
from typing import Any

import pytest

from tests.storage.altered import archive_of, members_of
from tests.storage.fuzz import MODELS, forgeries_of, run, saved

pytestmark = [pytest.mark.host, pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")]

# One of each kind of content: joint keys, distributions, text, dates, classes, factors, votes, values of every storage.
FEW = (
    "one-hot, few",
    "pairs",
    "order statistics, text",
    "by column, ordered",
    "class dropped, orders",
    "clusters, classes, ones",
    "neighbours, rest",
    "votes, multiclass",
    "factors, both",
    "hashing, per column",
    "values decimal",
    "values time zone",
    "option several kinds",
    "option bits",
)
AT_NIGHT = [pytest.param(name, 150, marks=pytest.mark.nightly) for name in MODELS]


@pytest.mark.parametrize(("name", "number"), [*((name, 12) for name in FEW), *AT_NIGHT])
def test_a_forged_file_is_refused_or_works(name: str, number: int) -> None:
    content, rows = saved(name)
    failures = run(forgeries_of(name, content, 1), range(number), rows)
    assert not failures, "\n".join(map(str, failures))


def words_of_header(content: bytes) -> list[int]:
    """Give the positions of the numbers in an Arrow message: lengths of arrays and buffers, and positions."""
    (schema,) = struct.unpack_from("<i", content, 4)
    (batch,) = struct.unpack_from("<i", content, 12 + schema)
    return [*range(8 + schema, 16 + schema + batch, 8)]


# Text, numbers, numbers of joint categories.
@pytest.mark.parametrize("name", ["values text", "values int8", "option joint", "values bool", "values bytes"])
def test_no_number_of_an_arrays_header_is_trusted(name: str) -> None:
    content, rows = saved(name)
    members = members_of(content)
    document = json.loads(members["model.json"])["model"]
    key = document["keys"][0]
    arrays = {key["vocabularies"][0]["array"], (key["members"] or {}).get("array")} - {None}
    forged: list[tuple[str, bytes]] = []
    for array in sorted(arrays):
        for position in words_of_header(members[array]):
            for number in (1 << 31, 1 << 40, -1):
                changed = bytearray(members[array])
                struct.pack_into("<q", changed, position, number)
                forged.append((f"{number} at {position} of {array}", archive_of(members | {array: bytes(changed)})))
    failures = run(forged.__getitem__, range(len(forged)), rows)
    assert not failures, "\n".join(map(str, failures))


def test_the_fuzzer_sees_a_process_that_dies_or_never_ends_and_errors_of_others(monkeypatch: Any) -> None:
    def use(path: Any, _: Any) -> str:
        number = int(path.read_bytes())
        if number == 1:
            os._exit(3)
        while number == 3:
            pass
        return "an error" if number == 4 else ""

    monkeypatch.setattr("tests.storage.fuzz.use", use)
    ends = {one.number: one.end for one in run(lambda number: ("", str(number).encode()), range(6), None, 1.0)}
    assert ends == {1: "the process ended with 3", 3: "takes more than 1.0 seconds", 4: "an error"}
