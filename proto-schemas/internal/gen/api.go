package gen

import (
	"reflect"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// apiBodies are the bodies of the HTTP API.
var apiBodies = []any{
	api.Problem{},
	api.Accepted{},
	api.SchemaList{},
	api.Status{},
	api.SessionList{},
	api.SessionCounts{},
	api.SessionSummary{},
	api.SessionDetail{},
	api.EventPage{},
	api.QuestionList{},
	api.QuestionAnswer{},
	api.QuestionOutcome{},
	event.StateExportedData{},
	cmd.ImportReply{},
	api.TaskPage{},
	api.TaskDetail{},
	api.CancelTask{},
	api.TaskMessage{},
	api.AgentList{},
	api.ServiceList{},
	api.ClientList{},
	api.ServerList{},
	cmd.TeamList{},
	cmd.TeamView{},
	api.NewTeam{},
	api.TeamMessage{},
	api.StopTeam{},
	api.NewSession{},
	api.SessionName{},
	api.NewMessage{},
	api.StepAction{},
	api.CancelSession{},
	api.CancelPlan{},
	api.NewPlan{},
	api.NewTask{},
	api.TaskName{},
	api.RetryTask{},
	api.ToolPage{},
	api.ToolDetail{},
	api.NewToolCall{},
	api.CallView{},
	api.LogHead{},
	api.Snapshot{},
	api.LogPage{},
	api.FramePage{},
	api.Me{},
	api.DeadLetterList{},
	api.DeadLetterDetail{},
	api.QueueList{},
	api.VerifyAudit{},
	api.AuditCheck{},
	api.QuotaList{},
	api.AuditPage{},
	api.SettingList{},
	api.Installation{},
	api.RateList{},
	api.ConnectionList{},
	api.ModelTrial{},
	api.Reindex{},
	api.Reindexed{},
	api.ConsoleInfo{},
}

// apiBundle returns the bundle of the bodies of the HTTP API. It allows unknown members, as a later version may add some, but
// not in answers to questions: an approval must not say more than is heard.
func apiBundle(c *comments) ([]byte, error) {
	d := newDefinitions(c)
	var root []string
	for _, body := range apiBodies {
		t := reflect.TypeOf(body)
		d.ref(t)
		root = append(root, t.Name())
	}
	shut(d.types[reflect.TypeFor[api.QuestionAnswer]().Name()])
	return d.encode("api", "Bodies of the HTTP API", root)
}
