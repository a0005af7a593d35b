package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// thinks is a reasoning with the text, which its provider wants back with the secret.
func thinks(text, secret string) event.ReasoningCompletedData {
	return event.ReasoningCompletedData{
		MessageID: "m1", RunID: "w-r1", ExecutionID: "exec_x", Attempt: 1, Content: text,
		PassBack: &event.PassBack{Provider: "anthropic@api.anthropic.com", Data: json.RawMessage(`{"signature":"` + secret + `"}`)},
	}
}

// TestNoWayOutShowsWhatAProviderWantsBack: reasoning comes without it from every request and stream that shows a log, of a
// session, a task, a member and a team, and in every protocol.
func TestNoWayOutShowsWhatAProviderWantsBack(t *testing.T) {
	r := start(t, spoken)
	const secret, text = "s3cret-signature", "Let me see."
	all := r.reads(topics("events"))
	_, session := r.thread(running("r1")...)
	task, member, team := r.runLog(id.KindTask, "default"), r.runLog(id.KindMember, "default"), r.runLog(id.KindTeam, "default")
	logs := []subject.Log{session, task, member, team}
	for _, l := range logs {
		r.happens(l, event.MessageStartedData{MessageID: "m1", RunID: "w-r1", ExecutionID: "exec_x", Attempt: 1, Role: event.RoleAssistant}, thinks(text, secret))
	}
	r.relay(team, "Coder", 2, thinks(text, secret))
	for _, l := range logs {
		last := `"type":"notice"`
		r.happens(l, event.NoticeData{Message: "the end"})
		path := "/api/v1/logs/" + string(l.Kind) + "/" + l.Entity.String()
		paths := []string{path + "/events?after=0", path + "/events", path + "/export", path + "/snapshot"}
		if l.Kind == id.KindSession {
			paths = append(paths, "/api/v1/sessions/"+l.Entity.String()+"/events", "/agui/threads/"+l.Entity.String()+"/messages")
		}
		for _, as := range []string{"orbit", "myagent", "agent-team", "agui", "agui-0", "asp"} {
			paths = append(paths, path+"/frames?as="+as)
		}
		for _, p := range paths {
			status, body, _ := r.get(p)
			if status == http.StatusUnprocessableEntity {
				continue // the protocol does not show this kind of log
			}
			require.Equal(t, http.StatusOK, status, "%s: %s", p, body)
			require.NotContains(t, body, secret, p)
			require.NotContains(t, body, "pass_back", p)
			if strings.Contains(p, "/events") || strings.Contains(p, "/export") {
				require.Contains(t, body, text, p)
				require.Contains(t, body, "reasoning.completed", p)
			}
		}
		s := r.reads(topics(topicOf(l, 0)))
		for seen := ""; !strings.Contains(seen, last); {
			seen = s.must().data
			require.NotContains(t, seen, secret)
		}
		s.leave()
	}
	for ends := 0; ends < len(logs); {
		m := all.must()
		require.NotContains(t, m.data, secret)
		if strings.Contains(m.data, "the end") {
			ends++
		}
	}
}
