"""A web service that encodes rows, and takes a new model while it answers, without dropping a request.

    pip install '.[service]'
    MODEL=returns.model uvicorn --app-dir examples/service encode_rows:app
    curl localhost:8000/encode --json '[{"shop": "a", "size": 2}]'
    curl -X POST localhost:8000/reload

Whoever may write the file decides what is answered; keep /reload to those.
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
    """Encode rows; JSON has no NaN, and says null."""
    encoder = app.state.encode  # read once, so that all rows of a request are answered by one model
    try:
        encoded = encoder(rows)
    except (ValueError, TypeError) as error:
        raise HTTPException(422, str(error)) from error
    plain = [[None if isinstance(value, float) and math.isnan(value) else value for value in row] for row in encoded]
    return [dict(zip(encoder.names, row, strict=True)) for row in plain]


@app.post("/reload")
def reload() -> list[str]:
    """Read the file anew, in a thread of its own; a file that is no model changes nothing."""
    app.state.encode = load(os.environ["MODEL"]).row_encoder()
    return app.state.encode.names
