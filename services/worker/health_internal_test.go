package worker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// A worker tells the directory when its provider fails, and when it is back.
func TestAWorkerTellsOfItsProvider(t *testing.T) {
	d, err := directory.Open(t.Context(), bustest.Single(t))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	asked := make(chan error)
	s := &Service{
		cfg:  Config{Check: func(context.Context) error { return <-asked }},
		deps: Deps{Model: demo.New(), Logger: zerolog.Nop()},
	}
	data, err := json.Marshal(s.card())
	require.NoError(t, err)
	require.NoError(t, s.seat.Take(t.Context(), d, directory.Member{
		What: directory.WhatService, Name: cmd.Worker, Instance: id.MustName("a1"), Data: data,
	}))
	ctx, end := context.WithCancel(t.Context())
	tick, over := make(chan time.Time), make(chan struct{})
	go func() { defer close(over); s.watchProvider(ctx, tick) }()
	for _, trouble := range []string{"openai refuses the key (401)", ""} {
		var err error
		if trouble != "" {
			err = errors.New(trouble)
		}
		asked <- err
		require.NoError(t, d.Wait(t.Context(), func(d *directory.Directory) bool {
			all := d.Members(directory.WhatService, cmd.Worker)
			c, ok := card.Read(all[0])
			return ok && c.Trouble == trouble
		}))
		tick <- time.Time{}
	}
	asked <- nil
	end()
	<-over
}
