#!/usr/bin/env bash
# As root, in a new image: what a distribution has for us, and the user who owns the checkout: docker/prepare.sh USER_ID
set -euo pipefail
user_id=${1:?"the number of the user, as in: docker/prepare.sh 1000"}

# A CPU runs the kernels in CUDA C++ by g++; reports name the commit by git.
apt-get update
apt-get install --yes --no-install-recommends g++ git make
rm -rf /var/lib/apt/lists/*

useradd --no-log-init --create-home --user-group --uid "$user_id" encoder
install --directory --owner=encoder --group=encoder /src /opt/venv
