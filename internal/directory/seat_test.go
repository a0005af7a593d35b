package directory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestASeatIsTakenAndLeft(t *testing.T) {
	t.Parallel()
	d, err := directory.Open(t.Context(), bustest.Single(t))
	require.NoError(t, err)
	defer d.Close()
	name := id.MustName("agent")
	listed := func(want int) func(*directory.Directory) bool {
		return func(d *directory.Directory) bool { return len(d.Members(directory.WhatService, name)) == want }
	}
	var s directory.Seat
	require.NoError(t, s.Leave(t.Context()), "a seat that was never taken is left at once")
	require.NoError(t, s.Quit())
	require.NoError(t, s.Take(t.Context(), d, directory.Member{What: directory.WhatService, Name: name, Instance: id.MustName("i1")}))
	require.NoError(t, d.Wait(t.Context(), listed(1)))
	require.NoError(t, s.Quit())
	require.NoError(t, d.Wait(t.Context(), listed(0)))
	require.NoError(t, s.Leave(t.Context()), "leaving again changes nothing")
}
