//go:build unix

package gateway_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// BenchmarkLogs shows many logs to one socket each: one operation is one event of every log. It reports the CPU of this
// process per event: the append, the NATS server and the client are part of it.
func BenchmarkLogs(b *testing.B) {
	const logs, writers = 300, 8
	r := start(b)
	var got atomic.Int64
	all := make([]subject.Log, logs)
	for i := range all {
		all[i] = r.session("default", "before")
		watch(b, r.addr, "/ws?deltas=true&session="+all[i].Entity.String(), &got)
	}
	got.Store(0)
	n, before := 0, cpu()
	for b.Loop() {
		n++
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := w; i < logs; i += writers {
					require.NoError(b, r.append(all[i], fmt.Sprint("delta-", n), event.MessageDeltaData{MessageID: "m", RunID: "r", Text: benchText}))
				}
			})
		}
		wg.Wait()
		await(b, &got, int64(n)*logs)
	}
	b.ReportMetric((cpu()-before).Seconds()*1e6/float64(n*logs), "cpu-µs/event")
	b.ReportMetric(0, "ns/op")
}
