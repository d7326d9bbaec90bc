#!/usr/bin/env bash
# Start the web service of examples/service for the model file $MODEL, on $PORT or 8000, with $WORKERS processes or one.
set -euo pipefail

# A path is one of the folder that the caller is in.
MODEL=$(realpath -m "${MODEL:?the path of a saved model, as in MODEL=returns.model docker/serve.sh}")
export MODEL
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ ! -f "$MODEL" ]; then
    echo "there is no model $MODEL: give the path of a file that encoder.save or fit-transform --model wrote" >&2
    exit 2
fi
exec uvicorn --host "${HOST:-0.0.0.0}" --port "${PORT:-8000}" --workers "${WORKERS:-1}" \
    --app-dir examples/service encode_rows:app
