"""A web service that encodes rows, and can load a new model while it answers, without dropping a request.

    pip install '.[service]'
    MODEL=returns.model uvicorn --app-dir examples/service encode_rows:app
    curl localhost:8000/encode --json '[{"shop": "a", "size": 2}]'
    curl -X POST localhost:8000/reload

Whoever may write the model file decides the answers; allow /reload only to the same people.
"""

import math
import os
from typing import Any

from fastapi import FastAPI, HTTPException

from gpu_encode import load

app = FastAPI()
app.state.encode = load(os.environ["MODEL"]).row_encoder()


@app.post("/encode")
async def encode(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Encode rows; a NaN becomes null, since JSON has no NaN."""
    encoder = app.state.encode  # read once, so that all rows of a request are answered by one model
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
    """Read the file again, in a thread of its own; if it is not a model, say why and keep the old model."""
    try:
        encoder = load(os.environ["MODEL"]).row_encoder()
    except Exception as error:
        raise HTTPException(500, f"the old model stays: {type(error).__name__}: {error}") from error
    app.state.encode = encoder
    return encoder.names
