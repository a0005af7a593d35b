#!/usr/bin/env bash
# Installs what the Python SDK and its checks need from Debian, if it is missing.
set -euo pipefail
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import setuptools, httpx, pip, pytest, websockets, wheel' 2>/dev/null && exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo "$python lacks httpx, websockets, pytest, setuptools, wheel or pip: install Debian's python3-httpx, python3-websockets and so on"
	exit 1
fi
apt-get update -q && apt-get install -y -q --no-install-recommends \
	python3 python3-httpx python3-websockets python3-pytest python3-setuptools python3-wheel python3-pip
