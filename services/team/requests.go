package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/teamwork"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// foundID is the id of the command that creates a team: a team is created once.
const foundID = "create"

// offer adds the verbs of the service to the server.
func (s *Service) offer(r *rpc.Server) {
	rpc.Handle(r, cmd.AttachTeam, s.attach)
	rpc.Handle(r, cmd.FoundTeam, s.found)
	rpc.Handle(r, cmd.ShowTeam, s.show)
	rpc.Handle(r, cmd.ListTeams, s.list)
	rpc.Handle(r, cmd.Reindex, s.follower.Reindex)
}

// shows returns the fault TEAM_NOT_FOUND unless the team exists and the principal sees it, or all of its tenant.
func (s *Service) shows(t id.Tenant, st *teamwork.State, principal string, all bool) error {
	if !st.Created() || !s.cfg.Access.MaySee(t, st.Owner(), access.Person{Subject: principal, Operator: all}) {
		return fault.New(fault.TeamNotFound)
	}
	return nil
}

// attach answers with the initial state for a viewer of a team or of a member.
func (s *Service) attach(ctx context.Context, in cmd.TeamAttachRequest) (cmd.TeamAttachReply, error) {
	if in.Kind == id.KindMember {
		return s.attachAgent(ctx, in)
	}
	log, out := subject.Log{Tenant: in.Tenant, Kind: id.KindTeam, Entity: in.ID}, cmd.TeamAttachReply{}
	err := s.logs.Get(log).Read(ctx, func(st *teamwork.State) error {
		if err := s.shows(in.Tenant, st, in.Principal, in.All); err != nil {
			return err
		}
		out.TeamView, out.Head, out.From, out.Recent = st.View(), st.Seq(), st.From(), st.Recent()
		return nil
	})
	return out, err
}

// attachAgent answers for a member that has a log.
func (s *Service) attachAgent(ctx context.Context, in cmd.TeamAttachRequest) (cmd.TeamAttachReply, error) {
	var out cmd.TeamAttachReply
	team, ok := id.TeamOf(in.ID)
	if !ok {
		return out, fault.New(fault.AgentNotFound)
	}
	out.TeamView, ok = cmd.TeamView{}, false
	err := s.logs.Get(subject.Log{Tenant: in.Tenant, Kind: id.KindTeam, Entity: team}).Read(ctx, func(st *teamwork.State) error {
		if s.shows(in.Tenant, st, in.Principal, in.All) == nil {
			out.TeamView = st.View()
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	for _, m := range out.Members {
		if m.ID == in.ID.String() && m.Kind == event.MemberAgent {
			out.Agent, ok = &m, true
		}
	}
	if !ok {
		return out, fault.New(fault.AgentNotFound)
	}
	out.Head, out.From, err = s.span(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindMember, Entity: in.ID})
	out.Recent = out.From
	return out, err
}

// span returns the end of an agent's log, and the seq before the message of its active run. Without
// an active run both are equal.
func (s *Service) span(ctx context.Context, log subject.Log) (head, from uint64, err error) {
	var received uint64 // before the first unanswered message
	open := map[string]bool{}
	err = s.deps.Log.Read(ctx, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		head = e.Sequence
		switch e.Type {
		case event.MessageReceived:
			if len(open) == 0 {
				received = e.Sequence - 1
			}
			open[runOf(e.Event)] = true
		case event.RunCompleted, event.RunFailed, event.RunCancelled:
			delete(open, runOf(e.Event))
		case event.MemberClosed:
			clear(open)
		}
		return nil
	})
	var cut *eventlog.TruncatedError
	if errors.As(err, &cut) { // an active run began before the head of the log
		end, err := s.deps.Log.Last(ctx, log)
		return end.Seq, end.Seq, err
	}
	if len(open) > 0 {
		return head, received, err
	}
	return head, head, err
}

func runOf(e event.Event) string {
	var d struct {
		RunID string `json:"run_id"`
	}
	if e.Decode(&d) != nil {
		return ""
	}
	return d.RunID
}

// found checks a definition and creates a team from it. Once it returns, the team starts even
// if this process dies. A repeat with the same id returns the team as it is.
func (s *Service) found(ctx context.Context, in cmd.TeamRequest) (cmd.TeamView, error) {
	team, err := id.ParseEntity(cmp.Or(in.TeamID, s.cfg.NewID()))
	if err != nil {
		return cmd.TeamView{}, err
	}
	if in.TeamID != "" {
		if v, err := s.view(ctx, in, team); !errors.Is(err, fault.New(fault.TeamNotFound)) {
			return v, err
		}
	}
	d, err := s.definition(in)
	if err != nil {
		return cmd.TeamView{}, err
	}
	c := cmd.Command{
		ID: foundID, Service: cmd.Team, Verb: cmd.CreateTeam, Tenant: in.Tenant, Key: team,
		Principal: in.Principal, Source: source, Time: s.cfg.Now(), Data: encode(cmd.NewTeam{Definition: d}),
	}
	if err := s.quota.Hold(ctx, in.Tenant, in.Principal, team); err != nil {
		return cmd.TeamView{}, err
	}
	if err := s.handle(ctx, c); err != nil {
		return cmd.TeamView{}, err
	}
	return s.view(ctx, in, team)
}

// definition returns the requested definition if it is valid.
func (s *Service) definition(in cmd.TeamRequest) (event.TeamDefinition, error) {
	switch {
	case in.Definition != nil && in.Named != "":
		return event.TeamDefinition{}, fault.Newf(fault.TeamInvalid, "Specify either a definition or the name of one, not both.").At("named")
	case in.Definition != nil:
		if err := teamwork.Check(*in.Definition); err != nil {
			return event.TeamDefinition{}, err
		}
		return *in.Definition, s.served(in.Tenant, *in.Definition, "")
	}
	d, ok := s.named[in.Named]
	if !ok {
		return d, fault.Newf(fault.TeamNotFound, "This installation has no team with this name. Check the list of teams, or send a definition.").At("named")
	}
	return d, s.served(in.Tenant, d, "")
}

// served refuses members whose model no running worker can ask, or the tenant may not use. It accepts all models while no
// worker runs, because later workers may have them.
func (s *Service) served(t id.Tenant, d event.TeamDefinition, path string) error {
	for i, m := range d.Members {
		at := fmt.Sprintf("%smembers[%d].", path, i)
		if m.Team != nil {
			if err := s.served(t, *m.Team, at+"team."); err != nil {
				return err
			}
			continue
		}
		standard := card.Model(s.deps.Directory)
		if spec := model.Named(standard, m.Model); standard != "" && !m.Swarm() && !s.cfg.Access.MayUse(t, spec) {
			return fault.Newf(fault.TeamInvalid, "%s", model.Barred(spec).Message).At(at + "model")
		}
		if serves, there := card.Serves(s.deps.Directory, m.Model); there && !serves {
			return fault.Newf(fault.TeamInvalid, "No running worker offers this model. Use a model of a configured provider: %s.",
				strings.Join(card.Providers(s.deps.Directory), ", ")).At(at + "model")
		}
	}
	return nil
}

// show answers with the current state of a team. A team of another tenant counts as unknown.
func (s *Service) show(ctx context.Context, in cmd.TeamRequest) (cmd.TeamView, error) {
	return s.view(ctx, in, id.EntityFromExternal(in.TeamID))
}

func (s *Service) view(ctx context.Context, in cmd.TeamRequest, team id.Entity) (cmd.TeamView, error) {
	var v cmd.TeamView
	l := s.logs.Get(subject.Log{Tenant: in.Tenant, Kind: id.KindTeam, Entity: team})
	err := l.Read(ctx, func(st *teamwork.State) error {
		if err := s.shows(in.Tenant, st, in.Principal, in.All); err != nil {
			return err
		}
		v = st.View()
		return nil
	})
	return v, err
}

// encode returns v, whose fields all have a JSON form, as JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of this program without a JSON form
	}
	return raw
}
