#!/usr/bin/env bash
# Install the checkout in the virtual environment $VENV or in .venv, in an image or out of one: with what its tests need, by
# docker/install.sh cpu, or docker/install.sh cuda 12, or docker/install.sh cuda 13; for use, with extras of pyproject.toml, by
# docker/install.sh use service
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}:${2-}" in
    cpu:)
        make install
        ;;
    cuda:12)
        make install EXTRAS="suite,workflows-cu12"
        ;;
    cuda:13)
        make install EXTRAS="suite,workflows-cu13,sanitizer"
        ;;
    cuda:*)
        echo "CUDA must be 12 or 13, not '${2-}'" >&2
        exit 2
        ;;
    use:?*)
        venv=${VENV:-.venv}
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check ".[$2]"
        ;;
    *)
        echo "usage: docker/install.sh cpu | cuda 12 | cuda 13 | use EXTRA,..." >&2
        exit 2
        ;;
esac
