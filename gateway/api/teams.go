package api

import (
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxTeams bounds the teams of a page, each of which is folded from its log.
	maxTeams = 100
	// maxTeamBody bounds a definition: it has to fit into an event (256 KiB), once for the team and once more with the
	// command around it.
	maxTeamBody = 200 << 10
	// maxContent bounds a message, which every team wraps around its member, and the member's log holds twice.
	maxContent = 100 << 10
)

func (a *API) createTeam(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	var b wire.NewTeam
	if err := request.Decode(r, maxTeamBody, &b, true); err != nil {
		return nil, err
	}
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, Named: b.Named}
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

func (a *API) listTeams(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	limit, err := request.Number(r, "limit", maxTeams, maxTeams)
	if err != nil {
		return nil, err
	}
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), Before: r.URL.Query().Get("before"), Limit: limit}
	return ask[cmd.TeamList](r, who, cmd.Team, cmd.ListTeams, in)
}

func (a *API) showTeam(r *http.Request, who *edge.Client) (any, error) { return a.team(r, who) }

// team returns the team that the request names.
func (a *API) team(r *http.Request, who *edge.Client) (cmd.TeamView, error) {
	p := who.Principal()
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), TeamID: r.PathValue("id")}
	return ask[cmd.TeamView](r, who, cmd.Team, cmd.ShowTeam, in)
}

func (a *API) closeTeam(r *http.Request, who *edge.Client) (any, error) {
	return a.sendTeam(r, who, cmd.Command{Verb: cmd.CloseTeam}, cmd.CloseSession{Reason: "user_request"})
}

func (a *API) messageTeam(r *http.Request, who *edge.Client) (any, error) {
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
	if c.ID, err = commandID(b.ID); err != nil {
		return nil, err
	}
	out, err := a.sendTeam(r, who, c, cmd.UserMessage{Content: b.Content, Attachments: b.Attachments})
	out.MessageID = out.CommandID
	return out, err
}

func (a *API) stopTeam(r *http.Request, who *edge.Client) (any, error) {
	var b wire.StopTeam
	if err := request.Decode(r, maxTeamBody, &b, false); err != nil {
		return nil, err
	}
	return a.sendTeam(r, who, cmd.Command{Verb: cmd.Cancel, Member: b.Target}, cmd.CancelRun{All: true, Reason: b.Reason})
}

func (a *API) pauseTeam(r *http.Request, who *edge.Client) (any, error) {
	return a.sendTeam(r, who, cmd.Command{Verb: cmd.PauseTeam}, struct{}{})
}

func (a *API) resumeTeam(r *http.Request, who *edge.Client) (any, error) {
	return a.sendTeam(r, who, cmd.Command{Verb: cmd.ResumeTeam}, struct{}{})
}

// sendTeam gives a command to the team that the request names, if the team exists and is open.
func (a *API) sendTeam(r *http.Request, who *edge.Client, c cmd.Command, data any) (wire.Accepted, error) {
	v, err := a.team(r, who)
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
