package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/rpc"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// teamDialect is a minimal dialect of sockets whose path or query names the log to show. An event
// of a completed run gives three frames, any other event one.
type teamDialect struct{}

func (teamDialect) Name() string                           { return "team" }
func (teamDialect) Bind(url.Values) (dialect.Codec, error) { return teamDialect{}, nil }

func (teamDialect) BindTeams(url.Values) (dialect.Teams, error) { return teamDialect{}, nil }

// Frames carry positions: of all but the last of an event sequence*16 and their number.
func (teamDialect) Place(position uint64) (seq uint64, skip int) {
	if n := position & 15; n != 15 {
		return position>>4 - 1, int(n) + 1
	}
	return position >> 4, 0
}

// teamFrame is a frame of the gateway.
type teamFrame struct {
	Kind string          `json:"kind"`
	At   uint64          `json:"at,omitempty"`
	Of   string          `json:"of,omitempty"` // the log
	Type string          `json:"type,omitempty"`
	Who  string          `json:"who,omitempty"` // the member's route
	ID   string          `json:"id,omitempty"`
	Code string          `json:"code,omitempty"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func say(s teamFrame) []byte {
	b, _ := json.Marshal(s)
	return b
}

func (teamDialect) Encode(e event.Event) [][]byte {
	log := e.Subject
	if e = event.Unwrap(e); e.Sequence == 0 {
		return nil // a message of the gateway itself
	}
	n := 1
	if e.Type == event.RunCompleted {
		n = 3
	}
	var out [][]byte
	for i := range n {
		at := e.Sequence*16 + 15
		if i < n-1 {
			at = e.Sequence*16 + uint64(i)
		}
		out = append(out, say(teamFrame{Kind: "event", At: at, Of: log, Type: string(e.Type), Who: e.Via.Route, Data: e.Data}))
	}
	return out
}

func (teamDialect) Welcome(at dialect.Link, name string, view *wirecmd.TeamAttachReply) [][]byte {
	out := [][]byte{say(teamFrame{Kind: "connected", ID: name, Text: at.ConnectionID})}
	if view == nil {
		return out
	}
	for _, m := range view.Members {
		out = append(out, say(teamFrame{Kind: "member", ID: m.Name, Text: m.Status}))
	}
	return out
}

func (teamDialect) Greet(dialect.Greeting) [][]byte { panic("sockets of teams are welcomed") }

func (teamDialect) Fail(f *fault.Fault, _ time.Time) []byte {
	return say(teamFrame{Kind: "failed", Code: string(f.Code), Text: f.Public()})
}

func (teamDialect) FailBy(member string, f *fault.Fault, _ time.Time) []byte {
	return say(teamFrame{Kind: "failed", Code: string(f.Code), Text: f.Public(), Who: member})
}

func (teamDialect) Truncated(first uint64, _ time.Time) []byte {
	return say(teamFrame{Kind: "truncated", At: first})
}

// teamRequest is a frame of a client.
type teamRequest struct {
	Ask    string `json:"ask"`
	To     string `json:"to"`
	Text   string `json:"text"`
	Digest string `json:"digest,omitempty"`
}

func (teamDialect) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	var a teamRequest
	if err := json.Unmarshal(frame, &a); err != nil {
		return nil, fault.New(fault.InvalidField).Wrap(err)
	}
	i := dialect.Intent{ID: in.NewID(), Member: a.To}
	switch a.Ask {
	case "say":
		i.Data = dialect.SendMessage{Content: a.Text}
	case "approve":
		i.Data = dialect.Answer{CallID: a.Text, Digest: a.Digest, Approved: true}
	case "stop":
		i.Data = dialect.Cancel{Reason: a.Text}
	case "pause":
		i.Data = dialect.PauseTeam{}
	default:
		return nil, fault.New(fault.UnknownType)
	}
	return []dialect.Intent{i}, nil
}

// singleDialect is a dialect of sockets that show one log each, with all commands.
type singleDialect struct{}

func (singleDialect) Name() string                           { return "single" }
func (singleDialect) Bind(url.Values) (dialect.Codec, error) { return singleDialect{}, nil }
func (singleDialect) Encode(e event.Event) [][]byte          { return multiCodec("single").Encode(e) }

func (singleDialect) Greet(g dialect.Greeting) [][]byte {
	return [][]byte{say(teamFrame{Kind: "greeting", ID: g.SessionID, At: g.Seq})}
}

func (singleDialect) Fail(f *fault.Fault, now time.Time) []byte { return teamDialect{}.Fail(f, now) }

func (singleDialect) Truncated(first uint64, now time.Time) []byte {
	return teamDialect{}.Truncated(first, now)
}

func (singleDialect) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	return teamDialect{}.Decode(frame, in)
}

// Paths of the sockets of the tests.
const (
	pathTeams   = "/ws/agent-team/"
	pathMembers = "/ws/agent/"
	pathRuns    = "/ws/agent-team"
	pathSingle  = "/singleDialect"
)

// withTestDialects adds the dialects of the tests to a gateway.
func withTestDialects(_ *gateway.Config, dep *gateway.Deps) {
	addRoutes(dep, map[string]gateway.Route{
		"/ws/agent-team/{team_id}": gateway.Team(teamDialect{}), "/ws/agent/{agent_id}": gateway.Team(teamDialect{}), pathRuns: gateway.Team(teamDialect{}),
		pathSingle: gateway.Single(singleDialect{}), pathSessions: gateway.Multi(multiDialect{}),
	})
}

// addRoutes adds routes to those of a gateway.
func addRoutes(dep *gateway.Deps, routes map[string]gateway.Route) {
	dep.Routes = maps.Clone(dep.Routes)
	maps.Copy(dep.Routes, routes)
}

// teamService answers requests in place of the team service.
type teamService struct {
	r   *rig
	srv *rpc.Server

	mu      sync.Mutex
	from    uint64
	recent  uint64
	members int // members of every team
	asked   []wirecmd.TeamAttachRequest
	began   chan struct{} // of requests that are never answered; nil = all are
}

func (r *rig) startTeamService() *teamService {
	d := &teamService{r: r, members: 1}
	d.srv = rpc.NewServer(r.conn, rpc.Config{Service: wirecmd.Team, Logger: zerolog.Nop()})
	rpc.Handle(d.srv, wirecmd.AttachTeam, d.attach)
	require.NoError(r.t, d.srv.Start(context.Background()))
	r.t.Cleanup(d.srv.Stop)
	return d
}

func (d *teamService) attach(ctx context.Context, in wirecmd.TeamAttachRequest) (out wirecmd.TeamAttachReply, err error) {
	d.mu.Lock()
	began := d.began
	d.mu.Unlock()
	if began != nil {
		close(began)
		<-ctx.Done()
		return out, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, in)
	last, err := d.r.log.Last(ctx, subject.Log{Tenant: in.Tenant, Kind: in.Kind, Entity: in.ID})
	switch {
	case err != nil:
		return out, err
	case last.Seq == 0 && in.Kind == id.KindMember:
		return out, fault.New(fault.AgentNotFound)
	case last.Seq == 0:
		return out, fault.New(fault.TeamNotFound)
	}
	out.Head, out.From, out.Recent = last.Seq, d.from, d.recent
	out.Definition.Coordinator = "m0"
	for i := range d.members {
		out.Members = append(out.Members, wirecmd.MemberView{Name: fmt.Sprintf("m%d", i), Status: "idle"})
	}
	return out, nil
}

func (d *teamService) begins(after uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.from, d.recent = after, after
}

// startTeams starts a gateway for teams, and the services of the test.
func startTeams(t testing.TB, opts ...option) (*rig, *teamService) {
	t.Helper()
	r := prepare(t, sharedBus(t))
	r.srv = r.server(append([]option{withTestDialects}, opts...)...)
	startSessionService(r)
	r.serve()
	return r, r.startTeamService()
}

// open opens a socket under a path.
func (r *rig) open(path, query string, header ...string) *client {
	r.t.Helper()
	r.path = path
	return r.dial(query, header...)
}

// runLog makes a log of the kind with its first event.
func (r *rig) runLog(kind id.Kind, tenant string) subject.Log {
	r.t.Helper()
	l := subject.Log{Tenant: mustTenant(r.t, tenant), Kind: kind, Entity: id.EntityFromExternal("team_" + unique())}
	var first event.Data = event.SessionCreatedData{Dialect: "orbit"}
	switch kind {
	case id.KindTeam:
		first = event.TeamCreatedData{TeamID: l.Entity.String()}
	case id.KindMember:
		entity, err := id.MemberAgent(l.Entity, "Coder")
		require.NoError(r.t, err)
		l.Entity = entity
		first = event.MemberCreatedData{MemberID: entity.String()}
	case id.KindTask:
		first = event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: l.Entity.String()}}
	}
	require.NoError(r.t, r.append(l, "created", first))
	return l
}

// relay appends an event of a member to a team's log.
func (r *rig) relay(team subject.Log, member string, seq uint64, data event.Data) {
	r.t.Helper()
	agent, err := id.MemberAgent(team.Entity, member)
	require.NoError(r.t, err)
	inner, err := event.New(subject.Log{Tenant: team.Tenant, Kind: id.KindMember, Entity: agent}, unique(), "test", time.Now(), data)
	require.NoError(r.t, err)
	inner.Sequence = seq
	raw, err := json.Marshal(inner)
	require.NoError(r.t, err)
	require.NoError(r.t, r.append(team, fmt.Sprintf("%s.%d", agent, seq), event.TeamMemberEventData{
		MemberName: member, MemberID: agent.String(), Seq: seq, Event: raw,
	}))
}

func runCompleted(text string) event.Data {
	return event.RunCompletedData{RunID: "r", ExecutionID: "exec_x", Attempt: 1, MessageID: "m", Content: text}
}

func messageDelta(text string) event.Data {
	return event.MessageDeltaData{MessageID: "m", RunID: "r", ExecutionID: "exec_x", Attempt: 1, Text: text}
}

// nextTeamFrame returns the next frame.
func (c *client) nextTeamFrame() (f teamFrame) {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err)
	require.NoError(c.t, json.Unmarshal(b, &f), "%s", b)
	return f
}

// expectTeamFrame returns the next frame, which has to be of the kind.
func (c *client) expectTeamFrame(kind string) teamFrame {
	c.t.Helper()
	f := c.nextTeamFrame()
	require.Equal(c.t, kind, f.Kind, "%+v", f)
	return f
}

// expectWelcome reads the first frame of a team socket.
func (c *client) expectWelcome(name string) teamFrame {
	c.t.Helper()
	f := c.expectTeamFrame("connected")
	require.Equal(c.t, name, f.ID)
	return f
}

// expectRefusal reads the fault that a socket is closed for.
func (c *client) expectRefusal(code fault.Code, closed int) {
	c.t.Helper()
	f := c.expectTeamFrame("failed")
	require.Equal(c.t, string(code), f.Code, f.Text)
	c.closes(closed)
}

// sendTeam sends a frame.
func (c *client) sendTeam(ask, to, what string) {
	c.t.Helper()
	c.sendTeamFrame(teamRequest{Ask: ask, To: to, Text: what})
}

func (c *client) sendTeamFrame(f teamRequest) {
	c.t.Helper()
	b, err := json.Marshal(f)
	require.NoError(c.t, err)
	c.write(frame(fin|opText, b))
}

// raw returns the next n frames unparsed.
func (c *client) raw(n int) []string {
	c.t.Helper()
	out := []string{}
	for range n {
		b, err := c.text()
		require.NoError(c.t, err, "after %d of %d frames: %s", len(out), n, strings.Join(out, "\n"))
		out = append(out, string(b))
	}
	return out
}

// sendDirect sends a direct message to the connection that sent a command.
func (r *rig) sendDirect(to string, about subject.Log, data event.Data) {
	r.t.Helper()
	require.NoError(r.t, r.conn.NATS().Publish(directSubject(r.t, to), r.direct(about, data)))
}

// confirmed is sendDirect that waits until the gateway has the message. It may be called on any goroutine.
func (r *rig) confirmed(to string, about subject.Log, data event.Data) {
	_, err := r.conn.NATS().Request(directSubject(r.t, to), r.direct(about, data), maxWait)
	assert.NoError(r.t, err)
}

func (r *rig) direct(about subject.Log, data event.Data) []byte {
	e, err := event.New(about, unique(), "test", time.Now(), data)
	assert.NoError(r.t, err)
	b, err := json.Marshal(e)
	assert.NoError(r.t, err)
	return b
}
