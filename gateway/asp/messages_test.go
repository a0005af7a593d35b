package asp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestMessagesOfNotifications: message is a text, as the description has it, and what an
// SDK gave is beside it; or it is what the SDK gave, as on the original.
func TestMessagesOfNotifications(t *testing.T) {
	raw := settings
	raw.RawMessages = true
	for given, want := range map[string][2]string{
		`"half"`: {`"half"`, ``},
		`{"type":"progress","message":"half","data":{"p":50}}`: {`"half"`, `{"type":"progress","message":"half","data":{"p":50}}`},
		`{"text":"half"}`:       {`"half"`, `{"text":"half"}`},
		`{"message":{"a":1}}`:   {`"{\"message\":{\"a\":1}}"`, `{"message":{"a":1}}`},
		`[1,2]`:                 {`"[1,2]"`, `[1,2]`},
		`7`:                     {`"7"`, `7`},
		`{"message":"a \"b\""}`: {`"a \"b\""`, `{"message":"a \"b\""}`},
	} {
		log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindInbox, Entity: id.EntityFromExternal("c")}
		e, err := event.New(log, "n1", "test", dialecttest.Now, event.TaskNotifiedData{TaskHead: event.TaskHead{TaskID: "t"}, Message: json.RawMessage(given)})
		require.NoError(t, err)
		e.Sequence = 1
		for s, want := range map[*asp.Settings][2]string{&settings: want, &raw: {given, ``}} {
			frames := asp.Client(*s).Encode(e)
			require.Len(t, frames, 1)
			var f struct {
				Content struct{ Message, Notification json.RawMessage }
			}
			require.NoError(t, json.Unmarshal(frames[0], &f))
			require.Equal(t, want, [2]string{string(f.Content.Message), string(f.Content.Notification)})
		}
	}
}
