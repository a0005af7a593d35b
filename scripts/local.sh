#!/bin/sh
# Names in .env the images that "make up LOCAL=1" builds, so that every command of Compose
# finds them without a registry. A line that .env has already stays as it is.
set -eu
cd "$(dirname "$0")/.."

touch .env
while IFS= read -r line; do
	grep -q "^${line%%=*}=" .env || echo "$line" >>.env
done <<'LINES'
WAGGLE_LB_IMAGE=waggle-caddy:dev
WAGGLE_PROMETHEUS_IMAGE=waggle-prometheus:dev
WAGGLE_OTEL_IMAGE=waggle-otel:dev
WAGGLE_GRAFANA_PROFILE=grafana
LINES
