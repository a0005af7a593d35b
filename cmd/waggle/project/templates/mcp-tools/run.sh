#!/bin/sh
# Starts the tool server and Waggle. Ctrl-C stops both.
set -eu
cd "$(dirname "$0")"
python3 server.py &
server=$!
until python3 -c 'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ.get("TICKETS_PORT", "8700"))))' 2>/dev/null; do
	kill -0 "$server" # fails, and ends this script, if the server has ended
	sleep 0.1
done
waggle up "$@" &
waggle=$!
trap 'kill "$server" "$waggle" 2>/dev/null || true' INT TERM EXIT
wait "$waggle" || wait "$waggle"
