#!/bin/sh
# Makes the secrets of docker-compose.yml that are missing: a key a role for NATS, the
# route between its servers, the key that signs exported states, and an API key for the
# first client. Nothing that exists is replaced.
#   scripts/secrets.sh WAGGLE [DIR]    WAGGLE is the waggle binary; DIR defaults to secrets
#
# Containers do not run as you. So the files may be read by everybody, in a folder that
# only you may enter: a container sees just the files that are mounted into it.
set -eu

waggle=$1
dir=${2:-secrets}
umask 077
mkdir -p "$dir"
chmod 700 "$dir"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
missing() { [ ! -e "$dir/$1" ]; }

"$waggle" keys --dir "$dir/nats" --cluster nats-1,nats-2,nats-3
missing state.key && random >"$dir/state.key"
if missing api.key; then
	random >"$dir/api.key"
	rm -f "$dir/gateway.yaml"
fi
if missing gateway.yaml; then
	cat >"$dir/gateway.yaml" <<-YAML
		# Who may connect. The first client's key is in api.key.
		auth:
		  api_keys:
		    - {id: first, sha256: $(sha256sum "$dir/api.key" | cut -d' ' -f1), tenant: default, roles: [user, operator, agent, service]}
	YAML
fi
missing agent.yaml && echo '# Keys of model providers:
# providers: {openai: {api_key: ...}}' >"$dir/agent.yaml"
missing tools.yaml && echo '# MCP servers, with their keys:
# tools: {servers: [{name: ..., url: ...}]}' >"$dir/tools.yaml"
find "$dir" -type f -exec chmod 644 {} +
find "$dir" -mindepth 1 -type d -exec chmod 755 {} +
