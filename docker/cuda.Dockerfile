# The checkout, its tests and cuDF, for a machine with a GPU and NVIDIA's container toolkit:
#   docker build --file docker/cuda.Dockerfile --tag gpu-encode:cuda .   (--build-arg CUDA=12 for an older driver)
#   docker run --rm --gpus all gpu-encode:cuda                           (the tests)
# What compute-sanitizer finds while some of the tests run (not with CUDA 12, whose wheel of it lacks a part):
#   docker run --rm --gpus all gpu-encode:cuda make sanitize
# All that is measured, kept on the host; build with --build-arg USER_ID="$(id -u)" so that the folder may be written to:
#   docker run --rm --gpus all --volume "$PWD/benchmarks/results:/src/benchmarks/results" gpu-encode:cuda make gpu
ARG PYTHON=3.12
# CUDA's libraries and compute-sanitizer come as wheels, with cuDF and CuPy or beside them, and the driver from the host.
FROM python:${PYTHON}-slim

ARG USER_ID=1000
COPY docker/prepare.sh /opt/
# A CPU runs the kernels in CUDA C++ by g++; reports name the commit by git.
RUN /opt/prepare.sh "$USER_ID" g++ git make

USER $USER_ID
WORKDIR /src
COPY --chown=encoder:encoder . .
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1
# 12 or 13; docker/install.sh refuses all else.
ARG CUDA=13
RUN docker/install.sh cuda "$CUDA"

# What NVIDIA's own images ask the container toolkit for; a driver too old for this CUDA is refused at the start.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility NVIDIA_REQUIRE_CUDA=cuda>=${CUDA}.0
CMD ["docker/test.sh", "cuda"]
