package waggle

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// Types of teams.
type (
	// TeamView is a team as the HTTP API shows it.
	TeamView = command.TeamView
	// TeamDefinition describes the members of a team.
	TeamDefinition = event.TeamDefinition
	// TeamFrame is a frame of a team: Type is one of package proto-schemas/team, Payload has the
	// members of that type.
	TeamFrame = team.Frame
)

// Teams lists the teams, and the names of those in the gateway's configuration, for CreateTeam.
func (c *Client) Teams(ctx context.Context) (teams []TeamView, named []string, err error) {
	var l command.TeamList
	raw, err := c.List(ctx, "teams", "teams")
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	return l.Teams, l.Named, err
}

// CreateTeam makes a team of a definition, or of the name of one in the gateway's configuration. It is made once, however often the
// request is repeated; a request that is sent again with its ID returns the same team.
//
// Errors: TEAM_INVALID, TEAM_NOT_FOUND.
func (c *Client) CreateTeam(ctx context.Context, t api.NewTeam) (TeamView, error) {
	if t.ID == "" {
		t.ID = newID()
	}
	return call[TeamView](ctx, c, http.MethodPost, t, "teams")
}

// ShowTeam returns a team, its members and its tasks.
//
// Errors: TEAM_NOT_FOUND.
func (c *Client) ShowTeam(ctx context.Context, id string) (TeamView, error) {
	return call[TeamView](ctx, c, http.MethodGet, nil, "teams", id)
}

// MessageTeam sends a team a message over HTTP. It counts once, however often the request is repeated, and so does one that is sent again
// with its ID.
//
// Errors: MEMBER_NOT_FOUND, TEAM_CLOSED, TEAM_NOT_FOUND.
func (c *Client) MessageTeam(ctx context.Context, id string, m api.TeamMessage) error {
	if m.ID == "" {
		m.ID = newID()
	}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, m, "teams", id, "messages")
	return err
}

// StopTeam stops the runs of a team, or of the member whose path is target. The team stays
// usable.
//
// Errors: MEMBER_NOT_FOUND, TEAM_CLOSED, TEAM_NOT_FOUND.
func (c *Client) StopTeam(ctx context.Context, id, target, reason string) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, api.StopTeam{Target: target, Reason: reason}, "teams", id, "stop")
	return err
}

// PauseTeam lets the members finish their work, and holds further messages back.
//
// Errors: TEAM_CLOSED, TEAM_NOT_FOUND.
func (c *Client) PauseTeam(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, nil, "teams", id, "pause")
	return err
}

// ResumeTeam resumes a paused team.
//
// Errors: TEAM_CLOSED, TEAM_NOT_FOUND.
func (c *Client) ResumeTeam(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, nil, "teams", id, "resume")
	return err
}

// DeleteTeam stops a team and closes it permanently.
//
// Errors: TEAM_CLOSED, TEAM_NOT_FOUND.
func (c *Client) DeleteTeam(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, nil, "teams", id)
	return err
}

// TeamOptions say where in a team's log to begin.
type TeamOptions struct {
	All   bool   // behind After; otherwise with the work in progress, or now
	After uint64 // a position; 0 = the first frame
}

// Team is a team that is watched, over connections that may break. Its methods are safe
// for concurrent use.
type Team struct {
	client *team.Client

	frames  chan TeamFrame
	stop    context.CancelFunc
	leaving <-chan struct{} // stop was called
	ended   chan struct{}   // err is set
	err     error
}

// Team watches a team. It connects in the background: the first Next says if that fails.
func (c *Client) Team(id string, o TeamOptions) *Team {
	path := "/ws/agent-team/" + url.PathEscape(id)
	t := &Team{frames: make(chan TeamFrame), ended: make(chan struct{})}
	t.client = team.New(team.Options{
		URL: c.socket(path), Next: c.next(path), Token: c.opt.Token, TokenSource: c.opt.TokenSource, HTTPClient: c.opt.HTTPClient,
		All: o.All, After: o.After,
	})
	ctx, stop := context.WithCancel(c.ctx)
	t.stop, t.leaving = stop, ctx.Done()
	go func() {
		defer close(t.ended)
		err := t.client.Run(ctx, teamHandler{t})
		if ctx.Err() != nil || errors.Is(err, link.ErrClosed) {
			err = ErrClosed
		}
		t.err = typed(err)
	}()
	return t
}

type teamHandler struct{ *Team }

func (h teamHandler) Frame(f team.Frame) {
	select {
	case h.frames <- f:
	case <-h.leaving:
	}
}

func (h teamHandler) Lost(error) {} // the frames continue after the last one

// Next returns the next frame, and waits for one. Its error is that of ctx, or the end of
// the connection: ErrClosed, an *Error of the server, or why the gateway cannot be reached.
func (t *Team) Next(ctx context.Context) (TeamFrame, error) {
	select {
	case f := <-t.frames:
		return f, nil
	case <-t.ended:
		return TeamFrame{}, t.err
	case <-ctx.Done():
		return TeamFrame{}, ctx.Err()
	}
}

// Close ends the connection. The team continues.
func (t *Team) Close() {
	t.stop()
	<-t.ended
}

// Send gives a member something to do: the one with the path, or the coordinator if it is
// empty. The text counts once. It returns the id of the message, which the
// MESSAGE_ACCEPTED has.
func (t *Team) Send(text, target string) (id string, err error) {
	id = newID()
	payload := map[string]any{"content": text, "message_id": id}
	if target != "" {
		payload["target_member_name"] = target
	}
	return id, t.client.Send(team.Out{Type: wire.SendMessage, Payload: payload}, func(f team.Frame) bool {
		return f.Type == wire.MessageAccepted && f.Payload.MessageID == id || team.Refusal(f)
	})
}

// Decide answers a TOOL_APPROVAL_REQUESTED. The first answer counts. The model gets the reason,
// which may be empty.
func (t *Team) Decide(question TeamFrame, approve bool, reason string) error {
	return t.client.Decide(question.Path(), question.Payload, approve, reason)
}

// Stop stops the runs of all members. Without a connection it fails with link.ErrLost.
func (t *Team) Stop() error { return told(t.client.Stop()) }
