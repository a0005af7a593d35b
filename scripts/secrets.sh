#!/bin/sh
# Makes the secrets of docker-compose.yml that are missing: a key a role for NATS, the
# route between its servers, the key that signs exported states, and an API key for the
# first client. Nothing that exists is replaced.
#   scripts/secrets.sh WAGGLE [DIR]    WAGGLE is the waggle binary; DIR defaults to secrets
#
# Each role has a folder that its containers mount, and sees nothing of another role:
#   ROLE/nkey          a copy of nats/ROLE.nk, which "waggle keys" makes
#   clients            the credentials of clients; gateways read them again when they change
#   routes             how the NATS servers know each other
#   signing            public keys of the gateways, which sign the commands of clients
# Containers do not run as you. So the files may be read by everybody, in a folder that
# only you may enter.
set -eu

waggle=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=${2:-secrets}
umask 077
mkdir -p "$dir"
chmod 700 "$dir"
cd "$dir"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }
missing() { [ ! -e "$1" ]; }

# copy FROM TO: replaces TO, in one step, if it differs.
copy() {
	cmp -s "$1" "$2" && return
	mkdir -p "$(dirname "$2")"
	cp "$1" "$2.new"
	mv "$2.new" "$2"
}

# move FROM TO: files of the layout before this one.
move() {
	mkdir -p "$(dirname "$2")"
	if missing "$2" && [ -f "$1" ]; then mv "$1" "$2"; fi
}

"$waggle" keys --dir nats --cluster nats-1,nats-2,nats-3
for seed in nats/*.nk; do
	role=$(basename "$seed" .nk)
	case "$role" in
	system) copy "$seed" operator/system.nk ;;
	*) copy "$seed" "$role/nkey" ;;
	esac
done
copy nats/routes.conf routes/routes.conf
copy nats/signing.seed gateway/signing.seed
copy nats/signing.pub signing/signing.pub

move gateway.yaml clients/gateway.yaml
move state.key session/state.key
move worker.yaml worker/worker.yaml
move tools.yaml tools/tools.yaml

missing session/state.key && random >session/state.key
if missing api.key; then
	random >api.key
	rm -f clients/gateway.yaml
fi
if missing clients/gateway.yaml; then
	cat >clients/gateway.yaml <<-YAML
		# Who may connect. The first client's key is in api.key.
		auth:
		  api_keys:
		    - {id: first, sha256: $(sha256sum api.key | cut -d' ' -f1), tenant: default, roles: [user, operator, agent, service]}
	YAML
fi
missing worker/worker.yaml && echo '# Keys of model providers:
# providers: {openai: {api_key: ...}}' >worker/worker.yaml
missing tools/tools.yaml && echo '# MCP servers, with their keys:
# tools: {servers: [{name: ..., url: ...}]}' >tools/tools.yaml
find . -type f -exec chmod 644 {} +
find . -mindepth 1 -type d -exec chmod 755 {} +
