package assignment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/assignment"
)

func TestChoose(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	agents := []assignment.Candidate{
		{ID: "a1", Name: "A", Capabilities: []string{"x"}, Online: true, Status: command.StatusActive, Load: 2, Since: at},
		{ID: "a2", Name: "A", Capabilities: []string{"x", "y"}, Online: true, Status: command.StatusActive, Load: 1, Since: at},
		{ID: "a3", Name: "A", Online: true, Status: command.StatusActive, Load: 1, Since: at.Add(-time.Second)},
		{ID: "a4", Name: "A", Online: true, Status: command.StatusBusy},
		{ID: "a5", Name: "A", Status: command.StatusActive},
		{ID: "a6", Name: "A", Away: true, Status: command.StatusActive},
		{ID: "a7", Name: "A", Online: true, Status: command.StatusMaintenance},
		{ID: "a8", Name: "A", Online: true, Status: command.StatusInactive},
		{ID: "a9", Name: "A", Online: true, Status: command.StatusBusy, Full: true},
		{ID: "c1", Name: "C", Online: true, Status: command.StatusError},
		{ID: "c2", Name: "C", Online: true, Status: command.StatusInitializing, Load: 1},
		{ID: "c3", Name: "C", Online: true, Status: command.StatusBusy, Load: 2},
		{ID: "d1", Name: "D", Online: true, Status: command.StatusError},
		{ID: "b1", Name: "B", Capabilities: []string{"x", "y", "z"}, Online: true, Status: command.StatusActive, Since: at},
		{ID: "b0", Name: "B", Capabilities: []string{"z"}, Online: true, Status: command.StatusActive, Since: at},
		{ID: "", Name: "none", Online: true, Status: command.StatusActive},
	}
	for name, c := range map[string]struct {
		want event.TaskCreatedData
		id   string
	}{
		"by id, however loaded":            {event.TaskCreatedData{WantedID: "a1", WantedName: "A"}, "a1"},
		"by id, whatever the name":         {event.TaskCreatedData{WantedID: "a1", WantedName: "B"}, "a1"},
		"an offline id, else the name":     {event.TaskCreatedData{WantedID: "a5", WantedName: "A"}, "a3"},
		"a busy id":                        {event.TaskCreatedData{WantedID: "a4", WantedName: "A"}, "a4"},
		"an id in maintenance":             {event.TaskCreatedData{WantedID: "a7"}, ""},
		"an inactive id":                   {event.TaskCreatedData{WantedID: "a8"}, ""},
		"a full id, else the name":         {event.TaskCreatedData{WantedID: "a9", WantedName: "A"}, "a3"},
		"the best status, however loaded":  {event.TaskCreatedData{WantedName: "C"}, "c3"},
		"with an error, if no other is":    {event.TaskCreatedData{WantedName: "D"}, "d1"},
		"an unknown id, else the name":     {event.TaskCreatedData{WantedID: "q", WantedName: "B"}, "b0"},
		"an offline id alone":              {event.TaskCreatedData{WantedID: "a5"}, ""},
		"one that is away":                 {event.TaskCreatedData{WantedID: "a6"}, ""},
		"an offline id, else capabilities": {event.TaskCreatedData{WantedID: "a5", Capabilities: []string{"z", "y"}}, "b1"},
		"the least loaded, oldest":         {event.TaskCreatedData{WantedName: "A"}, "a3"},
		"of equals the first id":           {event.TaskCreatedData{WantedName: "B"}, "b0"},
		"names beat capabilities":          {event.TaskCreatedData{WantedName: "A", Capabilities: []string{"z"}}, "a3"},
		"names are exact":                  {event.TaskCreatedData{WantedName: "a"}, ""},
		"all capabilities":                 {event.TaskCreatedData{Capabilities: []string{"x", "y"}}, "b1"},
		"no such capabilities":             {event.TaskCreatedData{Capabilities: []string{"x", "w"}}, ""},
		"nobody in particular":             {event.TaskCreatedData{}, ""},
		"no id, no agent":                  {event.TaskCreatedData{WantedName: "none"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := assignment.Choose(c.want, assignment.List(agents))
			require.Equal(t, c.id, got.ID)
			require.Equal(t, c.id != "", ok)
		})
	}
}

// TestLoadSpreads: tasks for one name go round the replicas.
func TestLoadSpreads(t *testing.T) {
	w := newWorld(t)
	got := map[string]int{}
	for range 10 {
		a, ok := assignment.Choose(event.TaskCreatedData{WantedName: "A"}, assignment.List(w.agents))
		require.True(t, ok)
		w.agent(a.ID).Load++
		got[a.ID]++
	}
	require.Equal(t, map[string]int{"a1": 5, "a2": 5}, got)
}
