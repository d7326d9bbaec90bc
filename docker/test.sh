#!/usr/bin/env bash
# Run the tests that docker/install.sh made ready, in the virtual environment $VENV or in .venv, in an image or out of one:
# docker/test.sh cpu, or docker/test.sh cuda on a machine with a GPU. PYTEST_ARGS and GPU_ARGS narrow them, as with make.
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
    *)
        echo "usage: docker/test.sh cpu | cuda" >&2
        exit 2
        ;;
esac
