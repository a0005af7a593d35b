package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// teams are agents that work together, with messages to their members.
type teams struct{ *parts }

const (
	// maxTeamBody bounds a definition: it has to fit into an event (256 KiB), once for the team and once more with the
	// command around it.
	maxTeamBody = 200 << 10
	// maxContent bounds a message, which every team wraps around its member, and the member's log holds twice.
	maxContent = 100 << 10
)

// teamLimit is the number of teams of a page, each of which is folded from its log.
var teamLimit = limit("Teams", 100, 100)

func (t teams) routes() []Route {
	act := []fault.Code{fault.TeamNotFound, fault.TeamClosed}
	body := append([]fault.Code{fault.MemberNotFound, fault.BadJSON, fault.InvalidField, fault.MessageTooBig}, act...)
	return []Route{
		{
			Method: "GET", Path: "/teams", ID: "listTeams", Tag: "teams", Summary: "List teams, the newest first.",
			Query:   []openapi.Parameter{before, teamLimit.Parameter},
			Answers: json200("A page of the teams, without nested ones.", cmd.TeamList{}), Faults: []fault.Code{fault.InvalidField}, Handler: t.server.Serve(t.list),
		},
		{
			Method: "POST", Path: "/teams", ID: "createTeam", Tag: "teams", Summary: "Create a team.",
			Body: wire.NewTeam{}, Required: true,
			Example: `{"id":"site-1","name":"site","coordinator":"Boss","members":[{"name":"Boss"},{"name":"Coder","role":"writes the pages"}]}`,
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The team. Location is its path. A repeat with the same id has the same team.", Type: cmd.TeamView{}}},
			Faults:  []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.TeamInvalid, fault.TeamNotFound, fault.QuotaExceeded},
			Handler: t.server.Serve(t.create),
		},
		{
			Method: "GET", Path: "/teams/{id}", ID: "showTeam", Tag: "teams", Summary: "Show a team.",
			Answers: json200("The team.", cmd.TeamView{}), Faults: []fault.Code{fault.TeamNotFound}, Handler: t.server.Serve(t.show),
		},
		{
			Method: "DELETE", Path: "/teams/{id}", ID: "closeTeam", Tag: "teams", Summary: "Stop a team and close it for good.",
			Answers: accepted(), Faults: act, Handler: t.server.Serve(t.close),
		},
		{
			Method: "POST", Path: "/teams/{id}/messages", ID: "messageTeam", Tag: "teams", Summary: "Send a team a message.",
			Body: wire.TeamMessage{}, Required: true, Example: `{"id":"m1","content":"write the landing page","target":"Coder"}`,
			Answers: accepted(), Faults: body, Handler: t.server.Serve(t.message),
		},
		{
			Method: "POST", Path: "/teams/{id}/stop", ID: "stopTeam", Tag: "teams", Summary: "Stop the runs of a team, or of one member.",
			Body: wire.StopTeam{}, Example: `{"reason":"user_request"}`, Answers: accepted(), Faults: body, Handler: t.server.Serve(t.stop),
		},
		{
			Method: "POST", Path: "/teams/{id}/pause", ID: "pauseTeam", Tag: "teams", Summary: "Hold back messages to the members of a team.",
			Answers: accepted(), Faults: act, Handler: t.server.Serve(t.pause),
		},
		{
			Method: "POST", Path: "/teams/{id}/resume", ID: "resumeTeam", Tag: "teams", Summary: "Release the held messages of a team.",
			Answers: accepted(), Faults: act, Handler: t.server.Serve(t.resume),
		},
	}
}

func (t teams) create(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	var b wire.NewTeam
	if err := request.Decode(r, maxTeamBody, &b, true); err != nil {
		return nil, err
	}
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, Named: b.Named}
	if b.ID != "" {
		name, err := edge.CommandID(b.ID, "team", p.Subject)
		if err != nil {
			return nil, err
		}
		in.TeamID = teamID(name)
	}
	if b.Named == "" {
		in.Definition = &b.TeamDefinition
	} else if len(b.Members) > 0 {
		return nil, fault.Newf(fault.TeamInvalid, "Specify either a definition or the name of one, not both.").At("named")
	}
	v, err := change[cmd.TeamView](r, who, cmd.Team, cmd.FoundTeam, in)
	if err != nil {
		return nil, err
	}
	return respond.Created{Location: Prefix + "/teams/" + v.TeamID, Answer: v}, nil
}

// teamID returns the id of the team that a request with the id of a command creates: as short as those that the service gives, since
// the ids of members begin with it.
func teamID(command string) string {
	sum := sha256.Sum256([]byte(command))
	return "team_" + hex.EncodeToString(sum[:12])
}

func (t teams) list(r *http.Request, who *edge.Client) (any, error) {
	p, q := who.Principal(), queryOf(r)
	limit := q.count(teamLimit)
	if q.err != nil {
		return nil, q.err
	}
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), Before: q.Get(before.Name), Limit: limit}
	return ask[cmd.TeamList](r, who, cmd.Team, cmd.ListTeams, in)
}

func (t teams) show(r *http.Request, who *edge.Client) (any, error) { return t.named(r, who) }

// named returns the team that the request names.
func (t teams) named(r *http.Request, who *edge.Client) (cmd.TeamView, error) {
	p := who.Principal()
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), TeamID: r.PathValue("id")}
	return ask[cmd.TeamView](r, who, cmd.Team, cmd.ShowTeam, in)
}

func (t teams) close(r *http.Request, who *edge.Client) (any, error) {
	return t.send(r, who, cmd.Command{Verb: cmd.CloseTeam}, cmd.CloseSession{Reason: "user_request"})
}

func (t teams) message(r *http.Request, who *edge.Client) (any, error) {
	var b wire.TeamMessage
	if err := request.Decode(r, maxTeamBody, &b, true); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(b.Content) == "":
		return nil, fault.Newf(fault.InvalidField, "content must not be empty.").At("content")
	case len(b.Content) > maxContent:
		return nil, fault.New(fault.MessageTooBig).At("content")
	}
	c := cmd.Command{Verb: cmd.SendMessage, Member: b.Target}
	var err error
	if c.ID, err = edge.CommandID(b.ID); err != nil {
		return nil, err
	}
	out, err := t.send(r, who, c, cmd.UserMessage{Content: b.Content, Attachments: b.Attachments})
	out.MessageID = out.CommandID
	return out, err
}

func (t teams) stop(r *http.Request, who *edge.Client) (any, error) {
	var b wire.StopTeam
	if err := request.Decode(r, maxTeamBody, &b, false); err != nil {
		return nil, err
	}
	return t.send(r, who, cmd.Command{Verb: cmd.Cancel, Member: b.Target}, cmd.CancelRun{All: true, Reason: b.Reason})
}

func (t teams) pause(r *http.Request, who *edge.Client) (any, error) {
	return t.send(r, who, cmd.Command{Verb: cmd.PauseTeam}, struct{}{})
}

func (t teams) resume(r *http.Request, who *edge.Client) (any, error) {
	return t.send(r, who, cmd.Command{Verb: cmd.ResumeTeam}, struct{}{})
}

// send gives a command to the team that the request names, if the team exists and is open.
func (t teams) send(r *http.Request, who *edge.Client, c cmd.Command, data any) (wire.Accepted, error) {
	v, err := t.named(r, who)
	switch {
	case err != nil:
		return wire.Accepted{}, err
	case v.Closed || v.Status == event.TeamShuttingDown && c.Verb != cmd.CloseTeam:
		return wire.Accepted{}, fault.New(fault.TeamClosed)
	case c.Member != "" && !has(v, c.Member):
		return wire.Accepted{}, fault.New(fault.MemberNotFound).At("target")
	}
	c.Service, c.Key = cmd.Team, id.EntityFromExternal(v.TeamID)
	return send(r, who, c, data)
}

// has reports whether the name, path or id means exactly one member.
func has(v cmd.TeamView, member string) bool {
	names := 0
	for _, m := range v.Members {
		if m.Route == member || m.ID == member && m.ID != "" {
			return true
		}
		if m.Name == member {
			names++
		}
	}
	return names == 1
}
