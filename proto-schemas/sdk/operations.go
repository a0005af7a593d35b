package sdk

// Operation is what all clients can do, and how each of them calls it.
type Operation struct {
	Name                   string // in the cases
	Route                  string // its id in docs/openapi.json, or of AG-UI
	Go, TypeScript, Python string
}

// Operations are what programs do in the cases.
var Operations = []Operation{
	{"me", "showMe", "Client.Me", "client.me", "client.me"},
	{"call", "any", "Client.Call", "client.call", "client.call"},
	{"read", "streamSession, streamTask, streamTeam", "Log.Events", "session.events, team.events, task.events", "session.events, team.events, task.events"},
	{"live", "streamLive", "Client.Live", "client.live", "client.live"},
	{"create_session", "nameSession", "Client.CreateSession", "client.sessions.create", "client.sessions.create"},
	{"send", "messageSession", "Client.Send", "session.send", "session.send"},
	{"result", "streamSession", "Run.Result", "run.result", "run.result"},
	{"stop", "cancelSession", "Run.Cancel", "run.cancel", "run.cancel"},
	{"solve", "messageSession", "Client.Solve", "session.solve", "session.solve"},
	{"cancel", "cancelSession", "Client.CancelSession", "session.cancel", "session.cancel"},
	{"cancel_step", "cancelStep", "Client.CancelStep", "session.cancelStep", "session.cancel_step"},
	{"restart_step", "restartStep", "Client.RestartStep", "session.restartStep", "session.restart_step"},
	{"cancel_plan", "cancelPlan", "Client.CancelPlan", "session.cancelPlan", "session.cancel_plan"},
	{"replan", "replanSession", "Client.Replan", "session.replan", "session.replan"},
	{"show", "showSession", "Client.ShowSession", "session.show", "session.show"},
	{"delete", "deleteSession", "Client.DeleteSession", "session.delete", "session.delete"},
	{"list_sessions", "listSessions", "Client.Sessions", "client.sessions.list", "client.sessions.list"},
	{"file", "showSessionFile", "Client.SessionFile", "session.file", "session.file"},
	{"head", "showLogHead", "Log.Head", "log.head", "log.head"},
	{"artifact", "showArtifact", "Log.Artifact", "log.artifact", "log.artifact"},
	{"questions", "listQuestions", "Client.Questions", "client.questions.list", "client.questions.list"},
	{"answer", "answerQuestion", "Client.AnswerQuestion", "client.questions.answer", "client.questions.answer"},
	{"create_task", "createTask", "Client.CreateTask", "client.tasks.create", "client.tasks.create"},
	{"list_tasks", "listTasks", "Client.Tasks", "client.tasks.list", "client.tasks.list"},
	{"show_task", "showTask", "Client.ShowTask", "task.show", "task.show"},
	{"task_result", "streamTask", "Client.TaskResult", "task.result", "task.result"},
	{"cancel_task", "cancelTask", "Client.CancelTask", "task.cancel", "task.cancel"},
	{"retry_task", "retryTask", "Client.RetryTask", "task.retry", "task.retry"},
	{"message_task", "messageTask", "Client.MessageTask", "task.message", "task.message"},
	{"create_team", "createTeam", "Client.CreateTeam", "client.teams.create", "client.teams.create"},
	{"message_team", "messageTeam", "Client.MessageTeam", "team.message", "team.message"},
	{"stop_team", "stopTeam", "Client.StopTeam", "team.stop", "team.stop"},
	{"close_team", "closeTeam", "Client.DeleteTeam", "team.delete", "team.delete"},
}

// Routes are the patterns of the requests of each operation of the HTTP API, as a method and a path.
var Routes = map[string]string{
	"showMe":          "GET /api/v1/me",
	"streamSession":   "GET /api/v1/sessions/{id}/stream",
	"streamTask":      "GET /api/v1/tasks/{id}/stream",
	"streamTeam":      "GET /api/v1/teams/{id}/stream",
	"streamLive":      "GET /api/v1/live",
	"messageSession":  "POST /api/v1/sessions/{id}/messages",
	"nameSession":     "POST /api/v1/sessions",
	"cancelSession":   "POST /api/v1/sessions/{id}/cancel",
	"cancelStep":      "POST /api/v1/sessions/{id}/runs/{run}/steps/{step}/cancel",
	"restartStep":     "POST /api/v1/sessions/{id}/runs/{run}/steps/{step}/restart",
	"cancelPlan":      "POST /api/v1/sessions/{id}/plan/cancel",
	"replanSession":   "POST /api/v1/sessions/{id}/replan",
	"showSession":     "GET /api/v1/sessions/{id}",
	"deleteSession":   "DELETE /api/v1/sessions/{id}",
	"listSessions":    "GET /api/v1/sessions",
	"showSessionFile": "GET /api/v1/sessions/{id}/files/{digest}",
	"showLogHead":     "GET /api/v1/logs/{kind}/{id}/head",
	"showArtifact":    "GET /api/v1/artifacts/{kind}/{id}/{artifact}",
	"listQuestions":   "GET /api/v1/questions",
	"answerQuestion":  "POST /api/v1/questions/{input}/answer",
	"createTask":      "POST /api/v1/tasks",
	"listTasks":       "GET /api/v1/tasks",
	"showTask":        "GET /api/v1/tasks/{id}",
	"cancelTask":      "POST /api/v1/tasks/{id}/cancel",
	"retryTask":       "POST /api/v1/tasks/{id}/retry",
	"messageTask":     "POST /api/v1/tasks/{id}/messages",
	"createTeam":      "POST /api/v1/teams",
	"messageTeam":     "POST /api/v1/teams/{id}/messages",
	"stopTeam":        "POST /api/v1/teams/{id}/stop",
	"closeTeam":       "DELETE /api/v1/teams/{id}",
}
