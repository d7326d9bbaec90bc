"""A web service that encodes rows, and can load a new model while it answers, without dropping a request.

    pip install '.[service]'
    MODEL=returns.model uvicorn --workers 4 --app-dir examples/service encode_rows:app
    curl localhost:8000/encode -H 'Content-Type: application/json' -d '[{"shop": "a", "size": 2}]'
    curl -X POST localhost:8000/reload
    curl localhost:8000/health
    curl localhost:8000/metrics

Whoever may write the model file, or the file beside it, decides the answers; allow /reload only to the same people.
MOST_ROWS and MOST_BYTES limit a request.  Each worker has metrics of its own, which begin at zero with a new model: let
Prometheus ask each worker, or start one worker in each container.
"""

import logging
import math
import os
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

from gpu_encode import load

MODEL = Path(os.environ["MODEL"])
# /reload touches this file; a worker that finds another time there reads the model again.
RELOADED = MODEL.with_name(f"{MODEL.name}.reloaded")
MOST_ROWS, MOST_BYTES = (
    int(os.environ.get(name, size)) for name, size in (("MOST_ROWS", 10_000), ("MOST_BYTES", 10**7))
)
LOADING = Lock()

app = FastAPI()


class LimitedBytes:
    """Refuses a request as soon as its body has more bytes than allowed, whatever its header says."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and count the bytes of its body."""
        n_bytes = 0

        async def receive_some() -> Any:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > MOST_BYTES:
                raise HTTPException(413, f"a request may have {MOST_BYTES:,} bytes: send fewer rows at a time")
            return message

        await self.app(scope, receive_some, send)


app.add_middleware(LimitedBytes)


def time_of_reload() -> int:
    """Give the time of the last /reload of any worker."""
    return RELOADED.stat().st_mtime_ns if RELOADED.exists() else 0


def read_model() -> None:
    """Read the model file; after an error the old model stays."""
    app.state.read_at = time_of_reload()
    # A row has the columns that are encoded; those that passed through at fit are not asked for.
    encoder = load(MODEL)
    app.state.encode, app.state.origin = encoder.row_encoder(passed=False, counts=True), encoder.origin_


read_model()


def current_encoder() -> Any:
    """Give the encoder, of the new model if another worker was told to reload."""
    if time_of_reload() != app.state.read_at:
        with LOADING:
            if time_of_reload() != app.state.read_at:
                try:
                    read_model()
                except Exception:
                    logging.getLogger("uvicorn.error").exception("the old model stays")
    return app.state.encode


# Functions without async run in threads, so that many rows do not keep the others waiting.
@app.post("/encode")
def encode(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Encode rows; a NaN becomes null, since JSON has no NaN."""
    if len(rows) > MOST_ROWS:
        raise HTTPException(413, f"a request may have {MOST_ROWS:,} rows, and this one has {len(rows):,}")
    encoder = current_encoder()  # read once, so that all rows of a request are answered by one model
    if wrong := [name for row in rows for name, value in row.items() if not is_plain(value)]:
        # Python accepts NaN, Infinity and 1e999 in JSON, which the answer could not contain.
        raise HTTPException(422, f"{wrong[0]!r}: values are text, finite numbers, true, false and null")
    try:
        encoded = encoder(rows)
    except (ValueError, TypeError) as error:
        raise HTTPException(422, str(error)) from error
    plain = [[None if isinstance(value, float) and math.isnan(value) else value for value in row] for row in encoded]
    return [dict(zip(encoder.names, row, strict=True)) for row in plain]


def is_plain(value: Any) -> bool:
    """Whether a row may have this value."""
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


@app.post("/reload")
def reload() -> list[str]:
    """Read the file again, and let all workers do so; if it is not a model, say why and keep the old model."""
    with LOADING:
        try:
            read_model()
        except Exception as error:
            raise HTTPException(500, f"the old model stays: {type(error).__name__}: {error}") from error
        RELOADED.touch()
        app.state.read_at = time_of_reload()
    return list(app.state.encode.names)


@app.get("/health")
async def health() -> dict[str, Any]:
    """Say that the worker answers, what its model gives, and where the model comes from."""
    return {"status": "ok", "names": app.state.encode.names, "origin": app.state.origin}


# The measures, in the text format of Prometheus.
METRICS = {
    "rows": "Rows that were encoded.",
    "unknown": "Rows whose value the model has not seen.",
    "missing": "Rows without a value.",
}


@app.get("/metrics")
def metrics() -> PlainTextResponse:
    """Tell how many rows this worker has encoded with its model, and how many values were unknown or missing."""
    counts, lines = app.state.encode.counts, []
    for name, told in METRICS.items():
        lines += [f"# HELP gpu_encode_{name}_total {told}", f"# TYPE gpu_encode_{name}_total counter"]
        for row in counts:
            key = row["key"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'gpu_encode_{name}_total{{key="{key}"}} {row[name]}')
    return PlainTextResponse("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")
