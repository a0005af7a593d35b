package dialect_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/gateway/team"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestAnAnswerHasNoUnknownMembers: an approval of edited arguments is refused in every protocol, as the call would run with the
// original ones.
func TestAnAnswerHasNoUnknownMembers(t *testing.T) {
	orbitCodec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	sessions, err := myagent.New(myagent.Settings{}).Codec(nil)
	require.NoError(t, err)
	teams, err := team.Teams().Codec(nil)
	require.NoError(t, err)
	in := dialect.Inbound{Kind: id.KindSession, NewID: func() string { return "new-1" }}
	codec := func(decode func([]byte, dialect.Inbound) ([]dialect.Intent, error)) func(string) error {
		return func(frame string) error {
			_, err := decode([]byte(frame), in)
			return err
		}
	}
	aguiAnswer := func(more ...string) func(string) error {
		return func(payload string) error {
			_, err := input.Answer(wire.ResumeEntry{Payload: json.RawMessage(payload)}, more, "resume[0].payload")
			return err
		}
	}
	watching := func(frame string) error {
		_, _, err := asp.Client(asp.Settings{}).Orders([]byte(frame), asp.Inbound{
			Participant: command.Participant{Kind: command.ParticipantClient}, NewID: in.NewID,
			Watched: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: id.EntityFromExternal("agent_1")},
		})
		return err
	}
	for name, c := range map[string]struct {
		decode       func(string) error
		before, more string // the frame without and with a member more
		after, field string
	}{
		"agui":        {aguiAnswer(), `{"approved":true`, `,"arguments":{"x":1}`, `}`, "resume[0].payload.arguments"},
		"agui, case":  {aguiAnswer(), `{"approved":true`, `,"Approved":false`, `}`, "resume[0].payload.Approved"},
		"agui, tasks": {aguiAnswer(), `{"approved":true`, `,"tasks":[{}]`, `}`, "resume[0].payload.tasks"},
		"agui, call":  {aguiAnswer(input.OfCalls...), `{"approved":true,"editedArgs":{"x":1}`, `,"arguments":{"x":1}`, `}`, "resume[0].payload.arguments"},
		"agui, no":    {aguiAnswer(input.OfCalls...), `{"approved":false`, `,"editedArgs":{"x":1}`, `}`, "resume[0].payload.editedArgs"},
		"agui, edits": {aguiAnswer(), `{"approved":true`, `,"editedArgs":{"x":1}`, `}`, "resume[0].payload.editedArgs"},
		"agui, plan":  {aguiAnswer(input.OfPlans...), `{"approved":true,"tasks":[{}]`, `,"arguments":{"x":1}`, `}`, "resume[0].payload.arguments"},
		"orbit":       {codec(orbitCodec.Decode), `{"type":"answer","question_id":"q","approved":true`, `,"arguments":{"x":1}`, `}`, "arguments"},
		"myagent":     {codec(sessions.Decode), `{"event":"user.response","session_id":"s1","step_id":"q","content":{"approved":true`, `,"arguments":{"x":1}`, `}}`, "content.arguments"},
		"team":        {codec(teams.Decode), `{"type":"APPROVE_TOOL","payload":{"invocation_id":"q","message_id":"m"`, `,"arguments":{"x":1}`, `}}`, "payload.arguments"},
		"asp":         {watching, `{"id":"r","type":"task.message","content":{"taskId":"watched/q","message":{"approved":true`, `,"arguments":{"x":1}`, `}}}`, "content.message.arguments"},
	} {
		require.NoError(t, c.decode(c.before+c.after), name)
		f, ok := errors.AsType[*fault.Fault](c.decode(c.before + c.more + c.after))
		require.True(t, ok, name)
		require.Equal(t, fault.InvalidField, f.Code, name)
		require.Equal(t, c.field, f.Field, name)
	}
}
