package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const printed = `File: waggle
Type: cpu
Duration: 20s, Total samples = 2s
-----------+-------------------------------------------------------
     1.20s   runtime.scanobject
             runtime.gcDrain
             runtime.gcBgMarkWorker
-----------+-------------------------------------------------------
     300ms   internal/runtime/syscall/linux.Syscall6
             net.(*conn).Write
             github.com/waggle-dev/waggle/gateway/transport/ws.(*shard).drain
-----------+-------------------------------------------------------
      10ms   runtime.memmove
             github.com/go-json-experiment/json.Unmarshal
             github.com/waggle-dev/waggle/services/worker.(*job).run
-----------+-------------------------------------------------------
      20ms   runtime.memmove (inline)
             github.com/nats-io/nats%2ego.(*Conn).processMsg
-----------+-------------------------------------------------------
      30ms   time.now
`

func TestEachSampleHasItsPart(t *testing.T) {
	p := read(printed)
	require.Equal(t, 1560*time.Millisecond, p.total)
	require.Equal(t, map[string]time.Duration{
		"garbage collection": 1200 * time.Millisecond, "system calls": 300 * time.Millisecond, "JSON": 10 * time.Millisecond,
		"NATS client": 20 * time.Millisecond, others: 30 * time.Millisecond,
	}, p.parts)
	require.Equal(t, 30*time.Millisecond, p.functions["runtime.memmove"])
}

// FuzzRead reads anything. All samples have a part and a function.
func FuzzRead(f *testing.F) {
	f.Add(printed)
	f.Add("-----------\n 5ms \n-----------\n 1h x\n y\n-----------\n")
	f.Fuzz(func(t *testing.T, traces string) {
		p := read(traces)
		var parts, functions time.Duration
		for _, d := range p.parts {
			parts += d
		}
		for _, d := range p.functions {
			functions += d
		}
		require.Equal(t, p.total, parts)
		require.Equal(t, p.total, functions)
	})
}

func TestThePageComparesBothSides(t *testing.T) {
	now := taken{figures: []string{"1.50 cpu-ms/run"}, profile: read(printed)}
	var b strings.Builder
	section(&b, path{title: "A run", about: "Chats."}, &taken{figures: []string{"3.00 cpu-ms/run"}, profile: read(printed)}, now)
	require.Contains(t, b.String(), "Before: 3.00 cpu-ms/run. Now: 1.50 cpu-ms/run.")
	require.Contains(t, b.String(), "| garbage collection | 76.9 % | 76.9 % |\n")
	require.Contains(t, b.String(), "| `runtime.scanobject` 76.9 % | `runtime.scanobject` 76.9 % |\n")
	b.Reset()
	section(&b, path{title: "A run", about: "Chats."}, nil, now)
	require.Contains(t, b.String(), "Now: 1.50 cpu-ms/run.")
	require.Contains(t, b.String(), "| garbage collection | – | 76.9 % |\n")
}
