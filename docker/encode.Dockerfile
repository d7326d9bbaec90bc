# The command gpu-encode, for jobs that encode files:
#   docker build --file docker/encode.Dockerfile --tag gpu-encode:encode .   (--build-arg EXTRAS=rapids-cu13 for a GPU)
#   docker run --rm --user "$(id -u)" --volume "$PWD:/data" gpu-encode:encode fit-transform orders.parquet encoded.parquet \
#       --target returned --columns shop --model shops.model
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

ARG USER_ID=1000
COPY docker/prepare.sh /opt/
RUN /opt/prepare.sh "$USER_ID"

USER $USER_ID
WORKDIR /src
COPY --chown=encoder:encoder . .
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1
ARG EXTRAS=stores,sql,onnx
# Kernels are compiled once, and not by each new container. They run on any processor; quicker ones run
# on those of a name of LLVM: --build-arg NUMBA_CPU_NAME=x86-64-v3
ARG NUMBA_CPU_NAME=generic
ENV NUMBA_CPU_NAME=$NUMBA_CPU_NAME
RUN docker/install.sh use "$EXTRAS" && gpu-encode warm-up

WORKDIR /data
ENTRYPOINT ["gpu-encode"]
CMD ["--help"]
