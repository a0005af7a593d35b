package task_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/task"
)

// TestManyTasksOfOneClient: three agents share the tasks of a client, two replicas write
// its inbox side by side, and one of them stops on the way. Every task has one end, and
// the inbox has every event once and in the order of its task.
func TestManyTasksOfOneClient(t *testing.T) {
	t.Parallel()
	const tasks, agents = 60, 3
	r := newRig(t)
	first := r.start("a", task.Config{})
	r.start("b", task.Config{})
	me := r.client()
	var done sync.WaitGroup
	quit := make(chan struct{})
	counts := make([]int, agents)
	for i := range agents {
		a := r.join(cmd.Participant{ID: fmt.Sprint("w", i), Name: "W"})
		done.Go(func() {
			seen := map[string]bool{}
			for {
				select {
				case <-quit:
					return
				case e := <-a.heard:
					d, err := event.As[event.TaskAssignedData](e)
					attempt := fmt.Sprint(d.TaskID, " ", d.Attempt)
					if e.Type != event.TaskAssigned || err != nil || seen[attempt] {
						continue
					}
					seen[attempt] = true
					counts[i]++
					if err := a.finish(d.TaskID, d.Attempt); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	ids := make([]string, tasks)
	for i := range tasks {
		ids[i] = r.submit(me.ClientID, cmd.NewTask{AgentName: "W"})
		if i == tasks/2 {
			done.Go(first.Stop)
		}
	}
	inbox := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, tasks)
	close(quit)
	done.Wait()
	for _, one := range ids {
		inOrder(t, r, one, inbox)
		require.Equal(t, event.TaskFinished, of(inbox, one)[len(of(inbox, one))-1].Type)
	}
	t.Logf("tasks of each agent: %v", counts)
}
