package api

import (
	"net/http"
	"slices"

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

// Route is a request that the API answers. The table of routes registers the handlers and generates the OpenAPI document.
type Route = openapi.Route[func(*API) http.HandlerFunc]

// authenticated makes a Handler of the API a handler of requests.
func authenticated(h func(*API, *http.Request, *edge.Client) (any, error)) func(*API) http.HandlerFunc {
	return func(a *API) http.HandlerFunc {
		return a.server.Serve(func(r *http.Request, who *edge.Client) (any, error) { return h(a, r, who) })
	}
}

// paged is authenticated for answers as large as a page.
func paged(h func(*API, *http.Request, *edge.Client) (any, error)) func(*API) http.HandlerFunc {
	return func(a *API) http.HandlerFunc {
		return a.server.ServePage(func(r *http.Request, who *edge.Client) (any, error) { return h(a, r, who) })
	}
}

// exporting is authenticated for an Export.
func exporting(h func(*API, *http.Request, *edge.Client) (any, error)) func(*API) http.HandlerFunc {
	return func(a *API) http.HandlerFunc {
		return a.server.ServeExport(func(r *http.Request, who *edge.Client) (any, error) { return h(a, r, who) })
	}
}

// framed handles requests for frames, if the gateway speaks any protocol.
func framed(a *API) http.HandlerFunc {
	if a.cfg.Translate == nil {
		return nil
	}
	return paged((*API).listLogFrames)(a)
}

func participants(verb id.Name, answer func([]cmd.Participant, string) any) func(*API) http.HandlerFunc {
	list := listParticipants(verb, answer)
	return func(a *API) http.HandlerFunc { return a.server.Serve(list(a)) }
}

func stream(kind id.Kind) func(*API) http.HandlerFunc {
	return func(a *API) http.HandlerFunc {
		if a.cfg.Stream == nil {
			return nil
		}
		return a.cfg.Stream(kind)
	}
}

func json200(about string, body any) []openapi.Answer {
	return []openapi.Answer{{Status: http.StatusOK, About: about, Type: body}}
}

func accepted() []openapi.Answer {
	return json200("A service carries the request out soon after.", wire.Accepted{})
}

// taken is the answer to a request with an outcome.
func taken(about string) []openapi.Answer {
	return []openapi.Answer{{Status: http.StatusAccepted, About: about + " A repeat with the same id has the same response.", Type: wire.Accepted{}}}
}

// pageQuery are the parameters of a list that has pages.
var pageQuery = []openapi.Parameter{
	{Name: "before", About: "The member next of the previous page.", Type: "string"},
	{Name: "limit", About: "Items of the page; 200 by default.", Type: "integer", Maximum: request.MaxItems},
}

// sessionQuery are the filters of the list of sessions.
var sessionQuery = []openapi.Parameter{
	{Name: "status", About: "open or closed.", Type: "string"},
	{Name: "state", About: "running, waiting (for people), or how the last run ended: completed, partly, failed, cancelled, unknown_outcome. idle: no run is under way.", Type: "string"},
	{Name: "principal", About: "The principal that opened the session.", Type: "string"},
	{Name: "dialect", About: "The dialect of the connection that opened the session.", Type: "string"},
	{Name: "since", About: "Changed at this time or later (RFC 3339).", Type: "string"},
	{Name: "until", About: "Changed before this time (RFC 3339).", Type: "string"},
	{Name: "q", About: "Part of the beginning of the first message, in any case.", Type: "string"},
}

// Parameters that several routes have.
var (
	participantFilter = []openapi.Parameter{
		{Name: "status", About: "Status, as the agent protocol or the swarm names it.", Type: "string"},
		{Name: "capability", About: "A required capability.", Type: "string", Many: true},
		{Name: "name", About: "Part of the name, in any case.", Type: "string"},
		{Name: "prefix", About: "Beginning of the name.", Type: "string"},
		{Name: "type", About: "Type in the registration of the participant.", Type: "string"},
	}
	streamQuery  = []openapi.Parameter{{Name: "after", About: "Position: the stream begins with the next event.", Type: "string"}}
	streamHeader = []openapi.Parameter{{Name: "Last-Event-ID", About: "Position: comes before the parameter after.", Type: "string"}}
	events200    = openapi.Answer{Status: http.StatusOK, About: "Server-sent events: canonical events (schema event).", Media: respond.MediaEvents}
	lines200     = openapi.Answer{Status: http.StatusOK, About: "For Accept: application/jsonl, the events that the log has now, one on each line.", Media: respond.MediaLines}
)

// actionRoutes are the requests to a session that have an outcome.
func actionRoutes() []Route {
	with := func(more ...fault.Code) []fault.Code {
		return append(more, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.Draining, fault.SessionNotFound, fault.SessionDeleted)
	}
	return []Route{
		{
			Method: "POST", Path: "/sessions", ID: "nameSession", Tag: "sessions", Summary: "Name a new session, which its first message opens.",
			Body:    wire.NewSession{},
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The id of the session. Location is its path.", Type: wire.SessionName{}}},
			Faults:  []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig}, Handler: authenticated((*API).nameSession),
		},
		{
			Method: "POST", Path: "/sessions/{id}/messages", ID: "messageSession", Tag: "sessions", Summary: "Send a session a message.",
			Body: wire.NewMessage{}, Required: true, Answers: taken("The message is received."),
			Faults:  with(fault.SessionClosed, fault.SessionBusy, fault.QueueFull, fault.BudgetExceeded, fault.ModelNotFound, fault.AgentNotFound),
			Handler: authenticated((*API).messageSession),
		},
		{
			Method: "POST", Path: "/sessions/{id}/runs/{run}/steps/{step}/cancel", ID: "cancelStep", Tag: "sessions", Summary: "Cancel a step of a run. The run last is the active one.",
			Body: wire.StepAction{}, Answers: taken("The step is cancelled."), Faults: with(fault.RunOver, fault.RunNotFound, fault.TaskNotFound),
			Handler: authenticated(stepAction(cmd.CancelStep)),
		},
		{
			Method: "POST", Path: "/sessions/{id}/runs/{run}/steps/{step}/restart", ID: "restartStep", Tag: "sessions",
			Summary: "Restart a step of the active run, or of the last one in a new run. The run last is either.",
			Body:    wire.StepAction{}, Answers: taken("The step is restarted. The run may be a new one."), Faults: with(fault.RunOver, fault.RunNotFound, fault.TaskNotFound),
			Handler: authenticated(stepAction(cmd.RestartStep)),
		},
		{
			Method: "POST", Path: "/sessions/{id}/plan/cancel", ID: "cancelPlan", Tag: "sessions", Summary: "Give up the plan that is being made or waits for its confirmation.",
			Body: wire.CancelPlan{}, Answers: taken("The plan is given up."), Faults: with(fault.RunOver), Handler: authenticated((*API).cancelPlan),
		},
		{
			Method: "POST", Path: "/sessions/{id}/replan", ID: "replanSession", Tag: "sessions", Summary: "Have another plan made, in the active run or in a new one.",
			Body: wire.NewPlan{}, Answers: taken("Another plan is being made."),
			Faults:  with(fault.RunOver, fault.SessionClosed, fault.SessionBusy, fault.QueueFull, fault.ModelNotFound),
			Handler: authenticated((*API).replan),
		},
	}
}

func sessionRoutes() []Route {
	known := []fault.Code{fault.SessionNotFound, fault.SessionDeleted}
	with := func(more ...fault.Code) []fault.Code { return append(more, known...) }
	return []Route{
		{
			Method: "GET", Path: "/sessions", ID: "listSessions", Tag: "sessions", Summary: "List sessions, the newest change first.",
			Query:   append(slices.Clone(pageQuery), sessionQuery...),
			Answers: json200("A page of the sessions of the tenant.", wire.SessionList{}), Faults: []fault.Code{fault.InvalidField}, Handler: authenticated((*API).listSessions),
		},
		{
			Method: "GET", Path: "/sessions/{id}", ID: "showSession", Tag: "sessions", Summary: "Show a session and its runs.",
			Answers: json200("The session.", wire.SessionDetail{}), Faults: with(fault.MessageTooBig, fault.HeadExpired), Handler: authenticated((*API).showSession),
		},
		{
			Method: "DELETE", Path: "/sessions/{id}", ID: "deleteSession", Tag: "sessions", Summary: "Delete a session with its log for good.",
			Answers: []openapi.Answer{
				{Status: http.StatusNoContent, About: "The session is deleted."},
				{Status: http.StatusAccepted, About: "The session will be deleted.", Type: wire.Accepted{}},
			},
			Faults: with(), Handler: authenticated((*API).deleteSession),
		},
		{
			Method: "GET", Path: "/sessions/{id}/events", ID: "listSessionEvents", Tag: "sessions", Summary: "Read a page of a session's log.",
			Query: []openapi.Parameter{
				{Name: "after", About: "Position: the page begins with the next event.", Type: "string"},
				{Name: "limit", About: "Events of the page; 500 by default.", Type: "integer", Maximum: maxEvents},
			},
			Answers: json200("The events.", wire.EventPage{}), Faults: with(fault.InvalidField, fault.CursorInvalid, fault.HeadExpired),
			Handler: paged((*API).sessionEvents),
		},
		{
			Method: "GET", Path: "/sessions/{id}/files/{digest}", ID: "showSessionFile", Tag: "sessions", Summary: "Fetch a file that a message of a session has brought along.",
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The file: an image with its media type, anything else to be saved.", Media: respond.MediaBytes}},
			Faults:  with(fault.NotFound, fault.PayloadLost), Handler: authenticated((*API).sessionFile),
		},
		{
			Method: "GET", Path: "/sessions/{id}/state", ID: "exportSession", Tag: "sessions", Summary: "Export the signed state of a session.",
			Query: []openapi.Parameter{
				{Name: "history", About: "With the newest events.", Type: "boolean"},
				{Name: "max_history", About: "Number of events; 100 by default.", Type: "integer", Maximum: maxHistory},
			},
			Answers: json200("The state.", event.StateExportedData{}), Faults: with(fault.InvalidField, fault.MessageTooBig, fault.HeadExpired),
			Handler: authenticated((*API).exportSession),
		},
		{
			Method: "POST", Path: "/sessions/{id}/cancel", ID: "cancelSession", Tag: "sessions", Summary: "Cancel the active run of a session.",
			Answers: accepted(), Faults: with(), Handler: authenticated((*API).cancelSession),
		},
		{
			Method: "POST", Path: "/sessions/{id}/close", ID: "closeSession", Tag: "sessions", Summary: "Close a session: it takes no message any more, and its log stays.",
			Answers: accepted(), Faults: with(), Handler: authenticated((*API).closeSession),
		},
		{
			Method: "POST", Path: "/sessions/import", ID: "importSession", Tag: "sessions", Summary: "Restore a session from the signed state of an export.",
			Body: signedState{}, Required: true, Answers: json200("The session.", cmd.ImportReply{}),
			Faults:  []fault.Code{fault.BadJSON, fault.MessageTooBig, fault.StateTampered, fault.StateExpired, fault.SessionDeleted, fault.QuotaExceeded},
			Handler: authenticated((*API).importSession),
		},
	}
}

func questionRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/questions", ID: "listQuestions", Tag: "questions", Summary: "List what sessions, teams and tasks ask people.",
			Query: []openapi.Parameter{
				{Name: "scope", About: "plan, tool, client_tool, budget or agent.", Type: "string"},
				{Name: "state", About: "open (default), answered, expired or withdrawn. One whose time is over is not open.", Type: "string"},
				{Name: "kind", About: "Kind of the log that asks: session, member or task. A question of an agent that does a job is listed once, as that of the job's log; with task, as that of its task.", Type: "string"},
				{Name: "log", About: "Id of the log that asks.", Type: "string"},
				pageQuery[0],
				{Name: "limit", About: "Questions of the page; 50 by default.", Type: "integer", Maximum: maxQuestions},
			},
			Answers: json200("A page of the questions that the principal sees.", wire.QuestionList{}), Faults: []fault.Code{fault.InvalidField},
			Handler: authenticated((*API).listQuestions),
		},
		{
			Method: "POST", Path: "/questions/{input}/answer", ID: "answerQuestion", Tag: "questions", Summary: "Answer a question. The first answer counts.",
			Body: wire.QuestionAnswer{}, Required: true,
			Answers: json200("The answer counts. A repeat with the same id has the same response.", wire.QuestionOutcome{}),
			Faults: []fault.Code{
				fault.NotFound, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.SessionDeleted, fault.InputAnswered, fault.InputNotFound,
				fault.InputExpired, fault.PlanInvalid, fault.TaskNotFound, fault.TaskFinished, fault.MemberNotFound, fault.TeamClosed, fault.Draining,
			},
			Handler: authenticated((*API).answerQuestion),
		},
	}
}

func taskRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/tasks", ID: "listTasks", Tag: "tasks", Summary: "List tasks, the newest change first.",
			Query: []openapi.Parameter{
				{Name: "before", About: "The member next of the previous page.", Type: "string"},
				{Name: "limit", About: "Tasks of the page; 50 by default.", Type: "integer", Maximum: maxTasks},
			},
			Answers: json200("A page of tasks. Stored results are references.", wire.TaskPage{}), Faults: []fault.Code{fault.InvalidField},
			Handler: authenticated((*API).listTasks),
		},
		{
			Method: "POST", Path: "/tasks", ID: "createTask", Tag: "tasks", Summary: "Give an agent of the swarm a task.", Body: wire.NewTask{}, Required: true,
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The task. Location is its path. A repeat with the same id has the same response.", Type: wire.TaskName{}}},
			Faults:  []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.AgentNotFound}, Handler: authenticated((*API).createTask),
		},
		{
			Method: "GET", Path: "/tasks/{id}", ID: "showTask", Tag: "tasks", Summary: "Show a task with its newest 200 events.",
			Answers: json200("The task.", wire.TaskDetail{}), Faults: []fault.Code{fault.TaskNotFound, fault.SessionDeleted, fault.PayloadLost},
			Handler: authenticated((*API).showTask),
		},
		{
			Method: "POST", Path: "/tasks/{id}/cancel", ID: "cancelTask", Tag: "tasks", Summary: "Cancel a task.",
			Body: wire.CancelTask{}, Answers: accepted(), Faults: []fault.Code{fault.TaskNotFound, fault.SessionDeleted, fault.TaskFinished, fault.BadJSON},
			Handler: authenticated((*API).cancelTask),
		},
		{
			Method: "POST", Path: "/tasks/{id}/messages", ID: "messageTask", Tag: "tasks", Summary: "Tell the agent of a task something, or answer its question.",
			Body: wire.TaskMessage{}, Required: true, Answers: taken("The message is in the log of the task."),
			Faults: []fault.Code{
				fault.TaskNotFound, fault.SessionDeleted, fault.TaskFinished, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.Draining,
			},
			Handler: authenticated((*API).messageTask),
		},
		{
			Method: "POST", Path: "/tasks/{id}/retry", ID: "retryTask", Tag: "tasks", Summary: "Submit a task that ended without success again, as a new one.",
			Body:    wire.RetryTask{},
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The new task, whose member retry_of names the old one. Location is its path. A repeat with the same id has the same response.", Type: wire.TaskName{}}},
			Faults: []fault.Code{
				fault.TaskNotFound, fault.SessionDeleted, fault.TaskOpen, fault.TaskFinished, fault.AgentNotFound, fault.PayloadLost, fault.QuotaExceeded,
				fault.BadJSON, fault.InvalidField, fault.MessageTooBig,
			},
			Handler: authenticated((*API).retryTask),
		},
	}
}

func participantRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/agents", ID: "listAgents", Tag: "swarm", Summary: "List agents of the swarm.", Query: slices.Concat(participantFilter, pageQuery), Faults: []fault.Code{fault.InvalidField},
			Answers: json200("The agents.", wire.AgentList{}),
			Handler: participants(cmd.ListAgents, func(p []cmd.Participant, next string) any {
				return wire.AgentList{Agents: p, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/services", ID: "listServices", Tag: "swarm", Summary: "List ASP services.", Query: slices.Concat(participantFilter, pageQuery), Faults: []fault.Code{fault.InvalidField},
			Answers: json200("The services.", wire.ServiceList{}),
			Handler: participants(cmd.ListServices, func(p []cmd.Participant, next string) any {
				return wire.ServiceList{Services: p, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/clients", ID: "listClients", Tag: "swarm", Summary: "List clients of the swarm.", Query: slices.Concat(participantFilter, pageQuery), Faults: []fault.Code{fault.InvalidField},
			Answers: json200("The clients.", wire.ClientList{}),
			Handler: participants(cmd.ListClients, func(p []cmd.Participant, next string) any {
				return wire.ClientList{Clients: p, Next: next, More: next != ""}
			}),
		},
		{
			Method: "GET", Path: "/mcp", ID: "listServers", Tag: "swarm", Summary: "List MCP servers.", Query: slices.Concat(participantFilter, pageQuery),
			Answers: json200("The servers.", wire.ServerList{}), Faults: []fault.Code{fault.ToolsDown, fault.InvalidField},
			Handler: participants(cmd.ListServers, func(p []cmd.Participant, next string) any {
				return wire.ServerList{Servers: p, Next: next, More: next != ""}
			}),
		},
	}
}

// toolRoutes are the requests about tools.
func toolRoutes() []Route {
	known := []fault.Code{fault.ToolNotFound, fault.ServerNotFound, fault.ServiceNotFound, fault.ToolBadInput, fault.ToolsDown}
	return []Route{
		{
			Method: "GET", Path: "/tools", ID: "listTools", Tag: "swarm", Summary: "List the tools of providers.",
			Query: []openapi.Parameter{
				{Name: "kind", About: "Kind of the providers: mcp or service.", Type: "string"},
				{Name: "provider", About: "Id of a provider.", Type: "string"},
				pageQuery[0],
				{Name: "limit", About: "Tools of the page; 200 by default.", Type: "integer", Maximum: maxTools},
			},
			Answers: json200("A page of the tools, without their schemas.", wire.ToolPage{}), Faults: []fault.Code{fault.ToolsDown, fault.InvalidField},
			Handler: authenticated((*API).listTools),
		},
		{
			Method: "GET", Path: "/tools/{provider}/{tool}", ID: "showTool", Tag: "swarm", Summary: "Show a tool of a provider.",
			Query:   []openapi.Parameter{{Name: "kind", About: "Kind of the provider: mcp or service.", Type: "string"}},
			Answers: json200("The tool.", wire.ToolDetail{}), Faults: known, Handler: authenticated((*API).showTool),
		},
		{
			Method: "POST", Path: "/tools/{provider}/{tool}/call", ID: "callTool", Tag: "swarm", Summary: "Call a tool of a provider.",
			Query: []openapi.Parameter{{Name: "wait", About: "Seconds to wait for the outcome; 5 by default.", Type: "integer", Maximum: maxWait}},
			Body:  wire.NewToolCall{}, Required: true,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The outcome. A repeat with the same id has the same response.", Type: wire.CallView{}},
				{Status: http.StatusAccepted, About: "The call takes longer. The log of kind call with the id call_id gets its outcome.", Type: wire.CallView{}},
			},
			Faults: append([]fault.Code{
				fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.ToolDenied, fault.ServiceBusy, fault.ToolsBusy, fault.Overloaded, fault.QuotaExceeded,
			}, known...),
			Handler: authenticated((*API).callTool),
		},
	}
}

func teamRoutes() []Route {
	known := []fault.Code{fault.TeamNotFound}
	act := []fault.Code{fault.TeamNotFound, fault.TeamClosed}
	body := []fault.Code{fault.TeamNotFound, fault.TeamClosed, fault.MemberNotFound, fault.BadJSON, fault.InvalidField, fault.MessageTooBig}
	route := func(method, path, op, summary string, answers []openapi.Answer, faults []fault.Code, h func(*API, *http.Request, *edge.Client) (any, error)) Route {
		return Route{Method: method, Path: path, ID: op, Tag: "teams", Summary: summary, Answers: answers, Faults: faults, Handler: authenticated(h)}
	}
	all := []Route{
		route("GET", "/teams/{id}", "showTeam", "Show a team.", json200("The team.", cmd.TeamView{}), known, (*API).showTeam),
		route("DELETE", "/teams/{id}", "closeTeam", "Stop a team and close it for good.", accepted(), act, (*API).closeTeam),
		route("POST", "/teams/{id}/pause", "pauseTeam", "Hold back messages to the members of a team.", accepted(), act, (*API).pauseTeam),
		route("POST", "/teams/{id}/resume", "resumeTeam", "Release the held messages of a team.", accepted(), act, (*API).resumeTeam),
	}
	list := route("GET", "/teams", "listTeams", "List teams, the newest first.", json200("A page of the teams, without nested ones.", cmd.TeamList{}),
		[]fault.Code{fault.InvalidField}, (*API).listTeams)
	list.Query = []openapi.Parameter{pageQuery[0], {Name: "limit", About: "Teams of the page; 100 by default.", Type: "integer", Maximum: maxTeams}}
	create := route("POST", "/teams", "createTeam", "Create a team.",
		[]openapi.Answer{{Status: http.StatusCreated, About: "The team. Location is its path.", Type: cmd.TeamView{}}},
		[]fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.TeamInvalid, fault.TeamNotFound, fault.QuotaExceeded}, (*API).createTeam)
	create.Body, create.Required = wire.NewTeam{}, true
	message := route("POST", "/teams/{id}/messages", "messageTeam", "Send a team a message.", accepted(), body, (*API).messageTeam)
	message.Body, message.Required = wire.TeamMessage{}, true
	stop := route("POST", "/teams/{id}/stop", "stopTeam", "Stop the runs of a team, or of one member.", accepted(), body, (*API).stopTeam)
	stop.Body = wire.StopTeam{}
	return append(all, list, create, message, stop)
}

func logRoutes() []Route {
	known := []fault.Code{fault.RunNotFound, fault.SessionDeleted}
	return []Route{
		{
			Method: "GET", Path: "/logs/{kind}/{id}/head", ID: "showLogHead", Tag: "events", Summary: "Show the extent of the log of a session, member, team, task or call.",
			Answers: json200("The extent.", wire.LogHead{}), Faults: known, Handler: authenticated((*API).showHead),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/events", ID: "listLogEvents", Tag: "events", Summary: "Read a page of the log of a session, member, team, task or call.",
			Query: []openapi.Parameter{
				{Name: "after", About: "Seq: the page begins with the next event. Without after and before it begins with the log.", Type: "integer"},
				{Name: "before", About: "Seq: the page has the newest events before it.", Type: "integer"},
				{Name: "limit", About: "Events of the page; 500 by default.", Type: "integer", Maximum: maxEvents},
				{Name: "types", About: "Types of events, separated by commas; all by default. Those of members count in the log of a team.", Type: "string", Many: true},
				{Name: "run", About: "Id of the run that the events belong to.", Type: "string"},
			},
			Answers: json200("The events, oldest first. With types or run a page may be short or empty and still have a next.", wire.LogPage{}),
			Faults:  append([]fault.Code{fault.InvalidField, fault.CursorInvalid, fault.HeadExpired}, known...), Handler: paged((*API).listLogEvents),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/snapshot", ID: "showLogSnapshot", Tag: "events",
			Summary: "Show what the log of a session, member, team or task has said up to one of its events.",
			Query:   []openapi.Parameter{{Name: "at", About: "Seq of that event; the newest one by default.", Type: "integer"}},
			Header:  ifNoneMatch,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The snapshot, as canonical JSON (RFC 8785). Its base tells which events it is made of.", Type: wire.Snapshot{}},
				{Status: http.StatusNotModified, About: "The ETag matches."},
			},
			Faults: append([]fault.Code{fault.InvalidField, fault.CursorInvalid, fault.HeadExpired, fault.MessageTooBig}, known...), Handler: paged((*API).showSnapshot),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/export", ID: "exportLog", Tag: "events", Summary: "Save the log of a session, member, team, task or call as a file.",
			Query: []openapi.Parameter{
				{Name: "until", About: "Seq of the last event; without it that of the log.", Type: "integer"},
				{Name: "types", About: "Types of events, separated by commas; all by default. Those of members count in the log of a team.", Type: "string", Many: true},
				{Name: "run", About: "Id of the run that the events belong to.", Type: "string"},
			},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The events, oldest first, one on each line. A connection that is cut leaves a part of them.", Media: respond.MediaLines}},
			Faults:  append([]fault.Code{fault.InvalidField, fault.CursorInvalid}, known...), Handler: exporting((*API).exportLog),
		},
		{
			Method: "GET", Path: "/logs/{kind}/{id}/frames", ID: "listLogFrames", Tag: "events", Summary: "Read a page of a log as the clients of a protocol do.",
			Query: []openapi.Parameter{
				{Name: "as", About: "The protocol: agent, agent-team, agui, agui-0, agui-0+subagents, asp-client, myagent or orbit. Other parameters choose its variant, as they do when a client connects.", Type: "string"},
				{Name: "after", About: "Seq: the page begins with the next event. AG-UI and logs of over 100,000 events: not beyond that many.", Type: "integer"},
				{Name: "limit", About: "Events of the page; 100 by default.", Type: "integer", Maximum: maxFrames},
			},
			Answers: json200("The frames of each event, without those that a connection adds.", wire.FramePage{}),
			Faults:  append([]fault.Code{fault.InvalidField, fault.CursorInvalid, fault.HeadExpired}, known...), Handler: framed,
		},
		{
			Method: "GET", Path: "/artifacts/{kind}/{id}/{artifact}", ID: "showArtifact", Tag: "events", Summary: "Fetch a file that a member of a team made, as it was then.",
			Query:   []openapi.Parameter{{Name: "version", About: "Digest of the object of one artifact.* event; by default the newest of the last 100,000 events.", Type: "string"}},
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The file, to be saved.", Media: respond.MediaBytes}},
			Faults:  append([]fault.Code{fault.NotFound}, known...), Handler: paged((*API).artifact),
		},
	}
}

func streamRoutes() []Route {
	log := func(path, op, what string, kind id.Kind, missing fault.Code) Route {
		return Route{
			Method: "GET", Path: path, ID: op, Tag: "events", Summary: "Stream the log of " + what + ".", Query: streamQuery, Header: streamHeader,
			Answers: []openapi.Answer{events200, lines200}, Faults: []fault.Code{missing, fault.SessionDeleted, fault.CursorInvalid, fault.HeadExpired, fault.TooManySockets, fault.Draining},
			Handler: stream(kind),
		}
	}
	return []Route{
		log("/sessions/{id}/stream", "streamSession", "a session", id.KindSession, fault.SessionNotFound),
		log("/tasks/{id}/stream", "streamTask", "a task", id.KindTask, fault.TaskNotFound),
		log("/teams/{id}/stream", "streamTeam", "a team", id.KindTeam, fault.TeamNotFound),
		{
			Method: "GET", Path: "/live", ID: "streamLive", Tag: "events", Summary: "Stream the announcements of the tenant, or several topics at once.",
			Query: []openapi.Parameter{
				{Name: "types", About: "Types of announcements, separated by commas; all by default.", Type: "string", Many: true},
				{Name: "t", About: "Topic: events (the announcements), or log:KIND/ID@SEQ (the events of a log behind SEQ). A stream has at most 8.", Type: "string", Many: true},
			},
			Header:  []openapi.Parameter{{Name: "Last-Event-ID", About: "With topics: the positions in all logs, which come before those of the topics.", Type: "string"}},
			Answers: []openapi.Answer{events200}, Faults: []fault.Code{fault.InvalidField, fault.CursorInvalid, fault.TooManySockets, fault.Draining},
			Handler: func(a *API) http.HandlerFunc { return a.cfg.Live },
		},
	}
}

var ifNoneMatch = []openapi.Parameter{{Name: "If-None-Match", About: "ETags that the client has.", Type: "string"}}

// signedState is the body of an import: any object, which only the session service can read.
type signedState map[string]any
