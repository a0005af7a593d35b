#!/usr/bin/env bash
# Installs what "make release CHECK=1" needs from Debian or Ubuntu, if it is missing.
set -euo pipefail
cd "$(dirname "$0")"
./python.sh
missing=()
command -v node >/dev/null || missing+=(nodejs npm)
command -v curl >/dev/null || missing+=(curl)
command -v openssl >/dev/null || missing+=(openssl)
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
command -v rpm >/dev/null || missing+=(rpm)
command -v ssh-keygen >/dev/null || missing+=(openssh-client)
[[ ${#missing[@]} -eq 0 ]] || { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; }
/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || apt-get install -y -q --no-install-recommends python3-venv
