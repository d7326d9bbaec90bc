#!/usr/bin/env bash
# As root, in a new image: packages of the distribution, and the user who owns the checkout:
# docker/prepare.sh USER_ID [PACKAGE...]
set -euo pipefail
user_id=${1:?"the number of the user, as in: docker/prepare.sh 1000"}
shift

if [ $# -gt 0 ]; then
    apt-get update
    apt-get install --yes --no-install-recommends "$@"
    rm -rf /var/lib/apt/lists/*
fi

useradd --no-log-init --create-home --user-group --uid "$user_id" encoder
install --directory --owner=encoder --group=encoder /src /opt/venv
