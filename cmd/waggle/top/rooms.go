package top

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// row is one line of a room, and what is known about it beside.
type row struct {
	id     string
	cells  []string
	style  terminal.Style
	detail []fact
	ask    *api.Question // of the room of questions
}

// fact is one line about a row. Facts without a text do not show.
type fact struct{ name, text string }

// room is one list of the gateway.
type room struct {
	name  string
	path  string // below /api/v1
	empty string // in place of rows
	head  []string
	read  func(raw json.RawMessage, now time.Time) ([]row, error)
}

// states are what the sessions can be filtered by, what needs people first.
var states = []string{
	"", api.SessionFailed, api.SessionUnknown, api.SessionPartly, api.SessionWaiting, api.SessionRunning, api.SessionCancelled, api.SessionCompleted,
}

// Places among the rooms: of the list with a filter, and of the inbox.
const (
	sessions  = 0
	questions = 1
)

func rooms() []room {
	return []room{
		{"Sessions", "sessions", "No sessions yet. Ask something: waggle chat", []string{"SESSION", "STATE", "QUESTION", "RUNS", "AGE"}, readSessions},
		{"Questions", "questions", "Nothing waits for people.", []string{"SCOPE", "ABOUT", "ASKER", "AGE", "LEFT"}, readQuestions},
		{"Agents", "agents", "No agents.", []string{"AGENT", "STATE", "LOAD", "CAPABILITIES", "SINCE"}, readAgents},
		{"Tasks", "tasks", "No tasks.", []string{"TASK", "STATE", "AGENT", "ATTEMPT", "AGE"}, readTasks},
		{"Teams", "teams", "No teams.", []string{"TEAM", "STATE", "NAME", "MEMBERS", "AGE"}, readTeams},
		{"Roles", "status", "No process has reported itself.", []string{"PART", "NAME", "REPLICAS", "TROUBLE"}, readStatus},
		{"Queues", "queues", "No queues.", []string{"SERVICE", "WAITING", "OUT", "REDELIVERED"}, readQueues},
	}
}

func decode[T any](raw json.RawMessage) (T, error) {
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("the gateway runs another version: %w", err)
	}
	return out, nil
}

func readSessions(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[api.SessionList](raw)
	out := make([]row, 0, len(l.Sessions))
	for _, s := range l.Sessions {
		state := s.State
		if s.Status == api.SessionClosed && (state == api.SessionIdle || state == api.SessionCompleted) {
			state = s.Status
		}
		out = append(out, row{
			id: s.SessionID, style: styleOf(state),
			cells: []string{brief(s.SessionID), state, s.Question, strconv.Itoa(s.Runs), age(now, s.UpdatedAt)},
			detail: []fact{
				{"session", s.SessionID},
				{"opened", stamp(s.CreatedAt) + by(s.Principal) + over(s.Dialect)},
				{"newest", strconv.FormatUint(s.LastSeq, 10) + ": " + s.LastEvent},
				{"question", s.Question},
				{"read it", "waggle tail session/" + s.SessionID},
			},
		})
	}
	return out, err
}

func readQuestions(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[api.QuestionList](raw)
	out := make([]row, 0, len(l.Questions))
	for i := range l.Questions {
		q := &l.Questions[i]
		left := "no limit"
		if !q.ExpiresAt.IsZero() {
			left = terminal.Age(q.ExpiresAt.Sub(now))
		}
		out = append(out, row{
			id: q.ID, style: terminal.Yellow, ask: q, detail: asked(q),
			cells: []string{q.Scope, about(q), cmp.Or(q.Asker, q.Title, q.LogID), age(now, q.AskedAt), left},
		})
	}
	return out, err
}

// about says in a few words what is asked.
func about(q *api.Question) string {
	switch q.Scope {
	case event.ScopePlan:
		if len(q.Steps) == 1 {
			return "a plan of one step: " + q.Steps[0].Title
		}
		return fmt.Sprintf("a plan of %d steps: %s", len(q.Steps), q.Summary)
	case event.ScopeTool, event.ScopeClientTool:
		return q.Tool + " " + string(q.Arguments)
	case event.ScopeBudget:
		if q.Budget != nil {
			return "more " + q.Budget.Resource
		}
	}
	return string(q.Message)
}

// asked returns all that an answer decides about. The digest is that of the arguments as they stand here.
func asked(q *api.Question) []fact {
	out := []fact{
		{"of", q.Kind + "/" + q.LogID + ", event " + strconv.FormatUint(q.Seq, 10) + by(q.Principal)},
		{"title", q.Title},
		{"asker", q.Asker},
		{"tool", q.Tool},
		{"does", q.Description},
		{"arguments", string(q.Arguments)},
		{"digest", q.Digest},
		{"summary", q.Summary},
	}
	for _, s := range q.Steps {
		needs := ""
		if len(s.Dependencies) > 0 {
			needs = " (after " + strings.Join(s.Dependencies, ", ") + ")"
		}
		out = append(out, fact{"step", s.ID + ": " + s.Title + needs})
	}
	if b := q.Budget; b != nil {
		out = append(out, fact{"used", fmt.Sprintf("%d tokens, %.4f USD, %d tool calls, %d s; granted %d times", b.Tokens, b.CostUSD, b.ToolCalls, b.Seconds, b.Granted)})
	}
	out = append(out, fact{"message", string(q.Message)}, fact{"options", string(q.Options)})
	if q.Cut {
		out = append(out, fact{"cut", "the contents are too large for the list: waggle tail " + q.Kind + "/" + q.LogID})
	}
	return out
}

func readAgents(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[api.AgentList](raw)
	out := make([]row, 0, len(l.Agents))
	for _, a := range l.Agents {
		state := "away"
		if a.Online {
			state = cmp.Or(a.Status, "online")
		}
		out = append(out, row{
			id: a.ID, style: styleOf(state),
			cells: []string{a.Name, state, strconv.Itoa(a.Load), strings.Join(a.Capabilities, " "), age(now, a.Since)},
			detail: []fact{
				{"agent", a.Name + ", " + a.ID},
				{"does", a.Description},
				{"since", stamp(a.Since) + by(a.Principal)},
				{"can", strings.Join(a.Capabilities, ", ")},
				{"use it", "waggle tasks create --agent " + a.Name + ` "..."`},
			},
		})
	}
	return out, err
}

func readTasks(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[api.TaskPage](raw)
	out := make([]row, 0, len(l.Tasks))
	for i := range l.Tasks {
		t := &l.Tasks[i]
		agent := cmp.Or(t.AgentName, t.AgentID)
		trouble := t.Error
		if t.Code != "" {
			trouble += " [" + t.Code + "]"
		}
		out = append(out, row{
			id: t.TaskID, style: styleOf(t.Status), cells: []string{brief(t.TaskID), t.Status, agent, strconv.Itoa(t.Attempt), age(now, t.UpdatedAt)},
			detail: []fact{
				{"task", t.TaskID},
				{"created", stamp(t.CreatedAt)},
				{"agent", agent},
				{"error", trouble},
				{"result", string(t.Result)},
				{"read it", "waggle tasks show " + t.TaskID},
			},
		})
	}
	return out, err
}

func readTeams(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[command.TeamList](raw)
	out := make([]row, 0, len(l.Teams))
	for i := range l.Teams {
		t := &l.Teams[i]
		detail := []fact{{"team", t.TeamID}, {"created", stamp(t.CreatedAt)}, {"error", t.Error}}
		for _, m := range t.Members {
			detail = append(detail, fact{"member", m.Route + ": " + m.Status})
		}
		out = append(out, row{
			id: t.TeamID, style: styleOf(t.Status), detail: append(detail, fact{"watch it", "waggle teams watch " + t.TeamID}),
			cells: []string{brief(t.TeamID), t.Status, t.Name, strconv.Itoa(len(t.Members)), age(now, t.CreatedAt)},
		})
	}
	return out, err
}

func readStatus(raw json.RawMessage, _ time.Time) ([]row, error) {
	s, err := decode[api.Status](raw)
	var out []row
	add := func(part, name string, replicas int, trouble string) {
		style := terminal.Plain
		if trouble != "" || replicas == 0 {
			style = terminal.Red
		}
		out = append(out, row{
			id: part + " " + name, style: style, cells: []string{part, name, strconv.Itoa(replicas), trouble},
			detail: []fact{{part, name}, {"trouble", trouble}},
		})
	}
	for _, x := range s.Services {
		add("role", x.Name, x.Replicas, "")
	}
	for _, x := range s.Models {
		add("model", x.Name, x.Workers, x.Trouble)
	}
	for _, x := range s.ToolServers {
		trouble := ""
		if x.Down > 0 {
			trouble = fmt.Sprintf("%d of %d without a connection", x.Down, x.Replicas)
		}
		add("tools", x.Name, x.Replicas-x.Down, trouble)
	}
	return out, err
}

func readQueues(raw json.RawMessage, now time.Time) ([]row, error) {
	l, err := decode[api.QueueList](raw)
	out := make([]row, 0, len(l.Queues))
	oldest := "all queues are empty"
	if !l.Oldest.IsZero() {
		oldest = age(now, l.Oldest) + ", of all queues"
	}
	for _, q := range l.Queues {
		style := terminal.Plain
		if q.Redelivered > 0 {
			style = terminal.Yellow
		}
		out = append(out, row{
			id: q.Service, style: style, cells: []string{q.Service, count(q.Waiting), count(q.Out), count(q.Redelivered)},
			detail: []fact{{"queue", "commands of the service " + q.Service}, {"oldest", oldest}},
		})
	}
	return out, err
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

// styleOf colours a state as the console does.
func styleOf(state string) terminal.Style {
	switch strings.ToLower(state) {
	case "running", "busy", "processing":
		return terminal.Blue
	case "waiting", "waiting_input", "paused", "awaiting_tool_approval", api.SessionPartly:
		return terminal.Yellow
	case "completed":
		return terminal.Green
	case api.SessionFailed, api.SessionUnknown, "error":
		return terminal.Red
	case "closed", "cancelled", "away", "offline":
		return terminal.Dim
	}
	return terminal.Plain
}

// brief is the beginning of an id, which is whole among the details.
func brief(id string) string {
	const most = 13
	if len(id) <= most+1 {
		return id
	}
	return id[:most] + "…"
}

func age(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return terminal.Age(now.Sub(at))
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

func by(principal string) string {
	if principal == "" {
		return ""
	}
	return " by " + principal
}

func over(dialect string) string {
	if dialect == "" {
		return ""
	}
	return " over " + dialect
}
