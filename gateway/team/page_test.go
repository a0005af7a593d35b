package team_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

const (
	page         = "../../docs/PROTOCOL-TEAM.md"
	messagesPage = "../../docs/generated/team-messages.md"
)

// TestTheTableIsComplete: every message has one meaning, and the table no other message.
func TestTheTableIsComplete(t *testing.T) {
	var in, out []string
	for _, r := range team.Table() {
		require.NotEmpty(t, r.Means, r.Type)
		if r.In {
			in = append(in, r.Type)
			continue
		}
		out = append(out, r.Type)
	}
	require.Equal(t, wire.Inbound, in)
	require.Equal(t, wire.Outbound, out)
}

// TestThePage: the page lists every message with its meaning, and has an example of each.
// The codec accepts the frames of a client, and those of the server are lines of a transcript.
func TestThePage(t *testing.T) {
	var in, out []string
	for _, r := range team.Table() {
		row := "| `" + r.Type + "` | " + r.Means + " |"
		if r.In {
			in = append(in, row)
		} else {
			out = append(out, row)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `[A-Z_]+` \\|.*$")
	require.Equal(t, in, rows.FindAllString(dialecttest.Part(t, page, "### From the client"), -1))
	require.Equal(t, out, rows.FindAllString(dialecttest.Part(t, page, "### To the client"), -1))

	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	codec, known, shown := bound(t, team.Teams(), ""), dialecttest.Said(t, "testdata/*"), map[string]bool{}
	for _, line := range dialecttest.Shown(string(raw)) {
		kind := nameOf([]byte(line))
		shown[kind] = true
		dialecttest.Fits(t, wire.Schema, kind, []byte(line))
		if slices.Contains(wire.Inbound, kind) {
			_, err := codec.Decode([]byte(line), inbound())
			require.NoError(t, err, line)
			continue
		}
		require.True(t, known[line], "an example of the page is in no transcript: %s", line)
	}
	for _, kind := range append(append([]string{wire.EnvelopeSchema, wire.StreamEventSchema}, wire.Inbound...), wire.Outbound...) {
		require.True(t, shown[kind], "the page has no example of %s", kind)
	}
	for kind, name := range wire.EventTypes {
		if kind != wire.AssistantChunk && kind != wire.TeamStatus && kind != wire.TaskPlanEvent {
			require.Contains(t, dialecttest.Part(t, page, "## The envelope form"), "`"+name+"`", "%s", kind)
		}
	}
}

// TestWatchingAnyRun: nothing that matters is dropped, at any depth of a team.
func TestWatchingAnyRun(t *testing.T) {
	dialecttest.ExerciseWatchingTeams(t, dialecttest.Watch{
		Encode: []func(event.Event) [][]byte{bound(t, team.Teams(), withAdditions).Encode, bound(t, team.Agents(), withAdditions).Encode},
		Kind:   "type", Outbound: wire.Outbound, Schema: wire.Schema,
		Member: func(f map[string]any) string {
			p, _ := f["payload"].(map[string]any)
			route, _ := p["member_route_key"].(string)
			return route
		},
	})
}

// TestQuestionsFailuresAndAnswers: the envelope form has as many frames as the
// flattened one.
func TestQuestionsFailuresAndAnswers(t *testing.T) {
	flat, deep := bound(t, team.Teams(), withAdditions), bound(t, team.Teams(), "envelope")
	for _, info := range event.Catalogue {
		for n := range 3 {
			e := event.Event{
				ID: "e", Type: info.Type, Subject: teamLog.Name(), Sequence: 7, Time: dialecttest.Now,
				Data: dialecttest.Filled(t, info, "failed", `{"text":"x"}`, n),
			}
			for depth := range 4 {
				nested := dialecttest.Nest(t, e, depth, "")
				require.Len(t, deep.Encode(nested), len(flat.Encode(nested)), "%s", info.Type)
			}
		}
	}
}

// TestMessagesPage: the page that lists all messages has a row for each, with its
// origin. The column of tests comes from package e2e. -update writes the page.
func TestMessagesPage(t *testing.T) {
	rows := messageRows(t)
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(messagesPage, []byte(dialecttest.MessagesPage(messagesTitle, messagesAbout, rows, nil)), 0o600))
	}
	raw, err := os.ReadFile(messagesPage)
	require.NoError(t, err)
	bundled, err := os.ReadFile("../../" + bundlePath)
	require.NoError(t, err)
	defined, err := bundle.Messages(string(bundled), "in")
	require.NoError(t, err)
	out, err := bundle.Messages(string(bundled), "out")
	require.NoError(t, err)
	defined = append(defined, out...)
	at := 0
	for _, r := range rows {
		i := strings.Index(string(raw)[at:], "\n"+r.String())
		require.GreaterOrEqual(t, i, 0, "the page is stale: it has no row, or another, of %s; run with -update", r.Type)
		at += i
		require.Contains(t, defined, r.Type)
	}
	require.Equal(t, len(rows), strings.Count(string(raw), "\n| `"), "the page has rows of what is no message")
}

const (
	bundlePath    = "proto-schemas/team/schema.json"
	messagesTitle = "The messages of agent teams"
	messagesAbout = "Each message with its JSON Schema, and the canonical events that it is made of, or the command that it becomes."
)

// commands are what the messages of clients become.
var commands = map[string]string{
	wire.SendMessage: "command `message`", wire.StopGeneration: "command `cancel`", wire.ApproveTool: "command `respond`",
	wire.DenyTool: "command `respond`", wire.Pause: "command `pause`", wire.Resume: "command `resume`",
}

func messageRows(t *testing.T) []dialecttest.MessageRow {
	t.Helper()
	made := dialecttest.Made(t, bound(t, team.Teams(), withAdditions).Encode, nameOf)
	var rows []dialecttest.MessageRow
	for _, r := range team.Table() {
		row := dialecttest.MessageRow{Type: r.Type, In: r.In, Schema: bundlePath}
		var from []string
		for _, kind := range made[r.Type] {
			from = append(from, "`"+string(kind)+"`")
		}
		switch row.Where = strings.Join(from, ", "); {
		case r.In:
			row.Where = commands[r.Type]
		case r.Type == wire.Connected:
			row.Where = "the handshake"
		}
		require.NotEmpty(t, row.Where, r.Type)
		rows = append(rows, row)
	}
	return rows
}
