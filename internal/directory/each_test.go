package directory_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// tale keeps what Each says.
type tale struct {
	mu   sync.Mutex
	said []string
}

func (s *tale) hear(c directory.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprint(c.Member.Instance, " ", string(c.Member.Data), " ", c.Gone))
}

func (s *tale) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

// TestEachTellsOfMembersOneByOne: of those that are there, then of each join, change and end, also of those that another copy
// makes, and of no heartbeat.
func TestEachTellsOfMembersOneByOne(t *testing.T) {
	t.Parallel()
	server := start(t)
	d := open(t, bustest.Dial(t, server.URL))
	name := id.MustName("worker")
	first := join(t, d, replica(name, "a"))
	var s tale
	cancel := d.Each(s.hear)
	require.Equal(t, []string{"a  false"}, s.all())
	second := join(t, d, replica(name, "b"))
	require.Equal(t, []string{"b  false"}, s.all(), "Join returns after the functions were called")
	require.NoError(t, second.Set(json.RawMessage(`{"n":1}`)))
	require.NoError(t, second.Shown(maxWait(t)))
	require.Equal(t, []string{`b {"n":1} false`}, s.all())
	left := make(chan int, 10)
	defer d.Watch(func() { left <- len(d.Members(directory.WhatService, name)) })() // called after the functions of Each
	require.NoError(t, first.Leave(maxWait(t)))
	require.Equal(t, 1, <-left)
	require.Equal(t, []string{"a  true"}, s.all())
	cancel()
	require.NoError(t, second.Leave(maxWait(t)))
	require.Zero(t, <-left)
	require.Empty(t, s.all())
}
