package eventdata_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// documents are data as no writer of Waggle makes it, besides some that they do make.
var documents = []string{
	`{}`, `null`, `[]`, `""`, `7`, ``, `{`, `{"text":}`, `{"text":"a"} `, `{"text":"a"}{}`,
	`{"text":"a","text":"b"}`, `{"TEXT":"upper"}`, `{"Message_ID":"mixed","messageid":"short","message-id":"dash"}`,
	`{"text":"\ud800","message_id":"\u00e9\n"}`, "{\"text\":\"\xff\"}", "{\"text\":\"\n\"}",
	`{"text":null,"attempt":null,"begins":null}`, `{"text":7}`, `{"attempt":"7"}`, `{"attempt":1.0}`, `{"attempt":1e2}`,
	`{"attempt":99999999999999999999}`, `{"attempt":-1}`, `{"unknown":{"deep":[1,{"x":null}]},"text":"kept"}`,
	`{"message_id":"m","run_id":"r","execution_id":"x","attempt":1,"text":"b","begins":true}`,
	`{"arguments":null,"tool":"t"}`, `{"arguments":{"a":1,"a":2},"tool":"t"}`, `{"arguments": [ 1 ] ,"tool":"t"}`, `{"arguments":{`,
	`{"steps":null,"tasks":[{"id":"a"},null]}`, `{"expires_at":"2026-01-02T03:04:05Z"}`, `{"expires_at":"nonsense"}`, `{"expires_at":null}`,
}

// TestAsReadsWhatEventAsReads: the same documents are read, with the same result, and the same are refused.
func TestAsReadsWhatEventAsReads(t *testing.T) {
	for _, document := range documents {
		compare[event.MessageDeltaData](t, document)
		compare[event.ToolCalledData](t, document)
		compare[event.PlanCompletedData](t, document)
		compare[event.InputRequestedData](t, document)
		compare[event.InboxMessagedData](t, document)
		compare[event.TaskFinishedData](t, document)
		compare[event.TeamMemberEventData](t, document)
	}
}

func compare[T event.Data](t *testing.T, document string) {
	t.Helper()
	e := event.Event{Type: "some.type", ID: "e1", Data: json.RawMessage(document)}
	want, wantErr := event.As[T](e)
	got, err := eventdata.As[T](e)
	require.Equal(t, wantErr == nil, err == nil, "%s as %T: %v, %v", document, got, wantErr, err)
	if err == nil {
		require.Equal(t, want, got, "%s as %T", document, got)
	} else {
		require.ErrorContains(t, err, "decode data of some.type event e1: ")
	}
}

// TestAsReadsEveryType: what is encoded of each type is read as event.As reads it.
func TestAsReadsEveryType(t *testing.T) {
	for _, info := range event.Catalogue {
		filled := reflect.New(reflect.TypeOf(info.Data))
		for i := range filled.Elem().NumField() {
			if f := filled.Elem().Field(i); f.Kind() == reflect.String && f.CanSet() {
				f.SetString("a \"text\" <&> é\u2028\n")
			}
		}
		raw, err := json.Marshal(filled.Interface())
		require.NoError(t, err)
		back := reflect.New(filled.Type().Elem())
		require.NoError(t, json.Unmarshal(raw, back.Interface()), info.Type)
		require.NoError(t, eventdata.Into(event.Event{Data: raw}, filled.Interface()), info.Type)
		require.Equal(t, back.Interface(), filled.Interface(), info.Type)
	}
}

// TestJSONIsPlain: an event is encoded as package plainjson does it, without the members that it leaves out.
func TestJSONIsPlain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, err := plainjson.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "data"))
		require.NoError(t, err)
		v := struct {
			event.Event
			From uint64 `json:"from,omitempty"`
		}{
			event.Event{
				SpecVersion: "1.0", ID: rapid.String().Draw(t, "id"), Type: event.MessageDelta, Subject: "t.session.s",
				Time: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "time")).UTC(), Sequence: rapid.Uint64().Draw(t, "seq"),
				Data: text, TraceParent: rapid.SampledFrom([]string{"", "00-1-2-01"}).Draw(t, "trace"),
			},
			rapid.SampledFrom([]uint64{0, 7}).Draw(t, "from"),
		}
		want, err := plainjson.Marshal(v)
		require.NoError(t, err)
		got, err := eventdata.JSON(v)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
		require.NotContains(t, string(got), "\n")
	})
}

// shape has fields of the kinds that states have.
type shape struct {
	Text  string
	N     int
	Far   time.Duration
	At    time.Time
	List  []string
	Bytes []byte
	Raw   json.RawMessage
	Map   map[string]time.Duration
	Ref   *shape
	Tag   string `json:"tag,omitempty"`
}

func anyShape(t *rapid.T, depth int) shape {
	s := shape{
		Text: rapid.String().Draw(t, "text"), N: rapid.IntRange(-1, 1).Draw(t, "n"), Far: time.Duration(rapid.IntRange(0, 2).Draw(t, "far")),
		Tag: rapid.SampledFrom([]string{"", "<&>"}).Draw(t, "tag"),
	}
	if rapid.Bool().Draw(t, "at") {
		s.At = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	}
	s.List = rapid.SampledFrom([][]string{nil, {}, {""}, {"a", "b"}}).Draw(t, "list")
	s.Bytes = rapid.SampledFrom([][]byte{nil, {}, {0, 255}}).Draw(t, "bytes")
	s.Raw = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"a":1,"a":2}`), json.RawMessage(`null`)}).Draw(t, "raw")
	s.Map = rapid.SampledFrom([]map[string]time.Duration{nil, {}, {"b": 0, "a": 1}}).Draw(t, "map")
	if depth > 0 && rapid.Bool().Draw(t, "ref") {
		ref := anyShape(t, depth-1)
		s.Ref = &ref
	}
	return s
}

// TestSparseKeepsEverything: FromSparse reads what Sparse and encoding/json have encoded, and encoding/json what Sparse has, with the
// same result. The same value has the same bytes.
func TestSparseKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyShape(t, 2)
		raw, err := eventdata.Sparse(s)
		require.NoError(t, err)
		again, err := eventdata.Sparse(s)
		require.NoError(t, err)
		require.Equal(t, string(raw), string(again))
		whole, err := json.Marshal(s)
		require.NoError(t, err)
		var sparse, late, former, wanted shape
		require.NoError(t, eventdata.FromSparse(raw, &sparse))
		require.Equal(t, s, sparse)
		require.NoError(t, json.Unmarshal(raw, &late))
		require.Equal(t, s, late)
		require.NoError(t, eventdata.FromSparse(whole, &former))
		require.NoError(t, json.Unmarshal(whole, &wanted)) // which has null in place of no document
		require.Equal(t, wanted, former)
	})
}
