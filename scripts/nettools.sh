#!/usr/bin/env bash
# Installs what the chaos tests break networks with (ip, nft), if it is missing and may be
# installed. Without it they report the faults that need it as not possible.
set -euo pipefail
command -v ip >/dev/null && command -v nft >/dev/null && exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo 'ip or nft is missing (iproute2, nftables): faults of networks will not be tried'
	exit 0
fi
apt-get update -q && apt-get install -y -q --no-install-recommends iproute2 nftables
