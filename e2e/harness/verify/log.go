package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Stored is an event with the bytes that the log holds.
type Stored struct {
	event.Event
	Raw []byte
}

// LogOf returns the log of the default tenant with the kind and the id, as clients know it.
func LogOf(kind id.Kind, name string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: kind, Entity: id.EntityFromExternal(name)}
}

// ReadLog returns a log as NATS has it, which has to be dense from its first event on.
func ReadLog(t testing.TB, nc *nats.Conn, log subject.Log) []Stored {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	var out []Stored
	for from := uint64(1); ; {
		got, next := readBatch(ctx, t, nc, log, from)
		for _, raw := range got {
			e := Stored{Raw: raw}
			require.NoError(t, json.Unmarshal(raw, &e.Event), "%s", raw)
			require.EqualValues(t, len(out)+1, e.Sequence, "%s is dense", log.Name())
			out = append(out, e)
		}
		if len(got) == 0 {
			return out
		}
		from = next
	}
}

// readBatch reads up to a thousand messages with one direct get, and returns where the
// next begin.
func readBatch(ctx context.Context, t testing.TB, nc *nats.Conn, log subject.Log, from uint64) (got [][]byte, next uint64) {
	t.Helper()
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Unsubscribe()) }()
	ask := fmt.Sprintf(`{"seq":%d,"next_by_subj":%q,"batch":1000}`, from, subject.DefaultPartitions.Event(log))
	require.NoError(t, nc.PublishRequest("$JS.API.DIRECT.GET."+subject.DefaultPartitions.Stream(log), inbox, []byte(ask)))
	for {
		m, err := sub.NextMsgWithContext(ctx)
		require.NoError(t, err)
		if m.Header.Get("Status") != "" { // 204: the end of the batch, 404: nothing is there
			return got, next
		}
		var at uint64
		_, err = fmt.Sscan(m.Header.Get("Nats-Sequence"), &at)
		require.NoError(t, err)
		got, next = append(got, m.Data), at+1
	}
}
