#!/usr/bin/env bash
# Run the tests that docker/install.sh made ready, in the virtual environment $VENV or in .venv, in an image or out of one:
# docker/test.sh cpu, or docker/test.sh cuda on a machine with a GPU. PYTEST_ARGS and GPU_ARGS narrow them, as with make.
# After docker/install.sh use service,stores,sql,onnx, docker/test.sh use encodes rows, exports, and has the web service encode one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}" in
    cpu)
        make test
        ;;
    cuda)
        # The second is run even if the first fails: what is wrong on a GPU is worth knowing at once.
        status=0
        # A changed pyproject.toml would have make install the CPU's extras here, CuPy for another CUDA among them.
        RAPIDS=1 OPS_BACKENDS=cuda make --old-file=pyproject.toml test PYTEST_ARGS="${PYTEST_ARGS-tests/tables tests/rapids tests/guides}" || status=$?
        make gpu GPU_ARGS="${GPU_ARGS---only machine,suites,bits,encoders,races,examples}" || status=$?
        exit "$status"
        ;;
    use)
        venv=$(realpath "${VENV:-.venv}")
        folder=$(mktemp -d)
        trap 'jobs -p | xargs --no-run-if-empty kill; wait; rm -rf "$folder"' EXIT
        printf 'id,shop,sold\n1,a,1\n2,a,1\n3,b,0\n4,b,1\n' >"$folder/orders.csv"
        # The installed package, and not the checkout, is what an image has.
        (cd "$folder" && "$venv/bin/gpu-encode" fit-transform orders.csv encoded.csv \
            --target sold --columns shop --smooth 2 --cv 2 --model shops.model
        "$venv/bin/gpu-encode" export shops.model shops.onnx --to onnx --drop-passed
        "$venv/bin/gpu-encode" export shops.model shops.sql --to sql --table orders)
        PATH="$venv/bin:$PATH" MODEL="$folder/shops.model" PORT=${PORT:-8421} docker/serve.sh &
        "$venv/bin/python" docker/ask_service.py "http://127.0.0.1:${PORT:-8421}"
        ;;
    *)
        echo "usage: docker/test.sh cpu | cuda | use" >&2
        exit 2
        ;;
esac
