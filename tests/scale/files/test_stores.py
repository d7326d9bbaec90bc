"""Files in stores that fsspec reaches have the bytes of local files, and appear complete or not at all."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpu_encode import KFold, Ordered, TargetEncoder, encode_dataset, load, transform_dataset
from gpu_encode.cli import main
from gpu_encode.scale.files import encoding
from gpu_encode.scale.files.source import open_source
from gpu_encode.scale.files.staging import RECORD
from gpu_encode.scale.files.stores import Store
from gpu_encode.scale.files.writing import RowWriter
from tests.scale.files.encoded import encode, names_in, read_rows

fsspec = pytest.importorskip("fsspec")
pytestmark = pytest.mark.host


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty store in memory; the work folder is a folder of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    yield memory
    memory.store.clear()


def files_below(place: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of the files below a folder, by the part of the path after it."""
    if place.is_file():
        return {"": place.read_bytes()}
    return {f"/{path.relative_to(place).as_posix()}": path.read_bytes() for path in place.rglob("*") if path.is_file()}


def keys_below(store: Any, place: str) -> dict[str, bytes]:
    """Return the bytes of the keys that begin with a path, by the rest of the key."""
    return {key.removeprefix(place): store.cat_file(key) for key in store.find("/") if key.startswith(place)}


def put(store: Any, folder: Path, place: str) -> None:
    for name, content in files_below(folder).items():
        store.pipe_file(f"{place}{name}", content)


def codes() -> Any:
    return TargetEncoder(columns=["city"], cv=KFold(3))


@pytest.mark.parametrize(("output", "cv"), [("codes", KFold(3)), ("codes.parquet", Ordered()), ("codes.csv.gz", 3)])
def test_the_bytes_of_local_files(tmp_path: Path, partitioned: Path, store: Any, output: str, cv: Any) -> None:
    put(store, partitioned, "/in")
    encode(partitioned, tmp_path / output, TargetEncoder(columns=["city"], cv=cv), "price", chunk_rows=90)
    encode("memory://in", f"memory://out/{output}", TargetEncoder(columns=["city"], cv=cv), "price", chunk_rows=90)
    assert keys_below(store, "/out/") == {
        f"{output}{name}": each for name, each in files_below(tmp_path / output).items()
    }
    assert names_in(tmp_path / f"gpu-encode-{os.getuid()}") == []


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".tsv.gz"])
def test_every_way_to_name_files(tmp_path: Path, orders: pa.Table, store: Any, suffix: str) -> None:
    table = orders.select(["city", "price"])
    (tmp_path / "in").mkdir()
    for number in range(3):
        with RowWriter(tmp_path / "in" / f"{number}{suffix}", table.schema) as writer:
            writer.write(table.slice(150 * number, 150))
    put(store, tmp_path / "in", "/deep/in")
    store.pipe_file("/deep/in/_SUCCESS", b"")
    store.pipe_file(f"/deep/in/.hidden/x{suffix}", b"")
    expected = read_rows(tmp_path / "in")
    listed = [f"memory://deep/in/{number}{suffix}" for number in range(3)]
    places = ("memory://deep/in", "memory://deep/in/", "MEMORY://deep/in", f"Memory://deep/*/*{suffix}")
    for source in (*places, listed, tuple(listed), [listed[0], listed[1].upper()[:6] + listed[1][6:], listed[2]]):
        assert read_rows(source).equals(expected)
    assert read_rows(listed[1]).equals(read_rows(tmp_path / "in" / f"1{suffix}"))


def test_new_rows_and_the_command(tmp_path: Path, orders: pa.Table, rows: Path, store: Any) -> None:
    store.pipe_file("/rows.parquet", rows.read_bytes())
    words = "fit-transform memory://rows.parquet memory://codes.parquet --target price --columns city --model"
    assert main([*words.split(), str(tmp_path / "model")]) == 0
    encoder = load(tmp_path / "model")
    transform_dataset("memory://rows.parquet", "memory://new.arrow", encoder)
    assert read_rows("memory://new.arrow")["city"].equals(encoder.transform(orders.drop_columns("price"))["city"])
    assert len(read_rows("memory://codes.parquet")) == len(orders)


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ("memory://absent", "memory://x.parquet", "there is no file or folder 'memory://absent'"),
        (["memory://absent.csv"], "memory://x.parquet", "cannot read 'memory://absent.csv': there is no such file"),
        ("memory://in/*.csv", "memory://x.parquet", "as a glob it matches nothing"),
        (["memory://in/a.parquet"] * 2, "memory://x.parquet", "lists 'memory://in/a.parquet' twice"),
        (
            ["memory://in/a.parquet", "memory:///in/a.parquet"],
            "memory://x.parquet",
            "lists 'memory:///in/a.parquet' twice",
        ),
        (
            ["memory://in/a.parquet", "Memory://in/a.parquet"],
            "memory://x.parquet",
            "lists 'memory://in/a.parquet' twice",
        ),
        (
            ["memory://in/a.parquet", "http://127.0.0.1/a.parquet"],
            "memory://x.parquet",
            "lists 'memory://in/a.parquet' and 'http://127.0.0.1/a.parquet' of another store",
        ),
        ("simplecache::memory://in", "memory://x.parquet", "'simplecache::memory://in' is a chain of URLs"),
        ("zip://a.csv::memory://a.zip", "memory://x.parquet", "is a chain of URLs.*Give a single URL, or, as source"),
        ("memory://in", "simplecache::memory://x.parquet", "'simplecache::memory://x.parquet' is a chain of URLs"),
        (["memory://in/a.parquet", "b.parquet"], "memory://x.parquet", "and also 'b.parquet', which is not a URL"),
        ("memory://in/a.xlsx", "memory://x.parquet", "'memory://in/a.xlsx': no known format"),
        ("memory://broken.parquet", "memory://x.parquet", "cannot read 'memory://broken.parquet'"),
        ("unheard://x", "memory://x.parquet", "cannot reach 'unheard://x': Protocol not known"),
        ("file:///x.parquet", "memory://x.parquet", "'file:///x.parquet' is on this machine: give its path"),
        ("memory://delta", "memory://x.parquet", r"is a Delta table.*Give deltalake.DeltaTable\('memory://delta'\)"),
        ("memory://in", "memory://in", "'memory://in' is, or holds, a file of the source"),
        ("memory://in/a.parquet", "memory://in/a.parquet", "is, or holds, a file of the source"),
        ("memory://in", "memory://in/b.parquet", "'memory://in/b.parquet' is in the source folder 'memory://in'"),
        ("memory://in", "MEMORY://old.parquet", "'memory://old.parquet' is there already"),
        ("memory://in", "memory://old.parquet/", "is to be a folder, and is a file"),
        ("memory://in", "memory://old/", "is there already"),
        ("memory://in", "memory://other/", "holds 'notes.txt', which is no file of rows"),
        ("memory://in", "memory://x.xlsx", "'memory://x.xlsx': no known format"),
        ("memory://in", "memory://", "names no file or folder in its store"),
        ("memory://in", "http://127.0.0.1/x.parquet", "can only be read"),
    ],
)
def test_what_is_refused(rows: Path, store: Any, source: Any, destination: str, message: str) -> None:
    for name in ("in/a.parquet", "old.parquet", "old/a.parquet", "other/a.parquet", "delta/a.parquet"):
        store.pipe_file(f"/{name}", rows.read_bytes())
    store.pipe_file("/in/a.xlsx", b"")
    store.pipe_file("/other/notes.txt", b"")
    store.pipe_file("/delta/_delta_log/0.json", b"{}")
    store.pipe_file("/broken.parquet", rows.read_bytes()[:-20])
    before = keys_below(store, "/")
    with pytest.raises((ValueError, OSError, ImportError), match=message):
        encode_dataset(source, destination, codes(), target="price", overwrite="other" in destination)
    assert keys_below(store, "/") == before


def test_a_library_that_is_missing_is_named() -> None:
    fsspec.register_implementation("hdfs3old", "absent.library", clobber=True, errtxt="Install absent")
    with pytest.raises(ImportError, match=r"'hdfs3old://x' needs fsspec, and the library .*Install absent"):
        open_source("hdfs3old://x")


def test_a_file_that_is_written_anew_is_noticed(rows: Path, store: Any) -> None:
    store.pipe_file("/rows.parquet", rows.read_bytes())
    source = open_source("memory://rows.parquet")
    store.pipe_file("/rows.parquet", rows.read_bytes())
    with pytest.raises(ValueError, match=r"the source file 'memory://rows.parquet' changed while it was read"):
        source.load()


def test_errors_of_other_libraries_name_the_file(rows: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pipe_file("/rows.parquet", rows.read_bytes())
    source = open_source("memory://rows.parquet")

    def lose_connection(*_: Any) -> None:
        raise RuntimeError("connection lost")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", lose_connection, raising=False)
    with pytest.raises(ValueError, match=r"cannot read 'memory://rows.parquet', row group 0: connection lost"):
        source.load()


def test_a_store_that_cannot_be_written_is_noticed_before_work(
    rows: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr(type(store), "pipe_file", refuse)
    monkeypatch.setattr(encoding, "measure", None)
    with pytest.raises(PermissionError, match=r"cannot write to 'memory://out/codes.parquet': Access Denied"):
        encode(rows, "memory://out/codes.parquet", codes(), "price")


def test_an_upload_that_fails_is_gone_on_with(
    tmp_path: Path, rows: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_file", fail)
        with pytest.raises(OSError, match=r"cannot write 'memory://out/codes.parquet': connection lost") as caught:
            encode(rows, "memory://out/codes.parquet", codes(), "price")
    [note] = caught.value.__notes__
    assert "is kept in" in note
    assert keys_below(store, "/out/") == {}
    assert encode(rows, "memory://out/codes.parquet", codes(), "price", resume=True).encoded == 0
    encode(rows, tmp_path / "codes.parquet", codes(), "price")
    assert keys_below(store, "/out/") == {"codes.parquet": (tmp_path / "codes.parquet").read_bytes()}


class Killed:
    """Kills the process at one of the calls that change a store, or in the middle of a writing call."""

    def __init__(self, last: int) -> None:
        self.left = last

    def install(self, store: Any) -> None:
        # Asynchronous stores make these methods for each object.
        pipe = store.pipe_file
        for name in ("put_file", "pipe_file", "cp_file", "rm_file"):
            setattr(store, name, self._counted(getattr(store, name), pipe if name == "put_file" else None))

    def _counted(self, method: Any, pipe: Any) -> Any:
        def counted(*given: Any, **choices: Any) -> Any:
            self._count()
            if pipe is not None:
                if self.left == 1:
                    pipe(given[1], Path(given[0]).read_bytes()[:5])
                self._count()
            return method(*given, **choices)

        return counted

    def _count(self) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def objects_on_disk() -> type[Any]:
    """A store that outlives a process, and whose objects appear whole."""
    from fsspec.implementations.local import LocalFileSystem
    from fsspec.spec import AbstractFileSystem

    class Objects(LocalFileSystem):
        protocol = "objects"
        mv = AbstractFileSystem.mv

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return super()._strip_protocol(str(path).removeprefix("objects://"))

        def cp_file(self, source: str, place: str, **_: Any) -> None:
            shutil.copyfile(source, f"{place}.copied")
            Path(f"{place}.copied").replace(place)

    return Objects


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_kill_at_any_step_of_an_upload(tmp_path: Path, kind: str) -> None:
    objects = objects_on_disk()
    finished, before = tmp_path / "finished", {"/a": b"old a", "/gone": b"old"} if kind == "folder" else {"": b"old"}
    after = {"/a": b"new content", "/day=1/b[1]": b"more content"} if kind == "folder" else {"": b"new content"}
    if kind == "file":
        finished.write_bytes(after[""])
    for name, content in after.items() if kind == "folder" else ():
        (finished / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (finished / name[1:]).write_bytes(content)
    seen, last, ended = set(), 0, -1
    while ended:
        last += 1
        folder = tmp_path / str(last)
        place = Store("objects://x", objects(skip_instance_cache=True), str(folder / "finished"))
        for name, content in before.items():
            (folder / f"finished{name}").parent.mkdir(parents=True, exist_ok=True)
            (folder / f"finished{name}").write_bytes(content)
        if (child := os.fork()) == 0:
            Killed(last).install(place.filesystem)
            place.publish(finished)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        recorded = (folder / f".finished.gpu-encode/{RECORD}").exists()
        now = files_below(folder / "finished")
        # A single file is always the old or the new one; a folder may be a mixture only while there is a record.
        assert now in (before, after) or (kind == "folder" and recorded)
        place.end_publication()
        now = files_below(folder / "finished")
        assert now == after if recorded or not ended else now in (before, after)
        seen.add((recorded, now == after))
        place.publish(finished)
        assert files_below(folder / "finished") == after
        assert names_in(folder) == ["finished"]
    assert last > 5
    assert {(False, False), (True, True), (False, True)} <= seen


class Ranges(BaseHTTPRequestHandler):
    """Serves one file, any range of its bytes."""

    content = b""

    def do_HEAD(self) -> None:
        self._head(200, len(self.content))

    def do_GET(self) -> None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        part = self.content[int(first) : int(last or len(self.content)) + 1]
        self._head(206, len(part), f"bytes {first}-{int(first) + len(part) - 1}/{len(self.content)}")
        self.wfile.write(part)

    def _head(self, status: int, n_bytes: int, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(n_bytes))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def test_web_pages_are_read(tmp_path: Path, rows: Path) -> None:
    pytest.importorskip("aiohttp")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Rows", (Ranges,), {"content": rows.read_bytes()}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/orders.parquet?token=1"
        encode(url, tmp_path / "web.parquet", codes(), "price", chunk_rows=90)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    encode(rows, tmp_path / "codes.parquet", codes(), "price", chunk_rows=90)
    assert read_rows(tmp_path / "web.parquet").equals(read_rows(tmp_path / "codes.parquet"))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of a local server that speaks the S3 protocol."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.get_host_and_port()[1]}"}.items():
        monkeypatch.setenv(name, value)
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    store.mkdir("shop")
    yield store
    server.stop()


def objects_below(bucket: Any, place: str) -> dict[str, bytes]:
    bucket.invalidate_cache()
    return {key.removeprefix(place): bucket.cat_file(key) for key in bucket.find(place)}


KILLED = """
import sys, tempfile
import fsspec
from gpu_encode import encode_dataset
from tests.scale.files.test_stores import Killed, codes

tempfile.tempdir = sys.argv[1]
Killed(int(sys.argv[2])).install(fsspec.filesystem("s3"))
encode_dataset("s3://shop/in", "s3://shop/out/codes", codes(), target="price", overwrite=True)
"""


@pytest.mark.filterwarnings("ignore")
def test_a_bucket_and_runs_that_are_killed(
    tmp_path: Path, partitioned: Path, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, partitioned, "shop/in")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    encode_dataset(partitioned, tmp_path / "old", TargetEncoder(columns=["zip"]), target="price")
    encode_dataset(partitioned, tmp_path / "new", codes(), target="price")
    old, new = files_below(tmp_path / "old"), files_below(tmp_path / "new")
    for last in (12, 17, 99):
        put(bucket, tmp_path / "old", "shop/out/codes")
        ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(last)], check=False).returncode
        assert ended == (0 if last == 99 else -signal.SIGKILL)
        place = Store.at("s3://shop/out/codes")
        assert place is not None
        place.end_publication()
        assert objects_below(bucket, "shop/out/codes") in (old, new)
        encode_dataset("s3://shop/in", "s3://shop/out/codes", codes(), target="price", overwrite=True, resume=True)
        assert objects_below(bucket, "shop/out") == {f"/codes{name}": content for name, content in new.items()}
    with pytest.raises(FileNotFoundError, match=r"cannot look at 's3://absent/codes': there is no such file.*bucket"):
        encode_dataset("s3://shop/in", "s3://absent/codes", codes(), target="price")
