package asp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestWatchingAnyRun: nothing that matters is dropped, and members of a team look as they do by themselves.
func TestWatchingAnyRun(t *testing.T) {
	dialecttest.ExerciseWatching(t, dialecttest.Watch{
		Encode: []func(event.Event) [][]byte{codecs[command.ParticipantClient].Encode},
		Kind:   "type", Outbound: wire.Client.Out, Schema: wire.Schema, Groups: []string{"client.out"},
		Member: func(f map[string]any) string {
			at, _ := f["watched"].(map[string]any)
			member, _ := at["member"].(string)
			return member
		},
		Strip: func(f map[string]any) {
			for _, name := range []string{"id", "watched"} {
				delete(f, name)
			}
			content, _ := f["content"].(map[string]any)
			for _, name := range []string{"agentId", "agentName"} {
				delete(content, name)
			}
		},
	})
}

// TestOneQuestionHasManyAnswers: whatever shape an SDK gives to an answer, it is the same.
func TestOneQuestionHasManyAnswers(t *testing.T) {
	in := asp.Inbound{
		Participant: registered(command.ParticipantClient), Now: dialecttest.Now, NewID: func() string { return "new-1" },
		Watched: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: id.EntityFromExternal("agent_1")},
	}
	for message, want := range map[string]bool{
		`true`: true, `false`: false, `"approve"`: true, `" Approved "`: true, `"reject"`: false, `{"text":"approve"}`: true,
		`{"approved":false,"text":"approve"}`: false, `{"decision":"reject"}`: false, `{"approved":true}`: true,
	} {
		for _, head := range []string{`"taskId":"watched/q"`, `"taskId":"watched/run_1","inputId":"q"`, `"taskId":"watched/q","messageType":"input_response"`} {
			orders, _, err := codecs[command.ParticipantClient].Orders([]byte(`{"id":"r","type":"task.message","content":{`+head+`,"message":`+message+`}}`), in)
			require.NoError(t, err)
			require.Len(t, orders, 2, "the intent, and that it was sent")
			require.Empty(t, orders[0].Task, "it is about the watched run")
			require.Equal(t, dialect.Answer{InputID: "q", Approved: want}, orders[0].Intent.Data, message)
		}
	}
}

// TestWithoutAWatchedRunNothingIsMarked: a socket that watches nothing takes a marked id
// for the id of a task.
func TestWithoutAWatchedRunNothingIsMarked(t *testing.T) {
	in := asp.Inbound{Participant: registered(command.ParticipantClient), Now: dialecttest.Now, NewID: func() string { return "new-1" }}
	orders, _, err := codecs[command.ParticipantClient].Orders([]byte(`{"type":"task.message","content":{"taskId":"watched/q","message":true}}`), in)
	require.NoError(t, err)
	require.Len(t, orders, 1)
	require.Equal(t, "watched/q", orders[0].Task)
}

// TestExamplesOfWatching: what the server sends is a line of a transcript, and what a
// client sends is understood.
func TestExamplesOfWatching(t *testing.T) {
	known := dialecttest.Said(t, "testdata/"+command.ParticipantClient)
	in := asp.Inbound{
		Participant: registered(command.ParticipantClient), Now: dialecttest.Now, NewID: func() string { return "new-1" },
		Watched: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("team_1")},
	}
	examples := dialecttest.Shown(dialecttest.Part(t, page, "## Watching any run"))
	require.NotEmpty(t, examples)
	for _, line := range examples {
		if known[line] {
			continue
		}
		orders, _, err := codecs[command.ParticipantClient].Orders([]byte(line), in)
		require.NoError(t, err, line)
		require.NotNil(t, orders[0].Intent, line)
		require.Empty(t, orders[0].Task, line)
	}
}
