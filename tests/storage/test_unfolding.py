"""Loading a model takes at most eight times the file's size, or 64 MiB, and little time: measured from outside."""

import io
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import OrdinalEncoder, Parts, Prefixes, StatisticEncoder, TargetEncoder, interactions, load
from gpu_encode.storage.archive import BoundedFile, Reader
from tests.storage.altered import archive_of, changed, members_of, stream_of

pytestmark = [pytest.mark.host, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
MEBIBYTE = 1 << 20
SLACK = 16 * MEBIBYTE
MEASURE = """
import json, sys, time
from pathlib import Path
import gpu_encode

def resident(name):
    return int(Path("/proc/self/status").read_text().split(name)[1].split()[0]) << 10

loaded = gpu_encode.load(sys.argv[1])
for path in sys.argv[2:]:
    Path("/proc/self/clear_refs").write_text("5")
    before, start = resident("VmRSS:"), time.process_time()
    try:
        gpu_encode.load(path)
        message = ""
    except ValueError as error:
        message = str(error)
    print(json.dumps([path, resident("VmHWM:") - before, time.process_time() - start, message]))
"""


def with_parameter(value: Any, **more: bytes) -> Callable[[bytes], bytes]:
    """Make a file whose encoder has a parameter that unfolds."""

    def make(content: bytes) -> bytes:
        members = members_of(changed(content, lambda document: document["parameters"].update(cv=value)))
        return archive_of(members | {f"{name}.arrow": member for name, member in more.items()})

    return make


def with_document(ending: bytes) -> Callable[[bytes], bytes]:
    """Return a function that adds the member "more" to a file's document, with the value `ending`."""

    def make(content: bytes) -> bytes:
        members = members_of(content)
        return archive_of(members | {"model.json": members["model.json"][:-1] + b',"more":' + ending + b"}"})

    return make


def compressed(kind: str, claim: int | None = None) -> bytes:
    stream = stream_of(pa.array(np.zeros(25_000_000, np.int64)), options=pa.ipc.IpcWriteOptions(compression=kind))
    # Each buffer begins with the size that it claims to have.
    return stream if claim is None else stream.replace(struct.pack("<q", 200_000_000), struct.pack("<q", claim))


def with_members(content: bytes) -> bytes:
    """Make a file whose list of members has 200,000 lines."""
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as archive:
        for number in range(200_000):
            member = zipfile.ZipInfo(f"{number}")
            member.header_offset, member.CRC = 0, 0
            archive.filelist.append(member)
            archive.NameToInfo[member.filename] = member
        archive._didModify = True  # type: ignore[attr-defined]
    return file.getvalue()


def with_values(*texts: str, lengths: Any = None) -> Callable[[bytes], bytes]:
    """Make a file of a hierarchy of two categories, with other values, or with prefixes of other lengths."""
    rule = Parts(".") if lengths is None else Prefixes(2)

    def make(_: bytes) -> bytes:
        encoder = TargetEncoder(hierarchy={0: rule}).fit([["a.b"], ["c"]] * 4, [0, 1] * 4)
        with tempfile.TemporaryDirectory() as folder:
            encoder.save(f"{folder}/model")
            members = members_of(Path(f"{folder}/model").read_bytes())
        document = json.loads(members["model.json"])["model"]
        if lengths is not None:
            document["entries"][0]["rule"]["parameters"]["lengths"] = lengths
        members["model.json"] = json.dumps(json.loads(members["model.json"]) | {"model": document}).encode()
        name = document["keys"][0]["vocabularies"][0]["array"]
        return archive_of(members | {name: stream_of(pa.array(texts, pa.large_string()))})

    return make


def with_orders(_: bytes) -> bytes:
    """Make a file whose rows have 2 ** 32 encodings."""
    with tempfile.TemporaryDirectory() as folder:
        OrdinalEncoder(order="random", n_draws=2).fit([["a"], ["b"]]).save(f"{folder}/model")
        content = Path(f"{folder}/model").read_bytes()

    def change(document: Any) -> None:
        document["model"].update(permutations=1 << 16)
        document["model"]["formulas"][0]["readout"]["parameters"].update(n_draws=1 << 16)

    return changed(content, change)


NUMBERS = {"ndarray": {"dtype": "<i8", "shape": [100_000], "array": "numbers.arrow"}}
TWICE = stream_of(pa.array(np.arange(100_000)))
LONG_TEXT = {"ndarray": {"dtype": "<U60000000", "shape": [1], "values": ["a"]}}
TWO = [0, 1] * 1_000
TOO_MUCH = "unfolds to more than 8 times its size"
HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "zstd": (with_parameter(NUMBERS, numbers=compressed("zstd")), "numbers.arrow is compressed, which no model is"),
    "lz4": (with_parameter(NUMBERS, numbers=compressed("lz4")), "numbers.arrow is compressed, which no model is"),
    "false claim": (with_parameter(NUMBERS, numbers=compressed("zstd", 1 << 40)), "numbers.arrow is compressed"),
    "empty lists": (with_document(b"[" + b"[]," * 1_500_000 + b"0]"), TOO_MUCH),
    "lists in lists": (with_document(b"[" + (b"[" * 50 + b"]" * 50 + b",") * 15_000 + b"0]"), TOO_MUCH),
    "objects": (with_document(b"[" + b'{"":0},' * 500_000 + b"0]"), TOO_MUCH),
    "texts": (with_document(b"[" + b'"ab",' * 2_000_000 + b"0]"), TOO_MUCH),
    "wide text": (with_document(b'"' + b"a" * 20_000_000 + "\U0001f600".encode() + b'"'), "model.json is not in ASCII"),
    "one array often": (with_parameter([NUMBERS] * 1_000, numbers=TWICE), TOO_MUCH),
    "long text": (with_parameter(LONG_TEXT), TOO_MUCH),
    "long scalar": (with_parameter({"scalar": ["<U60000000", "a"]}), TOO_MUCH),
    "empty array": (with_parameter({"ndarray": {"dtype": "|O", "shape": [0, 1 << 40], "values": []}}), TOO_MUCH),
    "axes": (with_parameter({"ndarray": {"dtype": "|O", "shape": [1] * 100_000, "values": [0]}}), "has 100000 axes"),
    "short list of long texts": (
        with_parameter({"ndarray": {"dtype": "<U99999", "shape": [1], "values": ["a"] * 100_000}}),
        "an array of the shape [1] has 100000 values",
    ),
    "encodings": (with_orders, TOO_MUCH),
    "deep value": (with_values("a." * 60_000, "c"), ""),
    "many prefixes": (with_values("a" * 20_000, "c", lengths={"tuple": [*range(20_000, 0, -1)]}), ""),
    "members": (with_members, "its list of members is larger than that of any model"),
}


def measure(*paths: Path) -> dict[str, tuple[int, float, str]]:
    """Load files in a separate process; give memory and seconds of each, and the messages."""
    done = subprocess.run([sys.executable, "-c", MEASURE, *map(str, paths)], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(path).name: (memory, seconds, message) for path, memory, seconds, message in lines}


def test_hostile_files(saved: Any, tmp_path: Path) -> None:
    (tmp_path / "sound").write_bytes(saved[0])
    for name, (make, _) in HOSTILE.items():
        (tmp_path / name).write_bytes(make(saved[0]))
    found = measure(tmp_path / "sound", *(tmp_path / name for name in HOSTILE))
    for name, (_, reason) in HOSTILE.items():
        memory, seconds, message = found[name]
        size = (tmp_path / name).stat().st_size
        assert reason in message, name
        assert memory < max(64 * MEBIBYTE, 8 * size) + SLACK, name
        assert seconds < 1 + size / 1e8, name


def test_large_models_and_many_encodings(tmp_path: Path) -> None:
    n = 200_000
    X = pa.table(
        {"text": [f"{number:05d}" for number in range(n)], "number": np.arange(n) * 3, "few": np.arange(n) % 7}
    )
    y = np.random.default_rng(1).normal(size=n)
    encoders = {
        "small": TargetEncoder(columns=["few"]),
        "large": TargetEncoder(columns=interactions(["text", "number", "few"], 2)),
        "many": StatisticEncoder([("quantile", share / 200) for share in range(1, 200)], columns=["text"]),
    }
    for name, encoder in encoders.items():
        encoder.partial_fit(X, y).save(tmp_path / name)
    for name, (memory, _, message) in measure(*(tmp_path / name for name in ("small", "large", "many"))).items():
        assert message == ""
        assert memory < max(64 * MEBIBYTE, 8 * (tmp_path / name).stat().st_size) + SLACK, name


def test_keys_share_a_vocabulary_of_text(tmp_path: Path) -> None:
    # With a copy for each key, the total would be far more than 8 times the size of the file's part.
    rows = pa.table(
        {"long": ["x" * 1_000 + str(number) for number in range(2_000)], **dict.fromkeys("abcdefghijkl", TWO)}
    )
    keys = [("long", column) for column in rows.column_names[1:]]
    encoder = TargetEncoder(columns=keys).fit(rows, TWO)
    encoder.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.transform(rows).equals(encoder.transform(rows))
    arrays = {id(key.vocabularies[0].values.array) for key in again._model.keys}
    assert len(arrays) == 1


def test_a_bounded_file_reads_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    with (tmp_path / "file").open("rb") as file:
        bounded = BoundedFile(file, 50)
        for given in (-1, 51, 1_000):
            with pytest.raises(ValueError, match="list of members"):
                bounded.read(given)
        assert len(bounded.read(50)) == len(bounded.read()) == 50


def test_all_of_the_memory_may_be_taken_and_not_a_byte_more(tmp_path: Path) -> None:
    TargetEncoder().fit(np.array([["a"], ["b"]] * 4), [0, 1] * 4).save(tmp_path / "model")
    with (tmp_path / "model").open("rb") as file:
        reader = Reader(file)
        reader.spend(reader._left - 1)
        assert reader.affords(1)
        assert not reader.affords(2)
        reader.spend(1)
        with pytest.raises(ValueError, match=TOO_MUCH):
            reader.spend(1)
