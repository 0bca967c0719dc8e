#!/bin/sh
# In a build stage: a C compiler, binutils and Python's venv, fetched only where they are missing.
set -eu

if command -v cc >/dev/null && command -v strip >/dev/null &&
  python3 -c 'import ensurepip, venv' 2>/dev/null; then
  exit
fi
wanted="gcc libc6-dev binutils"
python3 -c 'import ensurepip, venv' 2>/dev/null || wanted="$wanted python3-venv"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2
# word splitting is meant
# shellcheck disable=SC2086
apt-get install --quiet=2 --yes --no-install-recommends $wanted >/dev/null
rm -rf /var/lib/apt/lists/*
