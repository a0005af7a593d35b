package task_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task"
)

// The list of more agents than fit into a message has pages, in which each agent is once.
func TestManyAgentsHavePages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 5000
	r.seed(n)
	r.start("a", task.Config{})

	pages := func(f cmd.ParticipantFilter) (all []cmd.Participant, count int) {
		for {
			var out cmd.ParticipantList
			require.NoError(t, r.ask(cmd.ListAgents, "c1", f, &out))
			require.NotEmpty(t, out.Participants)
			if f.Limit > 0 {
				require.LessOrEqual(t, len(out.Participants), f.Limit)
			}
			all, count = append(all, out.Participants...), count+1
			if f.After = out.Next(); f.After == "" {
				return all, count
			}
		}
	}
	all, count := pages(cmd.ParticipantFilter{})
	require.Len(t, all, n)
	require.Greater(t, count, 1)
	require.Less(t, count, 6)
	seen := map[string]bool{}
	for i, p := range all {
		require.False(t, seen[p.ID], p.ID)
		seen[p.ID] = true
		if i > 0 {
			later, err := p.Follows(all[i-1].Place())
			require.NoError(t, err)
			require.True(t, later)
		}
	}
	some, count := pages(cmd.ParticipantFilter{Capabilities: []string{"c1"}, Limit: 700})
	require.Len(t, some, n/2)
	require.Equal(t, 4, count)

	for _, wrong := range []string{"%", "QQ"} {
		err := r.ask(cmd.ListAgents, "c1", cmd.ParticipantFilter{After: wrong}, nil)
		require.ErrorIs(t, err, fault.New(fault.InvalidField))
	}
}

// seed registers n agents.
func (r *rig) seed(n int) {
	r.T.Helper()
	for i := range n {
		p := cmd.Participant{
			Kind: cmd.ParticipantAgent, Tenant: tenant, ID: fmt.Sprintf("agent-%d", i), Name: fmt.Sprintf("Agent %d", i%977), Status: cmd.StatusActive,
			Capabilities: []string{"weld", fmt.Sprintf("c%d", i%2)}, Description: strings.Repeat("x", 200),
		}
		raw, err := json.Marshal(p)
		require.NoError(r.T, err)
		key := subject.RegistryKey(tenant, cmd.WhatAgent, id.EntityFromExternal(p.ID))
		_, err = r.Conn.JS().PublishAsync("$KV."+subject.BucketRegistry+"."+key, raw)
		require.NoError(r.T, err)
		if i%1000 == 999 {
			<-r.Conn.JS().PublishAsyncComplete()
		}
	}
	<-r.Conn.JS().PublishAsyncComplete()
}
