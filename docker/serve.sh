#!/usr/bin/env bash
# Start the web service of examples/service for the model file $MODEL, on $PORT or 8000, with $WORKERS processes or one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec uvicorn --host "${HOST:-0.0.0.0}" --port "${PORT:-8000}" --workers "${WORKERS:-1}" \
    --app-dir examples/service encode_rows:app
