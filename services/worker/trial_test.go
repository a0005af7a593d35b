package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

// An operator asks a worker to try its model, one ability at a time.
func TestAModelIsTriedOnRequest(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("one, ", "two"), scripted.Usage(9, 4))))
	m := r.openai()
	t.Cleanup(func() { _ = m.Close() })
	s := worker.Trials(worker.Config{}, worker.Deps{Conn: r.Conn, Model: m, Logger: zerolog.Nop()})
	r.Run(s, nil)
	var got api.ModelTrial
	require.NoError(t, rpc.CallWithin(r.Ctx, r.Conn, maxWait, cmd.Worker, cmd.TryModel, cmd.ModelTrial{Trial: 0}, &got))
	require.Equal(t, "works", got.Grade)
	require.Equal(t, "openai:x", got.Model)
	require.Equal(t, 4, got.Of)
	require.EqualValues(t, 9, *got.InputTokens)
	require.NoError(t, rpc.CallWithin(r.Ctx, r.Conn, maxWait, cmd.Worker, cmd.TryModel, cmd.ModelTrial{Trial: 1}, &got))
	require.Equal(t, "missing", got.Grade)
	require.NotEmpty(t, got.Do)
	err := rpc.CallWithin(r.Ctx, r.Conn, maxWait, cmd.Worker, cmd.TryModel, cmd.ModelTrial{Trial: 9}, &got)
	require.ErrorIs(t, err, fault.New(fault.NotFound))
}
