"""The example service answers every request while its model is replaced, each with one model, to the bit."""

import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import socket
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from gpu_encode import TargetEncoder

pytest.importorskip("fastapi", reason="the extra service has FastAPI")
httpx = pytest.importorskip("httpx", reason="the extra service has httpx")

FOLDER = Path(__file__).parents[2] / "examples" / "service"
ROWS = [{"shop": "a", "size": 2}, {"shop": None, "size": 9}, {"shop": "never seen", "size": 1, "more": "ignored"}]
JSON = {"content-type": "application/json"}
N_CLIENTS, N_REQUESTS, N_MODELS = 4, 15, 4

pytestmark = pytest.mark.host


def model(number):
    """Make one of several encoders."""
    X = pd.DataFrame({"shop": ["a", "a", "b", "c"], "size": [1, 2, 2, 1], "passed": [5, 6, 7, 8]})
    return TargetEncoder(columns=["shop", ("shop", "size")], smooth=number + 1.0).fit(X, [0, 1, 1, 1])


def answer(number):
    """Return the answer that the service must give with a model."""
    encode = model(number).row_encoder(passed=False)
    return [dict(zip(encode.names, row, strict=True)) for row in encode(ROWS)]


@pytest.fixture
def service(monkeypatch, tmp_path):
    """Import the example anew, with a model, and return it."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("MODEL", str(tmp_path / "some.model"))
    model(0).save(tmp_path / "some.model")
    yield importlib.import_module("encode_rows")
    sys.modules.pop("encode_rows")


@contextlib.contextmanager
def in_this_process(app):
    """Return a client that calls the application without a network."""
    yield "http://service", httpx.ASGITransport(app)


@contextlib.contextmanager
def on_the_loopback(app):
    """Serve the application on a free port; return its address."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra service has uvicorn")
    begun = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            begun.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert begun.wait(60)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", None
        finally:
            server.should_exit = True
            thread.join()


async def ask(client, done):
    """Send requests one after the other until the models have been replaced; return the answers."""
    answers = []
    while len(answers) < N_REQUESTS or not done.is_set():
        # A transport without a network never waits, and other clients must have their turn.
        await asyncio.sleep(0)
        response = await client.post("/encode", json=ROWS)
        assert response.status_code == 200, response.text
        answers.append(response.json())
    return answers


async def load_and_replace(client):
    """Replace the model again and again while clients send requests; return the answers of each client."""
    done = asyncio.Event()

    async def replace_models():
        for number in range(1, N_MODELS):
            model(number).save(os.environ["MODEL"])
            assert (await client.post("/reload")).status_code == 200
        done.set()

    # If one client fails, all stop.
    async with asyncio.TaskGroup() as group:
        clients = [group.create_task(ask(client, done)) for _ in range(N_CLIENTS)]
        group.create_task(replace_models())
    return [each.result() for each in clients]


@pytest.mark.parametrize("served", [in_this_process, on_the_loopback])
def test_no_request_is_dropped_while_models_are_replaced(service, served):
    expected = [answer(number) for number in range(N_MODELS)]

    async def run(address, transport):
        async with httpx.AsyncClient(base_url=address, transport=transport, timeout=60) as client:
            answers = await load_and_replace(client)
            return answers, (await client.post("/encode", json=ROWS)).json()

    with served(service.app) as address:
        answers, last = asyncio.run(run(*address))
    assert last == expected[-1]
    for of_client in answers:
        # One model gives each answer, and no client gets an answer of an older model than before.
        used = [expected.index(one) for one in of_client]
        assert used == sorted(used)
    assert len({expected.index(one) for of_client in answers for one in of_client}) > 1


def test_what_the_service_refuses(service, tmp_path):
    async def run():
        transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(base_url="http://service", transport=transport) as client:
            lacking = await client.post("/encode", json=[{"shop": "a"}])
            no_rows = await client.post("/encode", json={"shop": "a"})
            (tmp_path / "some.model").write_bytes(b"no model")
            broken = await client.post("/reload")
            (tmp_path / "some.model").unlink()
            gone = await client.post("/reload")
            return lacking, no_rows, broken, gone, await client.post("/encode", json=ROWS)

    lacking, no_rows, broken, gone, afterwards = asyncio.run(run())
    assert [each.status_code for each in (lacking, no_rows, broken, gone)] == [422, 422, 500, 500]
    assert "size" in lacking.json()["detail"]
    assert "the old model stays: ValueError" in broken.json()["detail"]
    assert "the old model stays: FileNotFoundError" in gone.json()["detail"]
    assert afterwards.json() == answer(0)


def test_values_that_no_answer_could_hold(service):
    wrong = [(name, value) for name in ROWS[2] for value in ("1e999", "-Infinity", "NaN", "[1]", "{}")]

    async def run():
        async with httpx.AsyncClient(base_url="http://service", transport=httpx.ASGITransport(service.app)) as client:
            rows = [json.dumps([ROWS[2] | {name: "@"}]).replace('"@"', value) for name, value in wrong]
            return [await client.post("/encode", content=row, headers=JSON) for row in rows]

    for (name, _), refused in zip(wrong, asyncio.run(run()), strict=True):
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith(f"{name!r}: values are text, finite numbers")


def test_nan_is_null(service):
    X = pd.DataFrame({"shop": ["a", "b"], "size": [1, 2]})
    encoder = TargetEncoder(columns=["shop"], handle_unknown="nan").fit(X, [0, 1])
    service.app.state.encode = encoder.row_encoder()
    found = service.encode([{"shop": "c", "size": 1}, {"shop": "a", "size": 1}])
    assert found[0] == {"shop": None, "size": 1}
    assert found[1]["shop"] == encoder.transform(X)["shop"][0]


def test_requests_have_limits(service, monkeypatch):
    monkeypatch.setattr(service, "MOST_ROWS", 3)
    monkeypatch.setattr(service, "MOST_BYTES", 400)

    async def in_pieces():
        for _ in range(3):
            yield b" " * 200

    async def run():
        async with httpx.AsyncClient(base_url="http://service", transport=httpx.ASGITransport(service.app)) as client:
            sent = [{"json": ROWS}, {"json": [*ROWS, ROWS[0]]}, {"content": b" " * 401}, {"content": in_pieces()}]
            return [await client.post("/encode", headers=JSON, **body) for body in sent]

    answers = asyncio.run(run())
    assert [each.status_code for each in answers] == [200, 413, 413, 413]
    assert answers[1].json()["detail"] == "a request may have 3 rows, and this one has 4"
    assert "may have 400 bytes" in answers[3].json()["detail"]


def test_all_workers_reload(service):
    spec = importlib.util.spec_from_file_location("another_worker", FOLDER / "encode_rows.py")
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    model(1).save(os.environ["MODEL"])
    assert worker.encode(ROWS) == answer(0)
    service.reload()
    assert service.encode(ROWS) == worker.encode(ROWS) == answer(1)
    # What is no model any more leaves the old one in all of them.
    Path(os.environ["MODEL"]).write_bytes(b"no model")
    service.RELOADED.touch()
    assert service.encode(ROWS) == worker.encode(ROWS) == answer(1)
    health = asyncio.run(worker.health())
    assert health["origin"]["rows"] == 4
    assert health == {"status": "ok", "names": list(answer(1)[0]), "origin": health["origin"]}


def test_metrics_are_those_of_prometheus(service):
    X = pd.DataFrame({"shop": ["a", "b"], 'a "b"\\\n': ["p", "q"]})
    service.app.state.encode = TargetEncoder().fit(X, [0, 1]).row_encoder(passed=False, counts=True)
    other = list(X)[1]
    service.encode([{"shop": "a", other: "p"}, {"shop": "c", other: "p"}, {"shop": "d", other: None}])

    async def run():
        async with httpx.AsyncClient(base_url="http://service", transport=httpx.ASGITransport(service.app)) as client:
            return await client.get("/metrics")

    answer = asyncio.run(run())
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.text.endswith("\n")
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert samples == [
        f'gpu_encode_{name}_total{{key="{key}"}} {number}'
        for name, numbers in (("rows", (3, 3)), ("unknown", (2, 0)), ("missing", (0, 1)))
        for key, number in zip(("shop", r"a \"b\"\\\n"), numbers, strict=True)
    ]


def test_many_rows_do_not_stop_the_others(service, monkeypatch):
    begun, end = threading.Event(), threading.Event()

    def slow(_):
        begun.set()
        assert end.wait(60)
        return []

    slow.names = []
    monkeypatch.setattr(service.app.state, "encode", slow)

    async def run():
        async with httpx.AsyncClient(base_url="http://service", transport=httpx.ASGITransport(service.app)) as client:
            waiting = asyncio.create_task(client.post("/encode", json=ROWS))
            await asyncio.to_thread(begun.wait, 60)
            healthy = await client.get("/health")
            end.set()
            return healthy, await waiting

    healthy, answered = asyncio.run(run())
    assert (healthy.status_code, answered.status_code) == (200, 200)
