#!/usr/bin/env bash
# Installs what the end-to-end tests break networks with (ip, nft) and make disks with
# (mkfs.ext4), if it is missing and may be installed. Without the first, chaos tests report
# the faults that need it as not possible.
set -euo pipefail
command -v ip >/dev/null && command -v nft >/dev/null && command -v mkfs.ext4 >/dev/null && exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo 'ip, nft or mkfs.ext4 is missing (iproute2, nftables, e2fsprogs): faults of networks and of power will not be tried'
	exit 0
fi
apt-get update -q && apt-get install -y -q --no-install-recommends iproute2 nftables e2fsprogs
