#!/usr/bin/env bash
# Install the checkout with what its tests need, in the virtual environment $VENV or in .venv, in an image or out of one:
# docker/install.sh cpu, or docker/install.sh cuda 12, or docker/install.sh cuda 13
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
    *)
        echo "usage: docker/install.sh cpu | cuda 12 | cuda 13" >&2
        exit 2
        ;;
esac
