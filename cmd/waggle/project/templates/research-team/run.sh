#!/bin/sh
# Gives the team a question: ./run.sh "ask Analyst how many words notes.md has". Further arguments are for waggle teams run.
set -eu
cd "$(dirname "$0")"
question=${1:-"ask Analyst which files are in the workspace, and ask library to ask Reader how many words notes.md has"}
[ $# -eq 0 ] || shift
exec waggle teams run -f team.yaml "$question" "$@"
