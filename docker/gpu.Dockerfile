# The checkout with its tests, on a machine with a GPU and CUDA 13: docker build -f docker/gpu.Dockerfile -t gpu-encode:gpu .
# docker run --rm --gpus all --volume "$PWD/benchmarks/results:/src/benchmarks/results" gpu-encode:gpu
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04

RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ git make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY . .
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir --editable '.[cu13,test]'
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH

CMD ["make", "gpu"]
