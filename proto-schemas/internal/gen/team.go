package gen

import (
	"maps"
	"reflect"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// teamPayloads are the payloads of what clients are sent.
var teamPayloads = map[string]any{
	team.Connected:              team.ConnectedPayload{},
	team.SegmentStart:           team.SegmentStartPayload{},
	team.SegmentContent:         team.SegmentContentPayload{},
	team.SegmentEnd:             team.SegmentEndPayload{},
	team.AgentStatus:            team.AgentStatusPayload{},
	team.TeamStatus:             team.TeamStatusPayload{},
	team.ToolApprovalRequested:  team.ApprovalPayload{},
	team.ToolAutoExecuting:      team.InvocationPayload{},
	team.ToolApproved:           team.DecisionPayload{},
	team.ToolDenied:             team.DecisionPayload{},
	team.ToolExecutionStarted:   team.StartedPayload{},
	team.ToolExecutionSucceeded: team.SucceededPayload{},
	team.ToolExecutionFailed:    team.FailedPayload{},
	team.ToolLog:                team.ToolLogPayload{},
	team.AssistantChunk:         team.AssistantChunkPayload{},
	team.AssistantComplete:      team.AssistantCompletePayload{},
	team.TodoListUpdate:         team.TodoListPayload{},
	team.InterAgentMessage:      team.InterAgentPayload{},
	team.TaskNotification:       team.NotificationPayload{},
	team.TaskPlanEvent:          team.TaskPlanPayload{},
	team.ArtifactPersisted:      team.ArtifactPayload{},
	team.ArtifactUpdated:        team.ArtifactPayload{},
	team.MessageAccepted:        team.AcceptedPayload{},
	team.Error:                  team.ErrorPayload{},
}

var boardStatuses = []string{
	event.BoardNotStarted, event.BoardQueued, event.BoardInProgress, event.BoardCompleted, event.BoardBlocked, event.BoardFailed,
}

// teamEnums holds the words that a member can be, by struct.member.
var teamEnums = map[string][]string{
	"Where.event_scope": {team.MemberScoped, team.TeamScoped},
	"AgentStatusPayload.new_status": {
		event.AgentUninitialized, "bootstrapping", event.AgentIdle, event.AgentProcessingInput, event.AgentAwaitingModel,
		event.AgentAnalyzing, event.AgentAwaitingApproval, event.AgentToolDenied, event.AgentExecutingTool,
		event.AgentProcessingResult, "shutting_down", event.AgentShutdown, event.AgentError,
	},
	"TeamStatusPayload.new_status": {
		event.TeamStarting, event.TeamIdle, event.TeamRunning, event.TeamPaused, event.TeamFailed, event.TeamShuttingDown,
	},
	"TaskPlanPayload.event_type": {team.TasksCreated, team.TaskStatusUpdated},
	"TaskPlanPayload.new_status": boardStatuses,
	"Task.status":                boardStatuses,
	"Todo.status":                {event.TodoPending, event.TodoInProgress, event.TodoDone},
	"StreamEnvelope.origin":      {team.OriginLocal, "remote"},
	"SegmentEvent.type":          {team.SegmentStart, team.SegmentContent, team.SegmentEnd},
	"SegmentMetadata.media_type": {"image", "audio", "video"},
}

var segmentTypes = []string{
	team.SegmentText, team.SegmentToolCall, team.SegmentWriteFile, team.SegmentEditFile, team.SegmentRunBash,
	team.SegmentReasoning, team.SegmentMedia,
}

// teamBundle returns the bundle of the streaming protocol of teams: the messages of
// clients, those to them in the flattened form, and the two of the envelope form.
func teamBundle(c *comments) ([]byte, error) {
	d := newDefinitions(c)
	d.closed, d.value = true, d.teamMember
	where := reflect.TypeFor[team.Where]()
	d.finish = func(_ reflect.Type, s node, _ *members) { delete(s, "allOf") } // Where is in the flattened form only.
	d.messages.set("in", anyOf("From the client.", team.Inbound))
	out := append(slices.Clone(team.Outbound), team.AssistantChunk, team.EnvelopeSchema, team.StreamEventSchema)
	d.messages.set("out", anyOf("To the client.", out))
	for _, kind := range team.Inbound {
		d.messages.set(kind, teamSent(kind))
	}
	for _, kind := range append(slices.Clone(team.Outbound), team.AssistantChunk) {
		t := reflect.TypeOf(teamPayloads[kind])
		payload := shut(d.extend(t))
		if f, ok := t.FieldByName(where.Name()); ok && f.Anonymous {
			payload = shut(node{"allOf": []node{d.extend(t), d.extend(where)}})
		}
		d.messages.set(kind, shut(node{
			"description": c.about(t.Name(), kind), "type": "object", "properties": node{"type": node{"const": kind}, "payload": payload},
			"required": []string{"type", "payload"},
		}))
	}
	d.messages.set(team.EnvelopeSchema, d.envelopeForm())
	d.messages.set(team.StreamEventSchema, d.streamForm())
	d.types["Target"] = teamTarget
	return d.encode("team", "Messages of the streaming protocol of agent teams", []string{"in", "out"})
}

// envelopeForm is the schema of what sockets of teams are sent in the envelope form.
func (d *definitions) envelopeForm() node {
	var kinds []node
	var sources []string
	for _, k := range []struct {
		source string
		data   node
	}{
		{team.SourceTeam, shut(d.extend(reflect.TypeFor[team.TeamStatusPayload]()))},
		{team.SourceTaskPlan, shut(d.extend(reflect.TypeFor[team.TaskPlanPayload]()))},
		{team.SourceAgent, d.ref(reflect.TypeFor[team.AgentEventData]())},
		{team.SourceSubTeam, d.ref(reflect.TypeFor[team.SubTeamEventData]())},
	} {
		kinds, sources = append(kinds, dependent("event_source_type", k.source, k.data)), append(sources, k.source)
	}
	return d.form(reflect.TypeFor[team.Envelope](), team.EnvelopeSchema, "event_source_type", sources, kinds)
}

// streamForm is the schema of what sockets of agents are sent in the envelope form.
func (d *definitions) streamForm() node {
	byData := map[string]node{team.SegmentEventType: d.ref(reflect.TypeFor[team.SegmentEvent]())}
	for kind, p := range teamPayloads {
		if of := team.EventTypes[kind]; of != "" && of != team.SegmentEventType {
			byData[of] = shut(d.extend(reflect.TypeOf(p)))
		}
	}
	names := slices.Sorted(maps.Keys(byData))
	var kinds []node
	for _, name := range names {
		kinds = append(kinds, dependent("event_type", name, byData[name]))
	}
	return d.form(reflect.TypeFor[team.StreamEvent](), team.StreamEventSchema, "event_type", names, kinds)
}

// form is the schema of a message whose data depend on a member.
func (d *definitions) form(t reflect.Type, name, member string, values []string, kinds []node) node {
	s := d.object(t, true)
	if own, ok := s["properties"].(*members); ok {
		own.set(member, node{"enum": values})
	}
	s["description"], s["allOf"] = d.comments.about(t.Name(), name), kinds
	return s
}

// dependent says what the data are if a member has the value.
func dependent(name, value string, data node) node {
	return node{
		"if":   node{"properties": node{name: node{"const": value}}},
		"then": node{"properties": node{"data": data}},
	}
}

// teamMember is the schema of a member whose Go type does not say it.
func (d *definitions) teamMember(outer reflect.Type, f reflect.StructField) node {
	name, _ := jsonName(f)
	switch {
	case name == "arguments":
		return node{"type": "object"}
	case name == "segment_type":
		return node{"enum": segmentTypes}
	case teamEnums[outer.Name()+"."+name] != nil:
		return node{"enum": teamEnums[outer.Name()+"."+name]}
	case f.Type == reflect.TypeFor[team.Timestamp]():
		return node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`}
	case f.Type == reflect.TypeFor[team.StreamEvent]():
		return to(team.StreamEventSchema)
	case f.Type == reflect.TypeFor[team.Envelope]():
		return to(team.EnvelopeSchema)
	case name == "old_status" && f.Type.Kind() == reflect.Pointer:
		return node{"type": []string{"string", "null"}}
	case f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Int64 || f.Type.Kind() == reflect.Uint64:
		return node{"type": "integer", "minimum": 0}
	}
	return nil
}
