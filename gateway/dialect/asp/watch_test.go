package asp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestWatchingAnyRun: the table of the page is what the codec does, nothing that matters
// is dropped, and members of a team look as they do by themselves.
func TestWatchingAnyRun(t *testing.T) {
	dialecttest.ExerciseWatching(t, dialecttest.Watch{
		Encode: []func(event.Event) [][]byte{codecs[command.PeerClient].Encode},
		Kind:   "type", Outbound: wire.Client.Out, Schema: wire.Schema, Groups: []string{"client.out"}, Page: "../../../docs/PROTOCOL-ASP.md",
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
	in := dialect.PeerInbound{
		Peer: dialecttest.Registered(command.PeerClient), Now: dialecttest.Now, NewID: func() string { return "new-1" },
		Watched: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: id.EntityFromExternal("agent_1")},
	}
	for message, want := range map[string]bool{
		`true`: true, `false`: false, `"approve"`: true, `" Approved "`: true, `"reject"`: false, `{"text":"approve"}`: true,
		`{"approved":false,"text":"approve"}`: false, `{"decision":"reject"}`: false, `{"approved":true}`: true,
	} {
		for _, head := range []string{`"taskId":"watched/q"`, `"taskId":"watched/run_1","inputId":"q"`, `"taskId":"watched/q","messageType":"input_response"`} {
			orders, _, err := codecs[command.PeerClient].Orders([]byte(`{"id":"r","type":"task.message","content":{`+head+`,"message":`+message+`}}`), in)
			require.NoError(t, err)
			require.Len(t, orders, 2, "the command, and that it was sent")
			require.Equal(t, command.Answer, orders[0].Command.Verb)
			require.Equal(t, in.Watched.Entity, orders[0].Command.Key)
			var d command.AnswerQuestion
			require.NoError(t, orders[0].Command.Decode(&d))
			require.Equal(t, command.AnswerQuestion{InputID: "q", Approved: want}, d, message)
		}
	}
}

// TestWithoutAWatchedRunNothingIsMarked: a socket that watches nothing takes a marked id
// for the id of a task.
func TestWithoutAWatchedRunNothingIsMarked(t *testing.T) {
	in := dialect.PeerInbound{Peer: dialecttest.Registered(command.PeerClient), Now: dialecttest.Now, NewID: func() string { return "new-1" }}
	orders, _, err := codecs[command.PeerClient].Orders([]byte(`{"type":"task.message","content":{"taskId":"watched/q","message":true}}`), in)
	require.NoError(t, err)
	require.Len(t, orders, 1)
	require.Equal(t, command.Task, orders[0].Command.Service)
}

// TestExamplesOfWatching: what the server sends is a line of a transcript, and what a
// client sends is understood.
func TestExamplesOfWatching(t *testing.T) {
	known := dialecttest.Said(t, "testdata/"+command.PeerClient)
	in := dialect.PeerInbound{
		Peer: dialecttest.Registered(command.PeerClient), Now: dialecttest.Now, NewID: func() string { return "new-1" },
		Watched: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("team_1")},
	}
	examples := dialecttest.Shown(dialecttest.Part(t, page, "## Watching any run"))
	require.NotEmpty(t, examples)
	for _, line := range examples {
		if known[line] {
			continue
		}
		orders, _, err := codecs[command.PeerClient].Orders([]byte(line), in)
		require.NoError(t, err, line)
		require.Equal(t, in.Watched.Entity, orders[0].Command.Key, line)
	}
}
