# The checkout with its tests, on a machine without a GPU: docker build -f docker/cpu.Dockerfile -t gpu-encode:cpu .
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY . .
RUN make install VENV=/opt/venv
ENV VENV=/opt/venv PATH=/opt/venv/bin:$PATH

CMD ["make", "test"]
