# The tasks of docs/SDKS.md with curl and jq. e2e/tasks_test.go runs them.

setup() {
  WAGGLE=${WAGGLE:-http://127.0.0.1:9000}
  KEY=${KEY:-} # an API key or a JWT; nothing without authentication
  CURL=(curl -sS --fail-with-body ${KEY:+-H "Authorization: Bearer $KEY"} -H 'Content-Type: application/json')
  api() { "${CURL[@]}" "$@"; }
  events() { # LOG LAST [AFTER]: the events of a log, one per line, until one of the type LAST
    exec 3< <(exec "${CURL[@]}" -N "$WAGGLE/api/v1/$1/stream?after=${3:-0}")
    sed -un "s/^data: //p; /\"type\":\"$2\"/q" <&3
    kill $! 2>/dev/null || : # the stream never ends
  }
}

chat() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{}' | jq -r .session_id)
  api $WAGGLE/api/v1/sessions/$SESSION/messages -d '{"content": "what does notes.md say?"}' >/dev/null
  events sessions/$SESSION run.completed | jq --unbuffered -j 'select(.type == "message.delta").data.text'
}

resume() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{}' | jq -r .session_id)
  MESSAGE='{"id": "question-1", "content": "what does notes.md say?"}'
  AFTER=$(api $WAGGLE/api/v1/sessions/$SESSION/messages -d "$MESSAGE" | jq .seq) # keep both, for example in a file

  api $WAGGLE/api/v1/sessions/$SESSION/messages -d "$MESSAGE" >/dev/null # the same id: it counts once
  events sessions/$SESSION run.completed $AFTER | jq -r '"\(.sequence) \(.type) \(.data.content // "")"'
}

plan() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{"confirm_plan": true}' | jq -r .session_id)
  api $WAGGLE/api/v1/sessions/$SESSION/messages -d '{"mode": "plan", "content": "list the files, and read notes.md"}' >/dev/null
  ASKED=$(events sessions/$SESSION input.requested | jq -c 'select(.type == "input.requested").data')
  jq -r '.steps[].title' <<<"$ASKED"
  api $WAGGLE/api/v1/questions/session.$SESSION.$(jq -r .input_id <<<"$ASKED")/answer -d '{"decision": "approve"}' >/dev/null
  events sessions/$SESSION run.completed | jq -r 'select(.type == "run.completed").data.content'
}

answer() {
  api "$WAGGLE/api/v1/questions?log=$SESSION" | jq -r '.questions[] | "\(.id) \(.scope) \(.steps | length)"' |
    while read -r id scope steps; do
      echo "$scope $steps"
      api $WAGGLE/api/v1/questions/$id/answer -d '{"decision": "reject", "feedback": "not now"}' | jq -r .decision
    done
}

client_tool() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{}' | jq -r .session_id)
  TOOL='{"name": "weather", "description": "Tells the weather of a city.", "input_schema": {"type": "object"}}'
  api $WAGGLE/api/v1/sessions/$SESSION/messages -d "{\"content\": \"use weather {\\\"city\\\": \\\"Lisbon\\\"}\", \"tools\": [$TOOL]}" >/dev/null
  CALL=$(events sessions/$SESSION input.requested | jq -c 'select(.type == "input.requested").data')
  RESULT="21.5 degrees in $(jq -r .arguments.city <<<"$CALL")"
  api $WAGGLE/api/v1/questions/session.$SESSION.$(jq -r .input_id <<<"$CALL")/answer -d "{\"decision\": \"approve\", \"result\": \"$RESULT\"}" >/dev/null
  events sessions/$SESSION run.completed | jq -r 'select(.type == "run.completed").data.content'
}

file() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{}' | jq -r .session_id)
  TODO="{\"media_type\": \"text/markdown\", \"name\": \"todo.md\", \"data\": \"$(printf 'call mum' | base64)\"}"
  api $WAGGLE/api/v1/sessions/$SESSION/messages -d "{\"content\": \"say thanks\", \"files\": [$TODO]}" >/dev/null
  events sessions/$SESSION message.received | jq -r 'select(.data.files).data.files[] | "\(.name) \(.object.digest)"' |
    while read -r name digest; do echo "$name $(api $WAGGLE/api/v1/sessions/$SESSION/files/$digest)"; done
}

cancel() {
  SESSION=$(api $WAGGLE/api/v1/sessions -d '{}' | jq -r .session_id)
  RUN=$(api $WAGGLE/api/v1/sessions/$SESSION/messages -d '{"content": "tell me the story"}' | jq -r .run_id)
  api $WAGGLE/api/v1/sessions/$SESSION/cancel -d "{\"run_id\": \"$RUN\", \"reason\": \"it is late\"}" >/dev/null
  events sessions/$SESSION run.cancelled | jq -r 'select(.type == "run.cancelled").type'
}

team() {
  TEAM=$(api $WAGGLE/api/v1/teams -d '{"name": "site", "coordinator": "Boss", "members": [{"name": "Boss"}, {"name": "Coder"}]}' | jq -r .team_id)
  api $WAGGLE/api/v1/teams/$TEAM/messages -d '{"content": "say hello to the bees", "target": "Coder"}' >/dev/null
  events teams/$TEAM run.completed | jq -r 'select(.data.event.type == "run.completed").data | "\(.member_name): \(.event.data.content)"'
  api -X DELETE $WAGGLE/api/v1/teams/$TEAM
}

task() {
  TASK=$(api $WAGGLE/api/v1/tasks -d '{"agent_name": "shouter", "data": {"text": "hello"}}' | jq -r .task_id)
  events tasks/$TASK task.finished | jq -r 'select(.type == "task.finished").data.result'
}

sessions() {
  api "$WAGGLE/api/v1/sessions?q=notes" | jq -r '.sessions[] | "\(.session_id) \(.state) \(.question)"'
}
