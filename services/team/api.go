package team

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/api"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/internal/strictjson"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxBody bounds a definition: it has to fit into an event (256 KiB), once for the
	// team and once more with what surrounds it.
	maxBody = 200 << 10
	// maxContent bounds a message, which is wrapped by every team around its member, and
	// in the log of the member twice.
	maxContent = 100 << 10
)

// API answers the HTTP requests about teams:
//
//	POST   /api/v1/teams                with a definition, or {"named": "..."}
//	GET    /api/v1/teams
//	GET    /api/v1/teams/{id}
//	DELETE /api/v1/teams/{id}
//	POST   /api/v1/teams/{id}/messages  {"content", "target", "context_files", "image_urls"}
//	POST   /api/v1/teams/{id}/stop      {"target", "reason"}, or nothing
//	POST   /api/v1/teams/{id}/pause
//	POST   /api/v1/teams/{id}/resume
//
// Errors are problem documents (RFC 9457). Every request is authenticated, what belongs
// to another tenant does not exist, and who may only watch can only read.
type API struct {
	conn     *bus.Conn
	commands *command.Sender
	server   api.Server
}

// NewAPI returns the API. Teams are asked for from the team service over the connection.
func NewAPI(conn *bus.Conn, commands *command.Sender, a auth.Authenticator, logger zerolog.Logger) *API {
	return &API{conn: conn, commands: commands, server: api.Server{Auth: a, Logger: logger}}
}

// Mount registers the API's routes.
func (a *API) Mount(mux *http.ServeMux) {
	serve := a.server.Serve
	mux.HandleFunc("POST /api/v1/teams", serve(acting(a.found)))
	mux.HandleFunc("GET /api/v1/teams", serve(a.list))
	mux.HandleFunc("GET /api/v1/teams/{id}", serve(a.show))
	mux.HandleFunc("DELETE /api/v1/teams/{id}", serve(acting(a.shutDown)))
	mux.HandleFunc("POST /api/v1/teams/{id}/messages", serve(acting(a.message)))
	mux.HandleFunc("POST /api/v1/teams/{id}/stop", serve(acting(a.stop)))
	mux.HandleFunc("POST /api/v1/teams/{id}/pause", serve(acting(a.pause)))
	mux.HandleFunc("POST /api/v1/teams/{id}/resume", serve(acting(a.resume)))
}

// acting refuses those who may only watch.
func acting(h api.Handler) api.Handler {
	return func(r *http.Request, p auth.Principal) (any, error) {
		if !p.MayAct() {
			return nil, fault.New(fault.Forbidden)
		}
		return h(r, p)
	}
}

// foundBody is a definition, or names one.
type foundBody struct {
	Named string `json:"named"`
	event.TeamDefinition
}

func (a *API) found(r *http.Request, p auth.Principal) (any, error) {
	var b foundBody
	if err := body(r, maxBody, &b, true); err != nil {
		return nil, err
	}
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, Named: b.Named}
	if b.Named == "" {
		in.Definition = &b.TeamDefinition
	} else if len(b.Members) > 0 {
		return nil, fault.Newf(fault.TeamInvalid, "Give a definition, or the name of one, not both.").At("named")
	}
	var v cmd.TeamView
	if err := rpc.Call(r.Context(), a.conn, cmd.Team, cmd.FoundTeam, in, &v); err != nil {
		return nil, err
	}
	return api.Created{Location: "/api/v1/teams/" + v.TeamID, Answer: v}, nil
}

func (a *API) list(r *http.Request, p auth.Principal) (any, error) {
	var out cmd.TeamList
	err := rpc.Call(r.Context(), a.conn, cmd.Team, cmd.ListTeams, cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject}, &out)
	return out, err
}

func (a *API) show(r *http.Request, p auth.Principal) (any, error) { return a.view(r, p) }

// view returns the team that the request names.
func (a *API) view(r *http.Request, p auth.Principal) (cmd.TeamView, error) {
	var v cmd.TeamView
	in := cmd.TeamRequest{Tenant: p.Tenant, Principal: p.Subject, TeamID: r.PathValue("id")}
	err := rpc.Call(r.Context(), a.conn, cmd.Team, cmd.ShowTeam, in, &v)
	return v, err
}

// accepted is the answer to what is carried out soon after.
type accepted struct {
	Accepted  bool   `json:"accepted"`
	CommandID string `json:"command_id"`
	MessageID string `json:"message_id,omitempty"`
}

func (a *API) shutDown(r *http.Request, p auth.Principal) (any, error) {
	return a.send(r, p, cmd.CloseTeam, "", cmd.CloseSession{Reason: "user_request"})
}

// messageBody is a message to a team. The target is a member, or a path of members.
type messageBody struct {
	Content string `json:"content"`
	Target  string `json:"target"`
	event.Attachments
}

func (a *API) message(r *http.Request, p auth.Principal) (any, error) {
	var b messageBody
	if err := body(r, maxBody, &b, true); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(b.Content) == "":
		return nil, fault.Newf(fault.InvalidField, "A message needs content.").At("content")
	case len(b.Content) > maxContent:
		return nil, fault.New(fault.MessageTooBig).At("content")
	}
	return a.send(r, p, cmd.SendMessage, b.Target, cmd.UserMessage{Content: b.Content, Attachments: b.Attachments})
}

// stopBody says whom to stop: a member, a path of members, or without a target all.
type stopBody struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
}

func (a *API) stop(r *http.Request, p auth.Principal) (any, error) {
	var b stopBody
	if err := body(r, maxBody, &b, false); err != nil {
		return nil, err
	}
	return a.send(r, p, cmd.Cancel, b.Target, cmd.CancelRun{All: true, Reason: b.Reason})
}

func (a *API) pause(r *http.Request, p auth.Principal) (any, error) {
	return a.send(r, p, cmd.PauseTeam, "", struct{}{})
}

func (a *API) resume(r *http.Request, p auth.Principal) (any, error) {
	return a.send(r, p, cmd.ResumeTeam, "", struct{}{})
}

// send gives a command to the team that the request names, if it is there and open.
func (a *API) send(r *http.Request, p auth.Principal, verb id.Name, member string, data any) (any, error) {
	v, err := a.view(r, p)
	switch {
	case err != nil:
		return nil, err
	case v.Closed || v.Status == event.TeamShuttingDown && verb != cmd.CloseTeam:
		return nil, fault.New(fault.TeamClosed)
	case member != "" && !has(v, member):
		return nil, fault.New(fault.MemberNotFound).At("target")
	}
	c := cmd.Command{
		ID: uuid.NewString(), Service: cmd.Team, Verb: verb, Tenant: p.Tenant, Key: id.EntityFromExternal(v.TeamID),
		Principal: p.Subject, Source: "waggle/api", Time: time.Now(), Member: member, Data: encode(data),
	}
	if err := a.commands.Send(r.Context(), c); err != nil {
		return nil, err
	}
	out := accepted{Accepted: true, CommandID: c.ID}
	if verb == cmd.SendMessage {
		out.MessageID = c.ID
	}
	return out, nil
}

// has reports whether exactly one member is meant by the name, path or id.
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

// body decodes what the request brings along. Without anything into is left as it is,
// unless something is needed.
func body(r *http.Request, limit int64, into any, needed bool) error {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	_, tooBig := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooBig:
		return fault.New(fault.MessageTooBig)
	case err != nil, needed && len(raw) == 0:
		return fault.New(fault.BadJSON).Wrap(err)
	case len(raw) == 0:
		return nil
	}
	return strictjson.Decode(raw, into)
}
