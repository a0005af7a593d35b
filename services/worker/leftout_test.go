package worker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// A model whose service takes no tools answers without them, and people learn it in each run.
func TestAModelWithoutTools(t *testing.T) {
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if len(x.Prompt.Tools) > 0 {
			return scripted.Fail(http.StatusBadRequest, "api_error", "registry.ollama.ai/library/x does not support tools")
		}
		return scripted.Stream(scripted.Text("Hello"))
	})
	r.worker("w1", nil)
	for range 2 {
		events := r.until(r.ask("hello"), event.RunCompleted, event.RunFailed)
		require.Equal(t, "Hello", last[event.RunCompletedData](t, events).Content)
	}
	notices := all[event.NoticeData](t, r.until(r.ask("and?"), event.RunCompleted))
	require.Len(t, notices, 3, "one in each run")
	for _, n := range notices {
		require.Equal(t, event.ToolLeftOut, n.Code)
		require.Contains(t, n.Message, "openai:x answers without tools")
	}
	require.Len(t, r.llm.Exchanges(), 4, "it is remembered")
	require.Eventually(t, func() bool {
		for _, m := range r.Dir.Members(directory.WhatService, cmd.Worker) {
			if c, ok := card.Read(m); ok && len(c.LeftOut) == 1 {
				return c.LeftOut[0].Tool == "" && c.LeftOut[0].Why != ""
			}
		}
		return false
	}, maxWait, 20*time.Millisecond, "operators' checks see it")
}
