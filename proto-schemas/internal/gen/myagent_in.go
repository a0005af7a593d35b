package gen

import "github.com/waggle-dev/waggle/proto-schemas/myagent"

// Patterns of ids and cursors.
const (
	idPattern     = "^[A-Za-z0-9_-]{1,128}$"
	cursorPattern = `^([A-Za-z0-9_-]{1,128}-)?(0|[1-9][0-9]{0,18})(\.(0|[1-9][0-9]{0,18}))?$`
	ofThisSession = "^[A-Za-z0-9_-]{1,128}-" // the beginning of a cursor that names its session
)

// orNull returns the schema of a member of a type that may be null, too.
func orNull(kind, about string, more node) node {
	return with(node{"description": about, "type": []string{kind, "null"}}, more)
}

func maybeID(about string) node { return orNull("string", about, node{"pattern": idPattern}) }
func maybeText(about string) node {
	return orNull("string", about, node{"maxLength": myagent.MaxContent})
}
func maybeFlag(about string) node { return orNull("boolean", about, nil) }
func maybeCursor(about string) node {
	return orNull("string", about, node{"pattern": cursorPattern})
}

func maybeNumber(least, most int, about string) node {
	return orNull("integer", about, node{"minimum": least, "maximum": most})
}

// has says that a member of an object is there, and what it is.
func has(member string, schema node) node {
	return node{"required": []string{member}, "properties": node{member: schema}}
}

// holds says that an object within the message has the member.
func holds(object, member string, schema node) node {
	return has(object, with(node{"type": "object"}, has(member, schema)))
}

// myagentSent is the schema of an event from the client.
func myagentSent(kind, about string, base []string, required []string, props node) node {
	s := node{
		"description": "From the client: " + about, "type": "object",
		"properties": with(props, node{"event": node{"const": kind}}), "required": append([]string{"event"}, required...),
	}
	var parts []node
	for _, name := range base {
		parts = append(parts, to(name))
	}
	if parts != nil {
		s["allOf"] = parts
	}
	return s
}

// command is an event from the client that asks for something in a session.
func command(kind, about string, required []string, props node) node {
	return myagentSent(kind, about, []string{"Command"}, required, props)
}

// oneTask is what names a task.
var oneTask = node{"content": to("TaskNamed"), "metadata": to("ReasonMeta")}

// myagentInbox are the events from the client.
var myagentInbox = map[string]node{
	myagent.UserMessage: command(myagent.UserMessage, "a question, to be answered by planning and solving.", []string{"content"}, node{
		"content":  node{"description": "The question.", "anyOf": []node{to("Text"), with(node{"type": "object"}, has("question", to("Text")))}},
		"metadata": to("RunMeta"),
	}),
	myagent.UserSolveTasks: command(myagent.UserSolveTasks, "tasks, to be solved without planning.", []string{"content"}, node{
		"content": to("TasksGiven"), "metadata": to("RunMeta"),
	}),
	myagent.UserResponse: command(myagent.UserResponse, "the answer to an agent.user_confirm.", []string{"step_id", "content"}, node{
		"step_id": node{"description": "That of the question.", "type": "string", "minLength": 1, "maxLength": myagent.MaxID},
		"content": to("Response"), "metadata": to("CommandMeta"),
	}),
	myagent.UserCancel: command(myagent.UserCancel, "stop the active run.", nil, node{
		"content": node{"description": "A text for people. Passed over."}, "metadata": to("ReasonMeta"),
	}),
	myagent.UserCancelPlan: command(myagent.UserCancelPlan, "give up the plan that is being made or waits for its confirmation.", nil, node{
		"metadata": to("ReasonMeta"),
	}),
	myagent.UserCancelTask: command(myagent.UserCancelTask, "stop one task.", []string{"content"}, oneTask),
	myagent.UserRestartTask: command(myagent.UserRestartTask, "solve one task again.", []string{"content"}, with(oneTask, node{
		"metadata": node{"allOf": []node{to("ReasonMeta")}, "properties": node{
			"max_attempts": maybeNumber(1, myagent.MaxTries, "Attempts from now on. Absent: the server's limit."),
		}},
	})),
	myagent.UserReplan: command(myagent.UserReplan, "make another plan.", nil, node{
		"content": node{"anyOf": []node{
			{"type": "null"},
			{"description": "The new question.", "type": "string", "maxLength": myagent.MaxContent},
			{"type": "object", "properties": node{"question": maybeText("The new question. Absent: the one before.")}},
		}},
		"metadata": to("RunMeta"),
	}),
	myagent.UserRequestState: myagentSent(myagent.UserRequestState, "export the session's state.", []string{"OfSession"}, nil, node{
		"metadata": node{"type": []string{"object", "null"}, "properties": node{
			"include_history":    maybeFlag("With the newest events."),
			"max_history_events": maybeNumber(0, myagent.MaxHistory, "How many; absent or 0: 100."),
		}},
	}),
	myagent.UserCreateSession: myagentSent(myagent.UserCreateSession, "make a session.", nil, nil, node{
		"content": to("ClientInfo"), "metadata": to("ClientMeta"),
	}),
	myagent.UserReconnectWithState: reconnect(myagent.UserReconnectWithState, "go on with a session, by its id or by a signed state."),
	myagent.UserReconnect:          reconnect(myagent.UserReconnect, "the same as user.reconnect_with_state."),
	myagent.UserAck: with(myagentSent(myagent.UserAck, "everything up to here has arrived. A position is needed; an event id wins over a seq, and of "+
		"several numbers the first of metadata.last_seq, content.last_seq, content, seq, last_seq.", nil, nil, node{
		"session_id":    maybeID("The session. Absent: the only one of the socket."),
		"seq":           aSeq("The newest seq that has arrived."),
		"last_seq":      aSeq("The same."),
		"last_event_id": maybeCursor("The newest event_id that has arrived."),
		"content": node{
			"if": node{"type": "object"}, "then": to("Arrived"),
			"else": node{"type": []string{"integer", "null"}, "minimum": 0, "maximum": myagent.MaxSeq},
		},
		"metadata": node{"type": []string{"object", "null"}, "allOf": []node{to("Arrived")}},
	}), node{"anyOf": []node{
		has("seq", integer), has("last_seq", integer), has("last_event_id", aString), has("content", integer),
		holds("content", "last_seq", integer), holds("content", "last_event_id", aString),
		holds("metadata", "last_seq", integer), holds("metadata", "last_event_id", aString),
	}}),
}

var (
	integer  = node{"type": "integer"}
	aString  = node{"type": "string"}
	anObject = node{"type": "object"}
)

func aSeq(about string) node { return maybeNumber(0, myagent.MaxSeq, about) }

// reconnect is an event that continues with a session.
func reconnect(kind, about string) node {
	signed := orNull("object", "A signed state, as agent.state_exported had it: the session is restored from it.", nil)
	cursor := node{"type": "string", "pattern": ofThisSession}
	return with(myagentSent(kind, about, []string{"Position"}, nil, node{
		"session_id": maybeID("The session."), "signed_state": signed,
		"content": node{
			"type": []string{"object", "null"}, "allOf": []node{to("Position")},
			"properties": node{
				"session_id": maybeID("The session, where the top level names none."), "signed_state": signed,
				"client_state_hash": orNull("string", "Hash of the state as the client knows it: the answer says whether it is right.", node{"maxLength": myagent.MaxID}),
				"batch":             maybeFlag("Missed events in few frames. Addition."),
				"merge":             maybeFlag("Consecutive pieces of a text as one. Addition."),
			},
		},
		"metadata": node{"type": []string{"object", "null"}, "allOf": []node{to("Position")}},
	}), node{"anyOf": []node{
		has("last_event_id", cursor), holds("content", "last_event_id", cursor), holds("metadata", "last_event_id", cursor),
		has("session_id", aString), has("signed_state", anObject), holds("content", "session_id", aString), holds("content", "signed_state", anObject),
	}})
}

const (
	keptWithRun     = "Members that are not named here are kept with the run."
	keptWithSession = "Members that are not named here are kept with the session."
	namesCommand    = "Names the command: one that is sent again with the same name is carried out once. Without it every frame is new. Addition."
	confirmPlan     = "Ask before the plan is carried out. Absent: the session's or the server's setting. Addition."
	onBusy          = "How to handle a message during an active run. Absent: the session's or the server's setting. Addition."
)

var busy = node{"enum": []any{"reject", "enqueue", "interrupt", nil}}

// myagentParts are what events from the client have in common.
var myagentParts = map[string]node{
	"OfSession": with(node{"description": "An event for a session.", "type": "object"}, has("session_id", node{
		"description": "The session.", "type": "string", "pattern": idPattern,
	})),
	"Command": {
		"description": "An event that asks for something in a session.", "allOf": []node{to("OfSession")},
		"properties": node{"id": orNull("string", namesCommand+" metadata.message_id wins.", node{"minLength": 1})},
	},
	"CommandMeta": {
		"description": keptWithRun, "type": []string{"object", "null"},
		"properties": node{"message_id": orNull("string", namesCommand, node{"minLength": 1}), "client_id": maybeID("The device.")},
	},
	"ReasonMeta": {"allOf": []node{to("CommandMeta")}, "properties": node{
		"reason": node{"description": "Why; a text. Anything else is passed over."},
	}},
	"RunMeta": {"allOf": []node{to("CommandMeta")}, "properties": node{
		"confirm_plan":    maybeFlag(confirmPlan),
		"on_busy":         orNull("string", onBusy, busy),
		"max_concurrent":  maybeNumber(1, myagent.MaxTasks, "Tasks at once. The server may allow fewer."),
		"parallelizable":  maybeFlag("false is max_concurrent 1."),
		"timeout_seconds": maybeNumber(1, myagent.MaxTimeout, "Of one attempt at a task."),
	}},
	"Text":      {"description": "A text that is not blank.", "type": "string", "maxLength": myagent.MaxContent, "pattern": notBlank},
	"NotBlank":  {"type": "string", "pattern": notBlank},
	"TaskNamed": with(node{"type": "object"}, has("task_id", to("TaskID"))),
	"TaskID": {"description": "The task. An integer is taken as its digits.", "anyOf": []node{
		{"type": "string", "pattern": idPattern}, {"type": "integer", "minimum": 0, "maximum": myagent.MaxSeq},
	}},
	"TasksGiven": {
		"type": "object", "required": []string{"tasks"}, "properties": node{
			"tasks": node{
				"description": "The tasks, or a single one.", "if": node{"type": "array"},
				"then": node{"minItems": 1, "maxItems": myagent.MaxTasks, "items": to("TaskGiven")}, "else": to("TaskGiven"),
			},
			"question":     maybeText("The purpose of the tasks. Absent: plan_summary, or the titles of the tasks."),
			"plan_summary": maybeText("Stands for an absent question."),
		},
	},
	"TaskGiven": {
		"description": "Members that are not named here stay with the task.", "type": "object", "required": []string{"id"},
		"properties": node{
			"id":          with(to("TaskID"), node{"description": "Unique in the list. An integer is taken as its digits."}),
			"title":       maybeText("The task in a few words. Absent: name, or the beginning of description."),
			"name":        maybeText("Stands for an absent title."),
			"description": maybeText("The work to do."),
			"objective":   maybeText("Stands for an absent description."),
			"priority":    maybeNumber(0, 1_000_000, "Lower starts earlier among the tasks that could start."),
			"dependencies": orNull("array", "The tasks that have to be done first.", node{
				"maxItems": myagent.MaxTasks, "items": to("TaskID"),
			}),
			"capability":             maybeID("The agents that may solve it. Absent: the built-in one. Addition."),
			"context":                node{"description": "Anything that helps."},
			"estimated_tokens":       aSeq("A guess."),
			"estimated_time_seconds": aSeq("A guess."),
		},
		"anyOf": []node{
			has("title", to("NotBlank")), has("name", to("NotBlank")), has("description", to("NotBlank")), has("objective", to("NotBlank")),
		},
	},
	"Response": {
		"type": "object", "properties": node{
			"approved":  maybeFlag("The decision."),
			"confirmed": maybeFlag("Stands for an absent approved."),
			"feedback":  maybeText("Why."),
			"modified_tasks": node{"description": "Tasks whose members replace those of the tasks with the same id. " +
				"An invalid list is answered with plan.coercion_error."},
			"tool_args": node{"description": "To a question about a call that has tool_schema: what the approved call runs with instead. Addition."},
			"tasks":     node{"description": "The whole list, replaced. Wins over modified_tasks. An invalid list is answered with plan.coercion_error."},
		},
		"anyOf": []node{has("approved", node{"type": "boolean"}), has("confirmed", node{"type": "boolean"})},
	},
	"ClientInfo": {
		"description": keptWithSession, "type": []string{"object", "null"}, "properties": node{
			"client_id": maybeID("The device."),
			"user_id":   orNull("string", "The user, as named by the client.", node{"maxLength": myagent.MaxID}),
			"preferences": orNull("object", keptWithSession, node{"properties": node{
				"language": orNull("string", "zh_CN (default) or en_US: of show_content and of questions.", node{"maxLength": myagent.MaxID}),
			}}),
		},
	},
	"ClientMeta": {
		"description": keptWithSession, "type": []string{"object", "null"}, "properties": node{
			"client_id": maybeID("The device."), "confirm_plan": maybeFlag(confirmPlan), "on_busy": orNull("string", onBusy, busy),
		},
	},
	"Position": {
		"description": "Where the client left.", "properties": node{
			"last_seq":      aSeq("The highest seq that the client has."),
			"last_event_id": maybeCursor("The event_id that it saw last; wins over last_seq."),
			"client_id":     maybeID("The device. Without a position, its last acknowledged one counts."),
		},
	},
	"Arrived": {
		"description": "The position up to which a device has received events.", "properties": node{
			"last_seq":      aSeq("The newest seq that has arrived."),
			"last_event_id": maybeCursor("The newest event_id that has arrived."),
			"client_id":     maybeID("The device."),
		},
	},
}
