package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/internal/rpc"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	teamwire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// teamFrame is what a frame says to a client that shows one log: in the protocol of agent teams, or in singleDialect, whose frames
// have this form.
type teamFrame struct {
	Kind string          `json:"kind"` // connected, status, event, truncated, failed; greeting
	At   uint64          `json:"at,omitempty"`
	Of   string          `json:"of,omitempty"`   // id of the log
	Type string          `json:"type,omitempty"` // of the message of the protocol
	Who  string          `json:"who,omitempty"`  // the member's route
	ID   string          `json:"id,omitempty"`
	Code string          `json:"code,omitempty"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// readTeamFrame reads a frame of either protocol.
func readTeamFrame(b []byte) (f teamFrame, err error) {
	if err = json.Unmarshal(b, &f); err != nil || f.Kind != "" {
		return f, err
	}
	var m struct {
		Payload json.RawMessage `json:"payload"`
	}
	var p struct {
		teamwire.Where
		TeamID    string `json:"team_id"`
		SessionID string `json:"session_id"` // of the connection
		Code      string `json:"code"`
		Message   string `json:"message"`
		FirstSeq  uint64 `json:"first_seq"`
		NewStatus string `json:"new_status"`
	}
	if err = errors.Join(json.Unmarshal(b, &m), json.Unmarshal(m.Payload, &p)); err != nil {
		return f, err
	}
	switch {
	case f.Type == teamwire.Connected:
		f.Kind, f.ID, f.Text = "connected", p.TeamID+p.AgentID, p.SessionID
	case p.Stream != nil:
		f.Kind, f.At, f.Of, f.Who, f.Data = "event", p.Stream.Sequence, p.Stream.TeamRunID, p.MemberRouteKey, m.Payload
	case p.NewStatus != "":
		f.Kind, f.ID, f.Text = "status", p.AgentName, p.NewStatus
	case p.FirstSeq != 0:
		f.Kind, f.At = "truncated", p.FirstSeq
	case f.Type == teamwire.Error:
		f.Kind, f.Code, f.Text, f.Who = "failed", p.Code, p.Message, p.AgentName
	default:
		err = fmt.Errorf("a frame that no test knows: %s", b)
	}
	return f, err
}

// teamRequest is a request of a client.
type teamRequest struct {
	Ask    string // a key of teamTypes
	To     string // path to a member
	Text   string // to say, or the call that is answered
	Digest string // of the call, as the question showed it
}

// teamTypes are the types of messages of the protocol of agent teams.
var teamTypes = map[string]string{
	"say": teamwire.SendMessage, "approve": teamwire.ApproveTool, "stop": teamwire.StopGeneration, "pause": teamwire.Pause, "jump": "JUMP",
}

// message returns the message of the protocol of agent teams.
func (a teamRequest) message() map[string]any {
	payload := map[string]any{"content": a.Text}
	switch a.Ask {
	case "approve":
		payload = map[string]any{"invocation_id": a.Text}
		if a.Digest != "" {
			payload["approval_token"] = map[string]any{"invocationId": a.Text, "digest": a.Digest}
		}
	case "stop":
		payload = map[string]any{"reason": a.Text}
	}
	if a.To != "" {
		payload["member_route_key"] = a.To
	}
	return map[string]any{"type": teamTypes[a.Ask], "payload": payload}
}

// singleDialect is a minimal dialect of sockets that show one log each. It takes the messages of the protocol of agent teams, and
// has no frames for direct messages.
type singleDialect struct{}

func (singleDialect) Name() string                           { return "single" }
func (singleDialect) Bind(url.Values) (dialect.Codec, error) { return singleDialect{}, nil }

func say(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

func (singleDialect) Encode(e event.Event) [][]byte {
	if e.Sequence == 0 {
		return nil
	}
	l, err := subject.ParseName(e.Subject)
	if err != nil {
		panic(err) // it has been read from the log with the name
	}
	return [][]byte{say(multiFrame{Kind: "event", Session: l.Entity.String(), Seq: e.Sequence, Type: string(e.Type), Data: e.Data})}
}

func (singleDialect) Greet(g dialect.Greeting) [][]byte {
	return [][]byte{say(teamFrame{Kind: "greeting", ID: g.SessionID, At: g.Seq})}
}

func (singleDialect) Fail(f *fault.Fault, _ time.Time) []byte {
	return say(teamFrame{Kind: "failed", Code: string(f.Code), Text: f.Public()})
}

func (singleDialect) Truncated(first uint64, _ time.Time) []byte {
	return say(teamFrame{Kind: "truncated", At: first})
}

func (singleDialect) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	codec, err := team.Teams().Codec(nil)
	if err != nil {
		return nil, err
	}
	return codec.Decode(frame, in)
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
		"/ws/agent-team/{team_id}": gateway.Team(team.Teams()), "/ws/agent/{agent_id}": gateway.Team(team.Agents()), pathRuns: gateway.Team(team.Teams()),
		pathSingle: gateway.Single(singleDialect{}), pathSessions: gateway.Multi(sessionProtocol()),
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
	out.Head, out.From, out.Recent, out.Status = last.Seq, d.from, d.recent, event.TeamIdle
	if in.Kind == id.KindMember {
		out.Agent = &wirecmd.MemberView{ID: in.ID.String(), Name: "Coder", Status: event.AgentIdle}
		return out, nil
	}
	out.Definition.Coordinator = "m0"
	for i := range d.members {
		out.Members = append(out.Members, wirecmd.MemberView{Name: fmt.Sprintf("m%d", i), Status: event.AgentIdle})
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

// reasoned is an event with three frames in the protocol of agent teams: a whole segment.
func reasoned(text string) event.Data {
	return event.ReasoningCompletedData{RunID: "r", ExecutionID: "exec_x", Attempt: 1, MessageID: "m", Content: text}
}

func messageDelta(text string) event.Data {
	return event.MessageDeltaData{MessageID: "m", RunID: "r", ExecutionID: "exec_x", Attempt: 1, Text: text}
}

// nextTeamFrame returns the next frame.
func (c *client) nextTeamFrame() (f teamFrame) {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err)
	f, err = readTeamFrame(b)
	require.NoError(c.t, err, "%s", b)
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

// expectStatuses reads how the team and its members are, which are so many.
func (c *client) expectStatuses(members int) {
	c.t.Helper()
	f := c.expectTeamFrame("status")
	require.Equal(c.t, []string{teamwire.TeamStatus, event.TeamIdle}, []string{f.Type, f.Text})
	for i := range members {
		f = c.expectTeamFrame("status")
		require.Equal(c.t, []string{teamwire.AgentStatus, fmt.Sprintf("m%d", i), event.AgentIdle}, []string{f.Type, f.ID, f.Text})
	}
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

func (c *client) sendTeamFrame(a teamRequest) {
	c.t.Helper()
	b, err := json.Marshal(a.message())
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
