package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/inbox"
	"github.com/waggle-dev/waggle/services/task/roster"
	"github.com/waggle-dev/waggle/services/tools"
)

// kindServer is the kind of MCP servers in lists.
const kindServer = tools.KindMCP

// offer adds the verbs of the service to the server.
func (s *Service) offer(r *rpc.Server) {
	rpc.Handle(r, cmd.OpenClient, s.openClient)
	rpc.Handle(r, cmd.NameClient, s.nameClient)
	rpc.Handle(r, cmd.SendClient, s.sendClient)
	rpc.Handle(r, cmd.ListAgents, s.lists(cmd.ParticipantAgent))
	rpc.Handle(r, cmd.ListServices, s.lists(cmd.ParticipantService))
	rpc.Handle(r, cmd.ListClients, s.lists(cmd.ParticipantClient))
	rpc.Handle(r, cmd.ListServers, s.listServers)
	rpc.Handle(r, cmd.ListTools, s.listTools)
	rpc.Handle(r, cmd.RunTool, s.runTool)
	rpc.Handle(r, cmd.ShowTask, s.showTask)
	rpc.Handle(r, cmd.ReadTask, s.readTask)
	rpc.Handle(r, cmd.ListTasks, s.listTasks)
	rpc.Handle(r, cmd.Submit, s.submit)
	rpc.Handle(r, cmd.RetryTask, s.retry)
	rpc.Handle(r, cmd.StartTool, s.startTool)
	rpc.Handle(r, cmd.ListOffers, s.listOffers)
	rpc.Handle(r, cmd.ReadOffer, s.readOffer)
	rpc.Handle(r, cmd.Reindex, s.follower.Reindex)
}

// lists answers with a page of the participants of a kind that the request's tenant has. Agents and
// services that were there before are inactive.
func (s *Service) lists(kind string) func(context.Context, cmd.ParticipantRequest) (cmd.ParticipantList, error) {
	return func(_ context.Context, in cmd.ParticipantRequest) (cmd.ParticipantList, error) {
		f, err := data[cmd.ParticipantFilter](in)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		name, own, err := cmd.ParsePlace(f.After)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		page := s.newPage(f.Limit)
		for at, more := (roster.Spot{Name: name, ID: own}), true; more; {
			var some []cmd.Participant
			if some, at, more = s.registry.Some(in.Tenant, kind, f, at, page.room()); !page.add(some) {
				break
			}
		}
		return page.list, page.err
	}
}

// participantPage collects a page of participants. It fits into a message of the bus, and has one participant at least.
type participantPage struct {
	list         cmd.ParticipantList
	limit, bytes int
	err          error
}

func (s *Service) newPage(limit int) *participantPage {
	return &participantPage{
		list:  cmd.ParticipantList{Participants: []cmd.Participant{}},
		limit: limit, bytes: int(s.deps.Conn.NATS().MaxPayload()) - listEnvelope,
	}
}

// room returns how many participants fill the page and show that more follow.
func (p *participantPage) room() int {
	if p.limit <= 0 {
		return roster.Found
	}
	return p.limit - len(p.list.Participants) + 1
}

// add adds participants and reports whether the page has room for more.
func (p *participantPage) add(some []cmd.Participant) bool {
	for _, one := range some {
		b, err := json.Marshal(one)
		if err != nil {
			p.err = fmt.Errorf("encode a participant: %w", err)
			return false
		}
		n := len(p.list.Participants)
		if p.bytes -= len(b) + 1; n > 0 && (n == p.limit || p.bytes < 0) {
			p.list.More = true
			return false
		}
		p.list.Participants = append(p.list.Participants, one)
	}
	return true
}

// listServers answers with the MCP servers.
func (s *Service) listServers(ctx context.Context, in cmd.ParticipantRequest) (cmd.ParticipantList, error) {
	f, err := data[cmd.ParticipantFilter](in)
	if err != nil {
		return cmd.ParticipantList{}, err
	}
	list, err := s.tools.Servers(ctx, in.Tenant, tools.KindMCP)
	if err != nil {
		return cmd.ParticipantList{}, err
	}
	all := make([]cmd.Participant, 0, len(list))
	for _, v := range list {
		all = append(all, cmd.Participant{
			Kind: kindServer, Tenant: in.Tenant, ID: v.ID, Name: v.Name, Capabilities: v.Capabilities, Description: v.Description,
			Status: v.Status, Online: v.Status == cmd.StatusActive, Since: v.Since, Extra: withType(v.Extra, v.Type),
		})
	}
	slices.SortFunc(all, func(a, b cmd.Participant) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	page := s.newPage(f.Limit)
	for _, p := range all {
		ok, err := p.Follows(f.After)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		if ok && roster.Matches(p, f) && !page.add([]cmd.Participant{p}) {
			break
		}
	}
	return page.list, page.err
}

// withType adds the type of a server to what else it said.
func withType(extra json.RawMessage, kind string) json.RawMessage {
	all := map[string]any{}
	if len(extra) > 0 && json.Unmarshal(extra, &all) != nil {
		return extra
	}
	all["type"] = kind
	return encode(all)
}

// listTools answers with the tools of a service or an MCP server.
func (s *Service) listTools(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolList, error) {
	d, err := data[cmd.ToolsOf](in)
	if err != nil {
		return cmd.ToolList{}, err
	}
	server, list, err := s.tools.ToolsOf(ctx, in.Tenant, d.Kind, d.Server)
	if err != nil {
		return cmd.ToolList{}, err
	}
	out := cmd.ToolList{Server: server.ID, Name: server.Name, Tools: []cmd.ParticipantTool{}}
	for _, t := range list {
		out.Tools = append(out.Tools, cmd.ParticipantTool{
			ID: t.Own, Name: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			Idempotent: t.Idempotent || t.ReadOnly,
		})
	}
	return out, nil
}

func taskLog(t id.Tenant, task string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}
}

// showTask answers with a task as it is now. One of another tenant, or that the principal does not see, does not exist.
func (s *Service) showTask(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.TaskRefData](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	unknown := assignment.Unknown()
	if d.TaskID == "" {
		return cmd.TaskView{}, unknown
	}
	st, err := ledger.Fold(ctx, s.deps.Log, taskLog(in.Tenant, d.TaskID), (*assignment.State).Apply)
	switch {
	case err != nil:
		return cmd.TaskView{}, err
	case st.Created.IsZero(), !s.shows(in.Tenant, st.Owner(), in.Principal, in.All):
		return cmd.TaskView{}, unknown
	}
	return st.View(), nil
}

// maxTask bounds a task, so that it fits into an event (256 KiB) with the service's additions.
const maxTask = 250 << 10

// submit creates a task if the registry knows an agent for it, live or not. After it returns, the
// task reaches its end also if processes die.
func (s *Service) submit(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.NewTask](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	if d.AgentID == "" && d.AgentName == "" && len(d.Capabilities) == 0 {
		return cmd.TaskView{}, fault.Newf(fault.InvalidField, "Name the agent: its id, its name, or its capabilities.").At("agentName")
	}
	if len(in.Data) > maxTask {
		return cmd.TaskView{}, fault.New(fault.MessageTooBig)
	}
	d.Owner = "" // of jobs
	switch in.Kind {
	case cmd.ParticipantClient:
		d.ClientID = in.ID
	case cmd.ParticipantAgent:
		d.AskedBy(in.ID, in.Name)
	}
	if d.TaskID == "" {
		d.TaskID = uuid.NewString()
	} else if v, before, err := s.before(ctx, in, d); before || err != nil {
		return v, err
	}
	if !s.wanted(in.Tenant, d) {
		return cmd.TaskView{}, fault.New(fault.AgentNotFound)
	}
	if d.RequestID == "" {
		d.RequestID = in.RequestID
	}
	d.Seen = s.deps.Directory.Revision()
	if err := s.quota.Hold(ctx, in.Tenant, in.Principal, id.EntityFromExternal(d.TaskID)); err != nil {
		return cmd.TaskView{}, err
	}
	err = s.Send(ctx, cmd.Command{
		ID: createID, Service: cmd.Task, Verb: cmd.CreateTask, Tenant: in.Tenant, Key: id.EntityFromExternal(d.TaskID),
		Principal: in.Principal, ReplyTo: in.ReplyTo, Data: encode(d),
	})
	if err != nil {
		return cmd.TaskView{}, err
	}
	head := event.TaskHead{TaskID: d.TaskID, RequestID: d.RequestID, ClientID: d.ClientID, ParentID: d.ParentID}
	return cmd.TaskView{TaskHead: head, Status: assignment.StatusCreated, CreatedAt: s.cfg.Now().UTC()}, nil
}

// retry submits a task like one that has ended without success. The new task names the old one. It belongs to no run, no
// client and no other task, even if the old one did: these have got its end.
func (s *Service) retry(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.TaskRetry](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	old, err := s.record(ctx, taskLog(in.Tenant, d.TaskID))
	switch {
	case err != nil:
		return cmd.TaskView{}, err
	case !s.shows(in.Tenant, old.Task.Principal, in.Principal, in.All):
		return cmd.TaskView{}, fault.New(fault.TaskNotFound)
	case old.EndedAt.IsZero():
		return cmd.TaskView{}, fault.New(fault.TaskOpen)
	case old.Status == event.TaskEndCompleted:
		return cmd.TaskView{}, fault.Newf(fault.TaskFinished, "This task has completed, and is not repeated. Submit a new one.")
	}
	t := old.Task
	n := cmd.NewTask{
		TaskID: d.NewID, AgentID: t.WantedID, AgentName: t.WantedName, Capabilities: t.Capabilities, TaskType: t.TaskType,
		Data: t.Data, DataRef: t.DataRef, QueueMS: t.QueueMS, TimeoutMS: t.TimeoutMS, RetryOf: t.TaskID,
	}
	// An object belongs to one log, and goes with it.
	if err := s.payloads.Fill(ctx, in.Tenant, &n); err != nil {
		return cmd.TaskView{}, err
	}
	if _, err := s.payloads.Shrink(ctx, taskLog(in.Tenant, n.TaskID), &n); err != nil {
		return cmd.TaskView{}, err
	}
	in.Data = encode(n)
	return s.submit(ctx, in)
}

// before returns the task that an earlier delivery of the request has created.
func (s *Service) before(ctx context.Context, in cmd.ParticipantRequest, d cmd.NewTask) (cmd.TaskView, bool, error) {
	st, err := ledger.Fold(ctx, s.deps.Log, taskLog(in.Tenant, d.TaskID), (*assignment.State).Apply)
	if err != nil || st.Created.IsZero() || st.Task().Principal != in.Principal || st.Task().ClientID != d.ClientID || st.Task().AskerID != d.AskerID {
		return cmd.TaskView{}, false, err
	}
	v := st.View()
	v.Before = true
	v.AgentID, v.AgentName = cmp.Or(v.AgentID, st.Task().ExpectedID, d.AgentID), cmp.Or(v.AgentName, st.Task().ExpectedName, d.AgentName)
	return v, true, nil
}

// wanted reports whether some agent that is known may be given the task.
func (s *Service) wanted(t id.Tenant, d cmd.NewTask) bool {
	want := event.TaskCreatedData{WantedID: d.AgentID, WantedName: d.AgentName, Capabilities: d.Capabilities}
	return assignment.Known(want, s.registry.Agents(t))
}

// again answers a repeated request of a participant from the log, with the ids of the first
// answer.
func (s *Service) again(ctx context.Context, h *ledger.Log[life], c cmd.Command, seqs []uint64) error {
	events := make([]event.Event, 0, len(seqs))
	for _, seq := range seqs {
		e, err := s.eventAt(ctx, h.Ref, seq)
		if _, gone := errors.AsType[*eventlog.TruncatedError](err); gone {
			continue
		}
		if err != nil {
			return err
		}
		if c.Verb == cmd.MessageTask { // its first answer was the copy in the client's log
			if e, err = inbox.Copy(inbox.LogOf(h.Ref.Tenant, h.State().Task().ClientID), e); err != nil {
				return err
			}
		}
		events = append(events, e)
	}
	if err := s.notifier.Repeat(c.ReplyTo, events); err != nil {
		s.deps.Logger.Warn().Err(err).Str("command", c.ID).Msg("failed to answer repeated request")
	}
	return nil
}

var errFound = errors.New("found")

// eventAt reads one event of a log.
func (s *Service) eventAt(ctx context.Context, log subject.Log, seq uint64) (found event.Event, err error) {
	err = s.deps.Log.Read(ctx, log, eventlog.Cursor{Seq: seq - 1}, func(e *eventlog.Entry) error {
		found = e.Event
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
