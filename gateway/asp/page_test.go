package asp_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

var kinds = []string{command.ParticipantClient, command.ParticipantAgent, command.ParticipantService}

// TestTheTableIsComplete: every message of the three lists has one meaning, and the
// table no other message.
func TestTheTableIsComplete(t *testing.T) {
	for _, kind := range kinds {
		var in, out, aliases []string
		for _, r := range asp.Table(kind) {
			require.NotEmpty(t, r.Means, "%s %s", kind, r.Type)
			if !r.In {
				out = append(out, r.Type)
				continue
			}
			in, aliases = append(in, r.Type), append(aliases, r.Aliases...)
		}
		require.ElementsMatch(t, types[kind].In, in)
		require.ElementsMatch(t, types[kind].Out, out)
		require.Len(t, aliases, len(types[kind].Aliases))
	}
	require.Nil(t, asp.Table("nobody"))
}

// silent are the events of swarm tasks of which a client is told nothing: its request
// is answered otherwise, or it is the agent's business.
var silent = []event.Type{event.InboxCreated, event.InboxRegistered, event.TaskRefused}

// TestEveryEventOfASwarmIsTold: an event of a client's log has frames, or is one of
// those that are meant to have none.
func TestEveryEventOfASwarmIsTold(t *testing.T) {
	swarm := regexp.MustCompile(`^(inbox|child|call)\.`)
	tasks := []event.Type{
		event.TaskCreated, event.TaskQueued, event.TaskAssigned, event.TaskReported, event.TaskNotified, event.TaskMessaged,
		event.TaskReleased, event.TaskRefused, event.TaskAsked, event.TaskAskExpired, event.TaskFinished,
	}
	for _, info := range event.Catalogue {
		e := event.Event{ID: "e", Type: info.Type, Subject: "default.inbox.c", Sequence: 7, Time: dialecttest.Now, Data: []byte(`{"kind":"service"}`)}
		got := codecs[command.ParticipantClient].Encode(e)
		if slices.Contains(silent, info.Type) || !swarm.MatchString(string(info.Type)) && !slices.Contains(tasks, info.Type) {
			require.Empty(t, got, "%s", info.Type)
			continue
		}
		require.NotEmpty(t, got, "%s", info.Type)
	}
}

const page = "../../docs/PROTOCOL-ASP.md"

var headings = map[string]string{command.ParticipantClient: "## Clients", command.ParticipantAgent: "## Agents", command.ParticipantService: "## Services"}

// TestThePage: the page lists every message with its other names and its meaning, and
// has an example of each. The codec accepts the frames of a participant, and those of the server are
// lines of a transcript.
func TestThePage(t *testing.T) {
	for _, kind := range kinds {
		sends, sent := dialecttest.Part(t, page, headings[kind]+": what they send"), dialecttest.Part(t, page, headings[kind]+": what they are sent")
		var in, out []string
		for _, r := range asp.Table(kind) {
			row := "| `" + r.Type + "` |"
			if !r.In {
				out = append(out, row+" "+r.Means+" |")
				continue
			}
			if row += " "; len(r.Aliases) > 0 {
				row += "`" + strings.Join(r.Aliases, "`, `") + "`"
			}
			in = append(in, row+" | "+r.Means+" |")
		}
		require.Equal(t, in, rows(sends))
		require.Equal(t, out, rows(sent))

		known, shown := dialecttest.Said(t, "testdata/"+kind), map[string]bool{}
		for _, line := range dialecttest.Shown(sent) {
			require.True(t, known[line], "an example of the page is in no transcript: %s", line)
			shown["out "+typeOf(t, line)] = true
		}
		for _, line := range dialecttest.Shown(sends) {
			_, _, err := codecs[kind].Orders([]byte(line), asp.Inbound{
				Participant: registered(kind), OnlyTask: "task-1", LastTask: "task-1", Now: dialecttest.Now, NewID: func() string { return "new-1" },
			})
			require.NoError(t, err, line)
			shown["in "+typeOf(t, line)] = true
		}
		for _, r := range asp.Table(kind) {
			require.True(t, shown[map[bool]string{true: "in ", false: "out "}[r.In]+r.Type], "the page has no example of %s", r.Type)
		}
	}
}

// TestTheDifferences: the table names messages of the protocol only, and every member of the
// description's examples that no frame has.
func TestTheDifferences(t *testing.T) {
	text := dialecttest.Part(t, page, "## Where this differs from the description")
	known := map[string]bool{}
	for _, kind := range kinds {
		for _, r := range asp.Table(kind) {
			known[r.Type] = true
		}
	}
	lines := regexp.MustCompile(`(?m)^\| (.+?) \| (.+?) \| .+ \|$`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(lines), 15)
	for _, line := range lines {
		for _, name := range regexp.MustCompile("`([a-z.]+)`").FindAllStringSubmatch(line[1], -1) {
			require.True(t, known[name[1]], "%s is no message", name[1])
		}
	}
	for _, member := range unsaid {
		message, path, _ := strings.Cut(member, " content.")
		require.Regexp(t, "(?m)^\\| `"+message+"` \\| no `"+path+"`", text)
	}
}

// rows returns the rows of the tables in a text that begin with the name of a message.
func rows(text string) []string {
	return regexp.MustCompile("(?m)^\\| `[a-z.]+` \\|.*$").FindAllString(text, -1)
}

func typeOf(t *testing.T, line string) string {
	t.Helper()
	var v struct {
		Type string `json:"type"`
	}
	require.NoError(t, json.Unmarshal([]byte(line), &v), line)
	return v.Type
}
