package binding

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// row says which commands an intent becomes, by the kind of the log. A kind that it leaves out does not take the intent.
type row struct {
	of  dialect.IntentData
	log map[id.Kind]route
}

// route is the command that an intent becomes in a log of one kind. The team of a member takes the member's commands.
type route struct {
	service, verb id.Name
	data          func(taskID string, of dialect.IntentData) (any, error) // nil: as it is
	// unescaped data do not grow by the escapes for HTML. The bound of a text in a run counts them: events have them.
	unescaped bool
}

// rows has every intent.
var rows = []row{
	{dialect.SendMessage{}, inRuns(command.SendMessage, command.MessageTask, put(messageData))},
	{dialect.Answer{}, inRuns(command.Answer, command.MessageTask, put(answerData))},
	{dialect.Cancel{}, inRuns(command.Cancel, command.CancelTask, put(cancelData))},
	{dialect.CancelPlan{}, map[id.Kind]route{
		id.KindSession: {service: command.Pipeline, verb: command.CancelPlan},
		id.KindTeam:    {service: command.Team, verb: command.Cancel},
		id.KindMember:  {service: command.Team, verb: command.Cancel},
		id.KindTask:    {service: command.Task, verb: command.CancelTask, data: put(cancelPlanData)},
	}},
	{dialect.CancelStep{}, map[id.Kind]route{id.KindSession: {service: command.Pipeline, verb: command.CancelStep}}},
	{dialect.RestartStep{}, map[id.Kind]route{id.KindSession: {service: command.Pipeline, verb: command.RestartStep}}},
	{dialect.Replan{}, map[id.Kind]route{id.KindSession: {service: command.Pipeline, verb: command.Replan}}},
	{dialect.PauseTeam{}, map[id.Kind]route{id.KindTeam: {service: command.Team, verb: command.PauseTeam}}},
	{dialect.ResumeTeam{}, map[id.Kind]route{id.KindTeam: {service: command.Team, verb: command.ResumeTeam}}},
	{dialect.MessageTask{}, inTasks(command.MessageTask)},
	{dialect.CancelTask{}, inTasks(command.CancelTask)},
	{dialect.ReportTask{}, inTasks(command.ReportTask)},
	{dialect.NotifyTask{}, inTasks(command.NotifyTask)},
	{dialect.AskTask{}, inTasks(command.AskTask)},
	{dialect.FinishTask{}, inTasks(command.FinishTask)},
	{dialect.SpawnTask{}, inTasks(command.SpawnTask)},
	{dialect.CallTool{}, inTasks(command.CallTool)},
}

// table is rows by the action and the kind of the log.
var table = byAction(rows)

// byAction indexes the rows of the table.
func byAction(rows []row) map[string]map[id.Kind]route {
	out := map[string]map[id.Kind]route{}
	for _, r := range rows {
		out[dialect.Intent{Data: r.of}.Action()] = r.log
	}
	return out
}

// inRuns returns the routes of an intent that any run takes. A task's agent gets it as the client of the task would
// send it.
func inRuns(verb, ofTask id.Name, data func(string, dialect.IntentData) (any, error)) map[id.Kind]route {
	return map[id.Kind]route{
		id.KindSession: {service: command.Pipeline, verb: verb},
		id.KindTeam:    {service: command.Team, verb: verb},
		id.KindMember:  {service: command.Team, verb: verb},
		id.KindTask:    {service: command.Task, verb: ofTask, data: data},
	}
}

// inTasks returns the routes of an intent of the swarm itself.
func inTasks(verb id.Name) map[id.Kind]route {
	return map[id.Kind]route{id.KindTask: {service: command.Task, verb: verb, unescaped: true}}
}

// put returns the data of a route that f makes of an intent of the type D.
func put[D dialect.IntentData](f func(taskID string, d D) (any, error)) func(string, dialect.IntentData) (any, error) {
	return func(taskID string, of dialect.IntentData) (any, error) {
		d, ok := of.(D)
		if !ok {
			return nil, fmt.Errorf("the table has the data of %T for %T", d, of)
		}
		return f(taskID, d)
	}
}

// typeMessage is the type of a message to a task's agent in the Agent Swarm Protocol.
const typeMessage = "client.message"

// messageData returns a message in the form for a task's agent: a text, or an object with the attachments. The command
// names no client: its sender is not the one that made the task.
func messageData(taskID string, d dialect.SendMessage) (any, error) {
	var content any = d.Content
	if len(d.ContextFiles) > 0 || len(d.ImageURLs) > 0 {
		content = struct {
			Text string `json:"text"`
			event.Attachments
		}{d.Content, d.Attachments}
	}
	text, err := json.Marshal(content)
	return command.TaskMessage{TaskID: taskID, MessageType: typeMessage, Message: text}, err
}

// answerData returns an answer in the form for a task's agent, from a protocol with approvals and texts.
func answerData(taskID string, d dialect.Answer) (any, error) {
	answer, err := command.AnswerQuestion(d).ToAgent()
	return command.TaskMessage{TaskID: taskID, RequestID: d.InputID, MessageType: command.TypeInputResponse, Message: answer}, err
}

func cancelData(taskID string, d dialect.Cancel) (any, error) {
	return command.CancelTaskData{TaskID: taskID, Reason: d.Reason}, nil
}

func cancelPlanData(taskID string, d dialect.CancelPlan) (any, error) {
	return cancelData(taskID, dialect.Cancel(d))
}

// Request is how an inquiry of a participant is asked.
type Request struct {
	Service, Verb id.Name
	Looks         bool // it changes nothing but the log that the connection shows
	Long          bool // it may take as long as a tool runs: frames after it do not wait
}

// requests has every inquiry.
var requests = map[string]Request{
	dialect.Topic(dialect.ListAgents{}):   {Service: command.Task, Verb: command.ListAgents, Looks: true},
	dialect.Topic(dialect.ListServices{}): {Service: command.Task, Verb: command.ListServices, Looks: true},
	dialect.Topic(dialect.ListClients{}):  {Service: command.Task, Verb: command.ListClients, Looks: true},
	dialect.Topic(dialect.ListServers{}):  {Service: command.Task, Verb: command.ListServers, Looks: true},
	dialect.Topic(dialect.ListTools{}):    {Service: command.Task, Verb: command.ListTools, Looks: true},
	dialect.Topic(dialect.ShowTask{}):     {Service: command.Task, Verb: command.ShowTask, Looks: true},
	dialect.Topic(dialect.OpenClient{}):   {Service: command.Task, Verb: command.OpenClient, Looks: true},
	dialect.Topic(dialect.Submit{}):       {Service: command.Task, Verb: command.Submit},
	dialect.Topic(dialect.RunTool{}):      {Service: command.Task, Verb: command.RunTool, Long: true},
	dialect.Topic(dialect.SendClient{}):   {Service: command.Task, Verb: command.SendClient},
	dialect.Topic(dialect.NameClient{}):   {Service: command.Task, Verb: command.NameClient},
}

// RequestOf returns how an inquiry is asked.
func RequestOf(q dialect.Inquiry) Request { return requests[dialect.Topic(q)] }
