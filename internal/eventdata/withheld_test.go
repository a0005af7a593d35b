package eventdata_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// made returns an event of a log with the data.
func made(t require.TestingT, d event.Data) (e event.Event, raw []byte) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	e, err := event.New(log, "e1", "test", time.Unix(1_800_000_000, 0), d)
	require.NoError(t, err)
	e.Sequence = 3
	raw, err = json.Marshal(e)
	require.NoError(t, err)
	return e, raw
}

// signed is a reasoning that a provider wants back.
func signed(secret string) event.ReasoningCompletedData {
	data, _ := json.Marshal(map[string]any{"signature": secret, "pass_back": []string{secret}})
	return event.ReasoningCompletedData{
		MessageID: "m", RunID: "r", ExecutionID: "x", Attempt: 1, Content: "Let me see.", PassBack: &event.PassBack{Provider: "anthropic@api.anthropic.com", Data: data},
	}
}

// TestPeopleAreNotShownWhatAProviderWantsBack: in an event, in a relayed one, and to any depth.
func TestPeopleAreNotShownWhatAProviderWantsBack(t *testing.T) {
	d := signed("s3cret")
	shown := d
	shown.PassBack = nil
	for depth := range 5 {
		e, raw := made(t, d)
		want, wantRaw := made(t, shown)
		for range depth {
			_, raw = made(t, event.TeamSubTeamEventData{SubTeamNodeName: "n", SubTeamID: "i", Seq: 3, SubTeamEvent: raw})
			_, wantRaw = made(t, event.TeamSubTeamEventData{SubTeamNodeName: "n", SubTeamID: "i", Seq: 3, SubTeamEvent: wantRaw})
			e, raw = made(t, event.TeamMemberEventData{MemberName: "m", MemberID: "i", Seq: 3, Event: raw})
			want, wantRaw = made(t, event.TeamMemberEventData{MemberName: "m", MemberID: "i", Seq: 3, Event: wantRaw})
		}
		require.Contains(t, string(raw), "s3cret")
		require.JSONEq(t, string(wantRaw), string(eventdata.RawForPeople(e.Type, raw)))
		got := eventdata.ForPeople(e)
		require.JSONEq(t, string(want.Data), string(got.Data))
		require.Contains(t, string(e.Data), "s3cret", "the event is not modified")
	}
}

// TestOtherEventsAreShownAsTheyAre: byte for byte, whatever is written in them.
func TestOtherEventsAreShownAsTheyAre(t *testing.T) {
	talk := `{"type":"reasoning.completed","data":{"pass_back":{"data":1}}}`
	_, inner := made(t, event.MessageCompletedData{Content: talk})
	for _, d := range []event.Data{
		event.MessageCompletedData{Content: talk},
		event.ReasoningDeltaData{Text: "pass_back"},
		event.ReasoningCompletedData{MessageID: "m", Content: "Nothing is wanted back."},
		event.TeamMemberEventData{MemberName: "m", Event: json.RawMessage(`{"type":"message.delta","data":{"text":"pass_back"}}`)},
	} {
		e, raw := made(t, d)
		require.Equal(t, e, eventdata.ForPeople(e))
		require.Equal(t, string(raw), string(eventdata.RawForPeople(e.Type, raw)))
	}
	e, raw := made(t, event.TeamMemberEventData{MemberName: "m", Event: inner})
	require.JSONEq(t, string(raw), string(eventdata.RawForPeople(e.Type, raw)))
}

// TestNothingIsShownOfWhatCannotBeRead: newer members are kept, damage shows nothing.
func TestNothingIsShownOfWhatCannotBeRead(t *testing.T) {
	for data, want := range map[string]string{
		`{"new":{"a":[1]},"pass_back":{"data":"s3cret"},"content":"c"}`:                       `{"new":{"a":[1]},"content":"c"}`,
		`{"pass_back":"s3cret","pass_back":"s3cret"}`:                                         `{}`,
		`["pass_back","s3cret"]`:                                                              `{}`,
		`{"pass_back":"s3cret"`:                                                               `{}`,
		`{"content":"c","pass_\u0062ack":"s3cret","x":"y"}`:                                   `{"content":"c","x":"y"}`,
		`{"content":"` + strings.Repeat("x", 9000) + `","pass_back":{"data":{"a":"s3cret"}}}`: `{"content":"` + strings.Repeat("x", 9000) + `"}`,
	} {
		got := eventdata.ForPeople(event.Event{Type: event.ReasoningCompleted, Data: json.RawMessage(data)})
		require.Equal(t, want, string(got.Data), data)
	}
	deep := `{"type":"reasoning.completed","data":{"pass_back":"s3cret"}}`
	for range 40 {
		deep = fmt.Sprintf(`{"type":"team.sub_team_event","data":{"sub_team_event":%s}}`, deep)
	}
	got := eventdata.ForPeople(event.Event{Type: event.TeamSubTeamEvent, Data: json.RawMessage(`{"sub_team_event":` + deep + `}`)})
	require.NotContains(t, string(got.Data), "s3cret")
}

// TestAnyTextOfAProviderIsWithheld holds for whatever a model and its provider write.
func TestAnyTextOfAProviderIsWithheld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := signed("s3cret" + rapid.String().Draw(t, "secret"))
		d.Content = rapid.String().Draw(t, "content")
		e, raw := made(t, d)
		shown := eventdata.RawForPeople(e.Type, raw)
		require.NotContains(t, string(shown), "s3cret")
		d.PassBack = nil
		_, want := made(t, d)
		require.JSONEq(t, string(want), string(shown))
	})
}

func BenchmarkForPeople(b *testing.B) {
	d, _ := json.Marshal(signed(strings.Repeat("x", 4096)))
	for name, e := range map[string]event.Event{
		"delta": {Type: event.MessageDelta, Data: json.RawMessage(`{"text":"a"}`)}, "reasoning": {Type: event.ReasoningCompleted, Data: d},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				eventdata.ForPeople(e)
			}
		})
	}
}
