package gen

import (
	"reflect"

	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// notBlank matches a text that has something besides white space.
const notBlank = "[^\\s\v\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

// Of which frames a frame of ORBIT is one.
const (
	ofSocket = "SocketFrame" // belongs to no run
	ofRun    = "RunFrame"    // always belongs to a run
	ofAny    = "Frame"       // belongs to a run, or to something else that is watched
)

// orbitFrame is a message to the client.
type orbitFrame struct {
	kind, of string
	about    string
	data     any
	also     node
}

var orbitFrames = []orbitFrame{
	{orbit.AgentStart, ofSocket, "once per socket: it is open, and what it sends waits until agent_ready.", orbit.MessageData{}, nil},
	{orbit.AgentReady, ofSocket, "once per socket: someone is there to answer.", orbit.ReadyData{}, nil},
	{orbit.UserInput, ofAny, "the run that answers this text has begun. The first frame of a run.", orbit.MessageData{}, seqNeeded},
	{
		orbit.AgentThinking, ofAny, "a worker has taken up the run, the model has thought, or something that the protocol has no word for, like a question.",
		orbit.ThoughtData{},
		node{"anyOf": []node{
			{"required": []string{"seq"}}, {"properties": node{"data": node{"required": []string{"code"}}}},
		}},
	},
	{orbit.ToolCalled, ofAny, "the agent intends to call a tool. Once per call, before the tool may run.", orbit.ToolCalledData{}, seqNeeded},
	{orbit.ToolExecuting, ofRun, "the call was handed to the tool.", orbit.ToolExecutingData{}, nil},
	{orbit.ToolResult, ofAny, "the outcome of a call, good or bad or unknown. Once per call.", orbit.ToolResultData{}, seqNeeded},
	{orbit.AgentResponse, ofAny, "the answer: the last frame of a run. Without execution_completed, a question to the page of the original: the run waits.", orbit.ResponseData{}, seqNeeded},
	{
		orbit.Error, ofAny, "something went wrong. With execution_id it is the last frame of that run; without, it belongs to the " +
			"socket or to a message that was not accepted, and the socket stays open unless a close frame follows.",
		orbit.ErrorData{},
		node{"dependentRequired": node{"execution_id": []string{"seq"}}},
	},
	{
		orbit.AgentDelta, ofRun, "only with ?deltas=true: the next piece of a text that the model is writing. Addition.",
		orbit.DeltaData{},
		nil,
	},
	{
		orbit.ThinkingDelta, ofRun, "only with ?deltas=true: the next piece of what the model thinks before the message. Addition.",
		orbit.DeltaData{},
		nil,
	},
	{
		orbit.DeltaDiscarded, ofRun, "only with ?deltas=true: the text so far does not count, because the attempt that wrote it ended. Addition.",
		orbit.DiscardedData{},
		nil,
	},
}

var seqNeeded = node{"required": []string{"seq"}}

// orbitRules hold what the Go types cannot say, by Type.member.
var orbitRules = map[string]node{
	"ThoughtData.code":                 {"pattern": "^[A-Z][A-Z0-9_]*$"},
	"Question.arguments":               {"type": "object"},
	"ReadyData.session_id":             {"pattern": "^[A-Za-z0-9_-]{1,128}$"},
	"ReadyData.last_seq":               {"minimum": 0},
	"ToolCalledData.arguments":         {"type": "object"},
	"ToolExecutingData.status":         {"const": orbit.StatusExecuting},
	"ToolResultData.status":            {"const": orbit.StatusCompleted},
	"ToolResultData.result":            {"maxLength": orbit.PreviewLimit + len("...")},
	"ResponseData.execution_completed": {"description": "false: a question to people, which is shown as an answer so that they can type (addition)"},
	"ErrorData.message":                {"minLength": 1},
	"ErrorData.code":                   {"pattern": "^[A-Z][A-Z0-9_]*$"},
	"ErrorData.first_seq":              {"minimum": 1},
	"Health.status":                    {"const": orbit.HealthStatus},
	"Health.service":                   {"const": orbit.HealthService},
	"Health.active_connections":        {"minimum": 0},
}

// orbitBundle returns the bundle of ORBIT.
func orbitBundle(c *comments) ([]byte, error) {
	d := newDefinitions(c)
	d.closed = true
	d.value = func(owner reflect.Type, f reflect.StructField) node {
		if f.Type == reflect.TypeFor[orbit.Timestamp]() {
			return to("Timestamp")
		}
		name, _ := jsonName(f)
		rule, ok := orbitRules[owner.Name()+"."+name]
		if !ok {
			return nil
		}
		return with(d.of(f.Type), rule)
	}
	d.finish = func(t reflect.Type, s node, _ *members) {
		if t == reflect.TypeFor[orbit.ErrorData]() { // It never is without.
			s["required"] = []string{"message", "code"}
		}
	}
	d.messages.set("in", anyOf("From the client.", orbit.Inbound))
	d.messages.set("out", anyOf("To the client.", orbit.Outbound))
	inbound := orbitInbound()
	for _, kind := range orbit.Inbound {
		d.messages.set(kind, inbound[kind])
	}
	for _, f := range orbitFrames {
		d.messages.set(f.kind, with(shut(node{
			"description": "To the client: " + f.about,
			"allOf":       []node{to(f.of)},
			"properties":  node{"type": node{"const": f.kind}, "data": d.ref(reflect.TypeOf(f.data))},
		}), f.also))
	}
	health := reflect.TypeFor[orbit.Health]()
	d.messages.set("health", d.object(health, true))
	d.orbitParts()
	return d.encode("orbit", "Messages of the ORBIT chat protocol", []string{"in", "out"})
}

// orbitParts adds what frames have in common.
func (d *definitions) orbitParts() {
	run := node{"type": "string", "pattern": execPattern}
	d.types["Timestamp"] = node{"description": "ISO 8601, UTC, milliseconds.", "type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`}
	d.types["Text"] = node{"description": "The user's text. Not empty, not only white space.", "type": "string", "pattern": notBlank}
	d.types["ExecutionID"] = with(run, node{"description": "The run that a frame belongs to; the same on all frames of a run."})
	d.types[ofSocket] = node{
		"description": "A frame that belongs to no run.", "type": "object",
		"properties": node{
			"type": node{"type": "string"}, "timestamp": to("Timestamp"), "data": node{"type": "object"},
			"execution_id": node{"description": "Always present and null.", "type": "null"},
		},
		"required": []string{"type", "timestamp", "execution_id", "data"},
	}
	d.types[ofAny] = node{
		"description": "A frame of a run. execution_id is absent where the watched log has no run: a task of the swarm, a team.",
		"type":        "object",
		"properties": node{
			"type": node{"type": "string"}, "timestamp": to("Timestamp"), "data": node{"type": "object"}, "execution_id": to("ExecutionID"),
			"seq": node{
				"description": "Position of the frame's event in the session: the value for ?after=. Strictly increasing; " +
					"not dense, because not every event gives a frame. Addition.",
				"type": "integer", "minimum": 1,
			},
			"agent": node{
				"description": "The member of a team that the frame is of: a path of names from the team that is watched. Addition.",
				"type":        "string", "minLength": 1,
			},
		},
		"required": []string{"type", "timestamp", "data"},
	}
	d.types[ofRun] = node{
		"description": "A frame that always belongs to a run.", "allOf": []node{to(ofAny)}, "required": []string{"seq", "execution_id"},
	}
}

// orbitInbound are the messages from the client.
func orbitInbound() map[string]node {
	message := func(kind, about string, required []string, props node) node {
		return node{
			"description": "From the client: " + about, "type": "object",
			"properties": with(props, node{"type": node{"const": kind}}), "required": append([]string{"type"}, required...),
		}
	}
	chosen := func(about string) node {
		return node{"description": "Chosen by the client" + about, "type": []string{"string", "null"}, "minLength": 1}
	}
	text := node{"properties": node{"content": to("Text")}}
	return map[string]node{
		orbit.UserMessage: with(message(orbit.UserMessage, "a question. The text is content, or data.content without it.", nil, node{
			"id": chosen(", unique in the session: a message that is sent again with the same id is answered once. Without it every message is new. Addition."),
		}), node{
			"if": node{"required": []string{"content"}}, "then": text,
			"else": node{
				"properties": node{"data": with(text, node{"type": "object", "required": []string{"content"}})}, "required": []string{"data"},
			},
		}),
		orbit.Cancel: message(orbit.Cancel, "stop the active run. Without one it does nothing. Addition.", nil, node{
			"id": chosen(": a cancel that is sent again with the same id counts once."),
		}),
		orbit.Answer: message(orbit.Answer, "the answer to a question. The first one counts. Addition.", []string{"question_id", "approved"}, node{
			"id":          chosen(": an answer that is sent again with the same id counts once."),
			"question_id": node{"description": "data.question.id of the frame that asks.", "type": "string", "minLength": 1, "maxLength": 128},
			"approved":    node{"description": "Whether what is asked for may be done.", "type": "boolean"},
			"feedback":    node{"description": "Why; to an agent that asks for a text, the text.", "type": []string{"string", "null"}},
		}),
	}
}
