package status_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/status"
)

func TestTheStatusIsWhatProcessesSay(t *testing.T) {
	d, err := directory.Open(t.Context(), bustest.Single(t))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	for _, m := range []struct{ name, instance, data string }{
		{"worker", "a1", `{"model":"openai:x","capabilities":[]}`},
		{"worker", "a2", `{"model":"openai:x","capabilities":[],"trouble":"openai refuses the key (401)"}`},
		{"worker", "a3", `{"model":"demo","capabilities":[]}`},
		{"tools", "t1", `{"servers":["bank","search","workspace"],"reports":{"search":{"left_out":[{"tool":"a","why":"x"}]}}}`},
		{"tools", "t2", `{"servers":["bank","search","workspace"],"down":["bank","search"],"reports":{
			"search":{"trouble":"it answers 401","left_out":[{"tool":"a","why":"x"},{"tool":"b","why":"y"}]},"bank":{"trouble":"secret","tenants":true}}}`},
	} {
		_, err := d.Join(t.Context(), directory.Member{
			What: directory.WhatService, Name: id.MustName(m.name), Instance: id.MustName(m.instance), Data: json.RawMessage(m.data),
		})
		require.NoError(t, err)
	}
	services := []id.Name{id.MustName("worker"), id.MustName("tools"), id.MustName("team")}
	require.NoError(t, d.Wait(t.Context(), func(d *directory.Directory) bool {
		return len(d.Members(directory.WhatService, services[0])) == 3 && len(d.Members(directory.WhatService, services[1])) == 2
	}))
	want := api.Status{
		Services: []api.ServiceStatus{{Name: "worker", Replicas: 3}, {Name: "tools", Replicas: 2}, {Name: "team"}},
		Models: []api.ModelStatus{
			{Name: "openai:x", Workers: 2, Trouble: "openai refuses the key (401)"}, {Name: "demo", Workers: 1},
		},
		ToolServers: []api.ToolServerStatus{
			{Name: "bank", Replicas: 2, Down: 1, Trouble: "secret"},
			{Name: "search", Replicas: 2, Down: 1, Trouble: "it answers 401", LeftOut: []api.LeftOutTool{{Tool: "a", Why: "x"}, {Tool: "b", Why: "y"}}},
			{Name: "workspace", Replicas: 2},
		},
	}
	require.Equal(t, want, status.Read(d, services))
	want.ToolServers[0].Trouble = ""
	require.Equal(t, want, status.Public(d, services), "what is of some tenants only is not told to all")
}
