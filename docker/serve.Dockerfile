# The web service of examples/service, which encodes rows by a saved model, by a user without rights:
#   docker build --file docker/serve.Dockerfile --tag gpu-encode:serve .
#   docker run --rm --publish 8000:8000 --volume "$PWD/models:/models" --env MODEL=/models/returns.model gpu-encode:serve
#   curl localhost:8000/encode -H 'Content-Type: application/json' -d '[{"shop": "a"}]'
# /health answers probes, /metrics a collector; POST /reload reads the model again, and needs a folder that may be written to.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

ARG USER_ID=1000
COPY docker/prepare.sh /opt/
RUN /opt/prepare.sh "$USER_ID"

USER $USER_ID
WORKDIR /src
COPY --chown=encoder:encoder . .
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1
# Kernels are compiled once, and not by each new container. They run on any processor; quicker ones run
# on those of a name of LLVM: --build-arg NUMBA_CPU_NAME=x86-64-v3
ARG NUMBA_CPU_NAME=generic
ENV NUMBA_CPU_NAME=$NUMBA_CPU_NAME
RUN docker/install.sh use service && gpu-encode warm-up

ENV MODEL=/models/model PORT=8000 WORKERS=1
EXPOSE 8000
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/health')"]
CMD ["docker/serve.sh"]
