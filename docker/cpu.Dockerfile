# The checkout and its tests, for a machine without a GPU:
#   docker build --file docker/cpu.Dockerfile --tag gpu-encode:cpu .     (--build-arg PYTHON=3.11 to 3.15)
#   docker run --rm gpu-encode:cpu                                       (--env PYTEST_ARGS="-k ordered" narrows the tests)
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

ARG USER_ID=1000
COPY docker/prepare.sh /opt/
# A CPU runs the kernels in CUDA C++ by g++; reports name the commit by git.
RUN /opt/prepare.sh "$USER_ID" g++ git make

USER $USER_ID
WORKDIR /src
COPY --chown=encoder:encoder . .
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1
RUN docker/install.sh cpu

CMD ["docker/test.sh", "cpu"]
