package binding_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

type recorder struct {
	binding.Reporter
	records []audit.Record
}

func (r *recorder) Record(_ id.Name, rec audit.Record) { r.records = append(r.records, rec) }

// A record of a call names server and tool, never the arguments.
func TestRecordsOfCallsNameTheTool(t *testing.T) {
	var r recorder
	task, run := id.MustName("task"), id.MustName("run_tool")
	for _, data := range []string{
		`{"server":"workspace","tool":"read_file","arguments":{"path":"secret"}}`, `{"name":"x"}`, `{"tool":"` + strings.Repeat("x", 1<<20) + `"}`, `?`,
	} {
		binding.RecordRequest(&r, task, run, json.RawMessage(data), nil)
	}
	require.Len(t, r.records, 4)
	require.Equal(t, audit.Record{Service: "task", Verb: "run_tool", Server: "workspace", Tool: "read_file"}, r.records[0])
	require.Empty(t, r.records[1].Tool)
	require.Less(t, len(r.records[2].Tool), 1000)
	require.Equal(t, audit.Record{Service: "task", Verb: "run_tool"}, r.records[3])
}
