#!/bin/sh
# Writes the report of today to reports/. It may run again at any time, also after a crash: the day names the session, and its
# message counts once. It needs curl and jq.
set -eu
cd "$(dirname "$0")"
waggle=${WAGGLE_HTTP:-http://127.0.0.1:9000}/api/v1
day=$(date +%F)

api() {
	curl -sS --fail-with-body --retry 5 --retry-connrefused ${WAGGLE_TOKEN:+-H "Authorization: Bearer $WAGGLE_TOKEN"} \
		-H 'Content-Type: application/json' "$@"
}

jq -n --rawfile question question.txt '{id: "report", create_session: true, content: $question}' |
	api "$waggle/sessions/report-$day/messages" -d @- >/dev/null
until status=$(api "$waggle/sessions/report-$day" | jq -er '.runs[0].status | select(. != "running" and . != "waiting")'); do sleep 1; done
if [ "$status" != completed ]; then
	echo "the report is $status: waggle sessions show report-$day" >&2
	exit 1
fi
mkdir -p reports
api "$waggle/logs/session/report-$day/events?types=run.completed" | jq -r '.events[-1].data.content' >"reports/$day.md"
echo "reports/$day.md"
