#!/bin/sh
# Copies into the Helm chart what it shows or mounts and others own: a chart cannot reach
# files outside of its folder.
set -eu
cd "$(dirname "$0")/.."

to=deploy/helm/waggle/files
rm -rf "$to"
mkdir -p "$to/dashboards" "$to/alerts"
cp deploy/nats/accounts.conf "$to/"
for file in deploy/observability/grafana/dashboards/*.json; do
	[ ! -e "$file" ] || cp "$file" "$to/dashboards/"
done
for file in deploy/observability/prometheus/rules/*.yml; do
	[ ! -e "$file" ] || cp "$file" "$to/alerts/"
done
