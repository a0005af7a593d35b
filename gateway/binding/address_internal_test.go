package binding

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestAddress: a command for a log of each kind gets its service, key, verb and data.
func TestAddress(t *testing.T) {
	team := id.EntityFromExternal("team_0123456789abcdef")
	agent, err := id.MemberAgent(team, "Coder")
	require.NoError(t, err)
	nested, err := id.MemberTeam(team, "backend")
	require.NoError(t, err)
	deep, err := id.MemberAgent(nested, "Coder")
	require.NoError(t, err)
	session, task := id.EntityFromExternal("s"), id.EntityFromExternal("task with spaces")
	message, cancel := command.UserMessage{Content: "hi"}, command.CancelRun{Reason: "enough", Pause: true}
	answer := command.AnswerQuestion{InputID: "q1", Approved: true, Feedback: "go"}
	for name, c := range map[string]struct {
		kind    id.Kind
		key     id.Entity
		service id.Name
		verb    id.Name
		data    any
		to      string // service.verb of what comes of it; empty = it cannot be asked
		wantKey id.Entity
		member  string
		want    string // data; empty = as it was
	}{
		"a session keeps a message":            {id.KindSession, session, command.Pipeline, command.SendMessage, message, "pipeline.send_message", session, "", ""},
		"and what only sessions know":          {id.KindSession, session, command.Pipeline, command.RestartStep, command.StepRef{StepID: "t"}, "pipeline.restart_step", session, "", ""},
		"and is no team":                       {id.KindSession, session, command.Team, command.PauseTeam, nil, "", session, "", ""},
		"a team takes a message":               {id.KindTeam, team, command.Pipeline, command.SendMessage, message, "team.send_message", team, "", ""},
		"and an answer":                        {id.KindTeam, team, command.Pipeline, command.Answer, answer, "team.answer", team, "", ""},
		"and is stopped":                       {id.KindTeam, team, command.Pipeline, command.Cancel, cancel, "team.cancel", team, "", ""},
		"as one that has a plan":               {id.KindTeam, team, command.Pipeline, command.CancelPlan, cancel, "team.cancel", team, "", ""},
		"and paused":                           {id.KindTeam, team, command.Team, command.PauseTeam, nil, "team.pause", team, "", ""},
		"and resumed":                          {id.KindTeam, team, command.Team, command.ResumeTeam, nil, "team.resume", team, "", ""},
		"but has no tasks of a plan":           {id.KindTeam, team, command.Pipeline, command.CancelStep, command.StepRef{}, "", team, "", ""},
		"nor another plan":                     {id.KindTeam, team, command.Pipeline, command.Replan, command.ReplanRun{}, "", team, "", ""},
		"a nested team is one":                 {id.KindTeam, nested, command.Pipeline, command.SendMessage, message, "team.send_message", nested, "", ""},
		"an agent is its team's":               {id.KindMember, agent, command.Pipeline, command.SendMessage, message, "team.send_message", team, agent.String(), ""},
		"also in a nested one":                 {id.KindMember, deep, command.Pipeline, command.Answer, answer, "team.answer", nested, deep.String(), ""},
		"and is stopped alone":                 {id.KindMember, agent, command.Pipeline, command.Cancel, cancel, "team.cancel", team, agent.String(), ""},
		"but not paused":                       {id.KindMember, agent, command.Team, command.PauseTeam, nil, "", team, "", ""},
		"an agent has no plan":                 {id.KindMember, agent, command.Pipeline, command.Replan, command.ReplanRun{}, "", team, "", ""},
		"an agent of no team":                  {id.KindMember, session, command.Pipeline, command.SendMessage, message, "", team, "", ""},
		"a task's agent is told":               {id.KindTask, task, command.Pipeline, command.SendMessage, message, "task.message_task", task, "", `{"task_id":"task with spaces","client_id":"","message_type":"client.message","message":"hi"}`},
		"with what belongs to it":              {id.KindTask, task, command.Pipeline, command.SendMessage, command.UserMessage{Content: "hi", Attachments: event.Attachments{ImageURLs: []string{"u"}}}, "task.message_task", task, "", `{"task_id":"task with spaces","client_id":"","message_type":"client.message","message":{"text":"hi","image_urls":["u"]}}`},
		"and answered":                         {id.KindTask, task, command.Pipeline, command.Answer, answer, "task.message_task", task, "", `{"task_id":"task with spaces","client_id":"","request_id":"q1","message_type":"input_response","message":{"approved":true,"text":"go"}}`},
		"and stopped":                          {id.KindTask, task, command.Pipeline, command.Cancel, cancel, "task.cancel", task, "", `{"task_id":"task with spaces","reason":"enough"}`},
		"but not paused, being no team":        {id.KindTask, task, command.Team, command.PauseTeam, nil, "", task, "", ""},
		"nor has it a plan":                    {id.KindTask, task, command.Pipeline, command.Replan, command.ReplanRun{}, "", task, "", ""},
		"what is for another log is untouched": {id.KindTeam, team, command.Pipeline, command.SendMessage, message, "pipeline.send_message", session, "", ""},
		"and what is for another service":      {id.KindTeam, team, command.Session, command.Close, nil, "session.close", team, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(c.data)
			require.NoError(t, err)
			key := c.key
			if c.to == "pipeline.send_message" || c.to == "session.close" {
				key = c.wantKey
			}
			in := command.Command{
				ID: "c1", Service: c.service, Verb: c.verb, Tenant: id.DefaultTenant, Key: key, Principal: "alice",
				Data: data, Member: "ignored", ReplyTo: "g.c",
			}
			if c.kind != id.KindMember {
				in.Member = c.member
			}
			before := in
			got, err := address(subject.Log{Tenant: id.DefaultTenant, Kind: c.kind, Entity: c.key}, "task with spaces", in)
			if c.to == "" {
				f, ok := errors.AsType[*fault.Fault](err)
				require.True(t, ok, "%v", err)
				require.Contains(t, []fault.Code{fault.UnknownType, fault.AgentNotFound}, f.Code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.to, got.Service.String()+"."+got.Verb.String())
			require.Equal(t, c.wantKey, got.Key)
			require.Equal(t, c.member, got.Member)
			if c.want == "" {
				c.want = string(data)
			}
			require.JSONEq(t, c.want, string(got.Data))
			got.Service, got.Verb, got.Key, got.Member, got.Data = before.Service, before.Verb, before.Key, before.Member, before.Data
			require.Equal(t, before, got, "who, when and under which id is as it was")
		})
	}
}

// TestAddressRefusesDataOfNoCodec: the error sends nothing.
func TestAddressRefusesDataOfNoCodec(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("t")}
	for _, verb := range []id.Name{command.SendMessage, command.Answer, command.Cancel, command.CancelPlan} {
		_, err := address(log, "t", command.Command{Service: command.Pipeline, Verb: verb, Key: log.Entity, Data: json.RawMessage(`7`)})
		require.Error(t, err)
	}
}
