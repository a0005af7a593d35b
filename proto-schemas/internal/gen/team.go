package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// teamDir holds the schemas of the streaming protocol of teams.
const teamDir = "proto-schemas/team/schema"

// node is a JSON Schema of a message.
type node = map[string]any

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

// teamFiles returns the schemas of all messages by path.
func teamFiles(c *comments) (map[string][]byte, error) {
	all := map[string]node{
		"out/" + team.EnvelopeSchema:    envelopeForm(c),
		"out/" + team.StreamEventSchema: streamForm(c),
	}
	for kind, p := range teamPayloads {
		all["out/"+kind] = flatForm(c, kind, p)
	}
	for _, kind := range team.Inbound {
		all["in/"+kind] = inbound(kind)
	}
	files := map[string][]byte{}
	for name, s := range all {
		s["$schema"], s["$id"] = draft, "urn:waggle:team:"+name
		b, err := encodeNode(s)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		files[teamDir+"/"+name+".json"] = b
	}
	return files, nil
}

func encodeNode(s node) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}

// flatForm is the schema of a message in the flattened form.
func flatForm(c *comments, kind string, payload any) node {
	t := reflect.TypeOf(payload)
	return node{
		"title": kind, "description": c.about(t.Name(), kind), "type": "object", "additionalProperties": false,
		"required":   []string{"type", "payload"},
		"properties": node{"type": node{"const": kind}, "payload": strict(c, t, true)},
	}
}

// envelopeForm is the schema of what sockets of teams are sent in the envelope form.
func envelopeForm(c *comments) node {
	var kinds []any
	var sources []string
	for _, k := range []struct {
		source string
		data   node
	}{
		{team.SourceTeam, strict(c, reflect.TypeFor[team.TeamStatusPayload](), false)},
		{team.SourceTaskPlan, strict(c, reflect.TypeFor[team.TaskPlanPayload](), false)},
		{team.SourceAgent, with(strict(c, reflect.TypeFor[team.AgentEventData](), false), "agent_event", node{"$ref": "#/$defs/" + team.StreamEventSchema})},
		{team.SourceSubTeam, with(strict(c, reflect.TypeFor[team.SubTeamEventData](), false), "sub_team_event", node{"$ref": "#"})},
	} {
		kinds, sources = append(kinds, dependent("event_source_type", k.source, k.data)), append(sources, k.source)
	}
	s := with(strict(c, reflect.TypeFor[team.Envelope](), false), "event_source_type", node{"enum": sources})
	s["title"], s["description"], s["allOf"] = team.EnvelopeSchema, c.about("Envelope", team.EnvelopeSchema), kinds
	s["$defs"] = node{team.StreamEventSchema: streamForm(c)}
	return s
}

// streamForm is the schema of what sockets of agents are sent in the envelope form.
func streamForm(c *comments) node {
	byData := map[string]node{team.SegmentEventType: strict(c, reflect.TypeFor[team.SegmentEvent](), false)}
	for kind, p := range teamPayloads {
		if of := team.EventTypes[kind]; of != "" && of != team.SegmentEventType {
			byData[of] = strict(c, reflect.TypeOf(p), false)
		}
	}
	var names []string
	for name := range byData {
		names = append(names, name)
	}
	slices.Sort(names)
	var kinds []any
	for _, name := range names {
		kinds = append(kinds, dependent("event_type", name, byData[name]))
	}
	s := with(strict(c, reflect.TypeFor[team.StreamEvent](), false), "event_type", node{"enum": names})
	s["title"], s["description"], s["allOf"] = team.StreamEventSchema, c.about("StreamEvent", team.StreamEventSchema), kinds
	return s
}

// dependent says what the data are if a member has the value.
func dependent(name, value string, data node) node {
	return node{
		"if":   node{"properties": node{name: node{"const": value}}},
		"then": node{"properties": node{"data": data}},
	}
}

// with replaces a property.
func with(s node, name string, by node) node {
	if p, ok := s["properties"].(node); ok {
		p[name] = by
	}
	return s
}

// strict is the schema of a struct that has no other members. where says whether those
// of the flattened form are among them.
func strict(c *comments, t reflect.Type, where bool) node {
	props, required := node{}, []string{}
	for f := range t.Fields() {
		switch {
		case !f.Anonymous:
			name, optional := jsonName(f)
			props[name] = commented(c, t, f, name)
			if !optional {
				required = append(required, name)
			}
		case where:
			inherit(c, props, f.Type)
		}
	}
	return node{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

// inherit adds the members of a struct that is embedded, all of which are optional.
// Those that are there win: they come first in a struct.
func inherit(c *comments, props node, embedded reflect.Type) {
	for f := range embedded.Fields() {
		if name, _ := jsonName(f); props[name] == nil {
			props[name] = commented(c, embedded, f, name)
		}
	}
}

// commented is the schema of a member with its comment.
func commented(c *comments, owner reflect.Type, f reflect.StructField, name string) node {
	p := teamValue(c, owner.Name(), name, f.Type)
	if text := c.fields[owner.Name()+"."+f.Name]; text != "" {
		p["description"] = text
	}
	return p
}

func teamValue(c *comments, owner, name string, t reflect.Type) node {
	switch {
	case name == "arguments":
		return node{"type": "object"}
	case name == "segment_type":
		return node{"enum": segmentTypes}
	case teamEnums[owner+"."+name] != nil:
		return node{"enum": teamEnums[owner+"."+name]}
	case t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface:
		return node{}
	case t == reflect.TypeFor[team.Timestamp]() || t == reflect.TypeFor[time.Time]():
		return node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`}
	case name == "old_status" && t.Kind() == reflect.Pointer:
		return node{"type": []string{"string", "null"}}
	}
	return teamKind(c, name, t)
}

func teamKind(c *comments, name string, t reflect.Type) node {
	switch t.Kind() {
	case reflect.Pointer:
		return teamValue(c, "", name, t.Elem())
	case reflect.Struct:
		return strict(c, t, true)
	case reflect.Slice:
		return node{"type": "array", "items": teamValue(c, "", "", t.Elem())}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.String:
		return node{"type": "string"}
	}
	return node{"type": "integer", "minimum": 0}
}
