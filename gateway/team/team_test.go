package team_test

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// The logs that the sockets of the tests show.
var (
	teamLog  = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("team-1")}
	agentLog = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: id.EntityFromExternal("agent-1")}
)

// nameOf returns the name of a frame's schema.
func nameOf(frame []byte) string {
	var v any
	_ = json.Unmarshal(frame, &v) // No JSON is of no type.
	return schemaOf(v)
}

// schemaOf returns the name of a parsed frame's schema.
func schemaOf(frame any) string {
	switch {
	case dialecttest.TextAt(frame, "event_source_type") != "":
		return wire.EnvelopeSchema
	case dialecttest.TextAt(frame, "event_type") != "":
		return wire.StreamEventSchema
	}
	return dialecttest.TextAt(frame, "type")
}

func suite(t testing.TB, d team.Dialect, folder, deep string, log subject.Log) dialecttest.Suite {
	t.Helper()
	examples, err := fs.Sub(wire.Examples, "examples")
	require.NoError(t, err)
	return dialecttest.Suite{
		Dialect:     d,
		Package:     "github.com/waggle-dev/waggle/gateway/team",
		Variants:    []url.Values{{}, {"additions": {"true"}}, {"format": {"envelope"}}},
		Transcripts: "testdata/" + folder,
		Schema:      wire.Schema,
		Examples:    examples,
		Inbound:     wire.Inbound,
		Outbound:    append([]string{deep}, wire.Outbound...),
		Accepted:    accepted,
		Unsaid:      []string{wire.EnvelopeSchema + " data.error_message"},
		Log:         log,
		Name:        schemaOf,
		Beyond:      []string{"payload.approval_token.invocationId", "type"},
		Place:       team.Place,
		Said:        welcome,
	}
}

// welcome returns the frames of the line !welcome JSON, with the view of the team.
func welcome(t *testing.T, c dialect.Codec, _ []event.Event, word, arg string) [][]byte {
	t.Helper()
	require.Equal(t, "welcome", word, "unknown line in the bus section")
	codec, ok := c.(*team.Codec)
	require.True(t, ok)
	var view *command.TeamAttachReply
	require.NoError(t, json.Unmarshal([]byte(arg), &view))
	shows := dialecttest.Session.Entity.String()
	if view != nil {
		shows = view.TeamID
	}
	if view != nil && view.Agent != nil {
		shows = view.Agent.ID
	}
	return codec.Welcome(dialecttest.Link, shows, view)
}

func teams(t testing.TB) dialecttest.Suite {
	t.Helper()
	return suite(t, team.Teams(), "teams", wire.EnvelopeSchema, teamLog)
}

func agents(t testing.TB) dialecttest.Suite {
	t.Helper()
	s := suite(t, team.Agents(), "agents", wire.StreamEventSchema, agentLog)
	s.Examples = onlyFlat{s.Examples}
	s.Unsaid = append(s.Unsaid, wire.SegmentContent+" payload.agent_name") // the name of a member is its team's business
	return s
}

// onlyFlat are the examples without those of the envelope, which sockets of agents are
// not sent.
type onlyFlat struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (o onlyFlat) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(o.FS, name)
	var out []fs.DirEntry
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), wire.EnvelopeSchema) {
			out = append(out, e)
		}
	}
	return out, err
}

// accepted are messages in all shapes that are accepted, as the clients of each
// generation send them, and with what they leave out.
var accepted = []string{
	`{"type":"SEND_MESSAGE","payload":{"content":"hi"}}`,
	`{"type":"SEND_MESSAGE","payload":{"content":"hi","contextFilePaths":["a.go"],"imageUrls":["https://x/y.png"],"target_agent_name":"Writer"}}`,
	`{"type":"SEND_MESSAGE","payload":{"content":"hi","context_file_paths":["a.go"],"image_urls":[],"target_member_path":["backend_team","Coder"],"message_id":"m 1"}}`,
	`{"type":"SEND_MESSAGE","payload":{"content":"hi","target_member_route_key":"backend_team/Coder","message_id":"m1"}}`,
	`{"type":"STOP_GENERATION"}`,
	`{"type":"STOP_GENERATION","payload":null}`,
	`{"type":"STOP_GENERATION","payload":{"target_member_name":"Writer","reason":"enough"}}`,
	`{"type":"APPROVE_TOOL","payload":{"invocation_id":"call_1","agent_name":"Writer","reason":"ok","approval_token":{"teamRunId":"team-1","runVersion":1,"invocationId":"call_1","invocationVersion":1,"targetMemberName":"backend_team/Coder","digest":"abc"}}}`,
	`{"type":"APPROVE_TOOL","payload":{"invocation_id":"call_1","agent_id":"agent-1","approval_token":null}}`,
	`{"type":"DENY_TOOL","payload":{"invocation_id":"call_1","member_route_key":"backend_team/Coder"}}`,
	`{"type":"DENY_TOOL","payload":{"invocation_id":"call_1","target_member_name":"Writer","reason":null}}`,
}

func TestConformanceOfTeams(t *testing.T) { dialecttest.Exercise(t, teams(t)) }

func TestConformanceOfAgents(t *testing.T) { dialecttest.Exercise(t, agents(t)) }

func FuzzDecode(f *testing.F) { dialecttest.FuzzDecode(f, teams(f)) }

func FuzzEncode(f *testing.F) { dialecttest.FuzzEncode(f, teams(f)) }

func TestBind(t *testing.T) {
	for _, d := range []team.Dialect{team.Teams(), team.Agents()} {
		for format, want := range map[string]string{"": d.Name(), "flattened": d.Name(), "envelope": d.Name() + "+envelope"} {
			codec, err := d.Bind(url.Values{"format": {format}, "after": {"7"}, "watch": {"task/1"}})
			require.NoError(t, err)
			require.Equal(t, want, codec.Name())
			require.Empty(t, codec.Greet(dialect.Greeting{}), "the welcome greets")
		}
		_, err := d.Bind(url.Values{"format": {"yaml"}})
		require.ErrorIs(t, err, fault.New(fault.InvalidField))
		require.ErrorContains(t, err, "format")
	}
	require.NotEqual(t, team.Teams().Name(), team.Agents().Name())
}

// withAdditions is the flattened form with what the original does not have.
const withAdditions = "additions"

func bound(t testing.TB, d team.Dialect, format string) *team.Codec {
	t.Helper()
	query := url.Values{"format": {format}}
	if format == withAdditions {
		query = url.Values{"additions": {"true"}}
	}
	codec, err := d.Codec(query)
	require.NoError(t, err)
	return codec
}

// TestADamagedEventIsNotSilence: a viewer must learn that a log cannot be read.
func TestADamagedEventIsNotSilence(t *testing.T) {
	codec := bound(t, team.Teams(), "")
	for _, kind := range []event.Type{event.RunCompleted, event.TeamMemberEvent, event.TeamSubTeamEvent, ""} {
		got := codec.Encode(event.Event{Type: kind, Subject: teamLog.Name(), Sequence: 9, Time: dialecttest.Now, Data: []byte(`{"content":7,"agent_event":8}`)})
		require.Len(t, got, 1)
		require.Contains(t, string(got[0]), string(fault.Internal))
		require.Equal(t, uint64(9<<4|15), dialecttest.Position(got[0]))
		dialecttest.Fits(t, wire.Schema, wire.Error, got[0])
	}
}

func inbound() dialect.Inbound {
	return dialect.Inbound{Kind: teamLog.Kind, NewID: func() string { return "new-1" }}
}
