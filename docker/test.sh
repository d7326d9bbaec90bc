#!/usr/bin/env bash
# Build the CPU image from this checkout and run its tests: docker/test.sh [Python version]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

image="gpu-encode:cpu-${1:-3.12}"
docker build --file docker/cpu.Dockerfile --build-arg "PYTHON=${1:-3.12}" --tag "$image" .
docker run --rm "$image"
