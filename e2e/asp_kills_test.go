//go:build nightly

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestKillsWhileTasksRun: task services and gateways are killed at random while 200
// tasks run. Each ends once, and the client sees each event once and in order.
func TestKillsWhileTasksRun(t *testing.T) {
	const tasks, agents = 200, 4
	seed := seedOf(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f := newFleet(t, scripted.Smart())
	services := []*process.Process{f.serve("task,tools"), f.serve("task,tools")}
	gates, addrs := make([]*process.Process, 2), make([]string, 2)
	for i := range gates {
		gates[i], addrs[i] = f.gateway()
	}
	pace := func(client.SwarmFrame) any {
		<-time.After(40 * time.Millisecond)
		return "done"
	}
	workers := make([]*client.SwarmAgent, agents)
	for i := range workers {
		workers[i] = client.RunAgent(t, fmt.Sprintf("worker-%d", i), "Worker", []string{addrs[i%2], addrs[(i+1)%2]}, pace)
	}
	ends := make(chan string, 4*tasks)
	made := make(chan struct{}, tasks)
	guest := client.RunClient(t, addrs, func(f client.SwarmFrame) {
		switch f.Type {
		case "client.agent.task.create.response":
			made <- struct{}{}
		case "client.agent.task.result":
			ends <- f.Text("taskId")
		}
	})
	for range tasks {
		_, err := guest.Tell("client.agent.task.create.request", object{"agentName": "Worker", "taskData": object{}, "queueTimeout": 80_000})
		require.NoError(t, err)
	}
	for range tasks {
		receive(t, made, "the answer to a request")
	}
	moments := rnd.Perm(tasks * 3 / 4)[:4] // of the ends: who dies when so many have come
	for i := range tasks {
		switch victim := slices.Index(moments, i); victim {
		case 0, 1:
			services[victim].Kill()
			services[victim] = f.serve("task,tools")
		case 2, 3:
			gates[victim-2].Kill()
			gates[victim-2] = f.serve("gateway", "--addr", addrs[victim-2])
		}
		receive(t, ends, fmt.Sprintf("end %d (seed %d)", i, seed))
	}
	judge(t, guest, workers, addrs, tasks)
}

// seedOf returns the seed of a test's random moments: that of WAGGLE_E2E_SEED, to see a
// run again, else a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WAGGLE_E2E_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("seed %d", seed)
	return seed
}

// judge requires of what the guest saw that it is what its log has, once and in order,
// and of each task that it has one end, its last event.
func judge(t *testing.T, guest *client.SwarmClient, workers []*client.SwarmAgent, addrs []string, tasks int) {
	t.Helper()
	raw, frames, losses, wrong := guest.Events()
	require.NoError(t, wrong)
	ends, status := map[string]int{}, map[string]int{}
	for _, f := range frames {
		task := f.Text("taskId")
		require.Zero(t, ends[task], "nothing follows the end of a task: %s", f.Content)
		if f.Type == "client.agent.task.result" {
			ends[task]++
			status[f.Text("status")]++
		}
	}
	require.Equal(t, map[string]int{"completed": tasks}, status)
	require.Len(t, ends, tasks)
	require.Eventually(t, func() bool { return process.Up(addrs[0]) }, process.MaxWait, 50*time.Millisecond)
	again := guest.Replay(addrs[0], len(raw))
	for i := range raw {
		require.Equal(t, again[i], raw[i], "event %d of those in the log", i)
	}
	spread, repeated, refused, cut := []int{}, 0, map[string]int{}, 0
	for _, w := range workers {
		mine, twice, codes, lost := w.Given()
		spread, repeated, cut = append(spread, len(mine)), repeated+twice, cut+lost
		for code, n := range codes {
			refused[code] += n
		}
	}
	t.Logf("%d tasks, %d ends; %d events seen, 0 lost, 0 doubled, 0 reordered; the client came back %d times, agents %d times; "+
		"tasks of each agent %v, given again %d, results refused %v", tasks, len(ends), len(raw), losses, cut, spread, repeated, refused)
}

// TestAThousandQuickTasks: how they spread over four agents, and how long they take.
func TestAThousandQuickTasks(t *testing.T) {
	const tasks, agents, window = 1000, 4, 32
	f := newFleet(t, scripted.Smart())
	f.configure("\ngateway:\n  peers:\n    rate: 10000\n    burst: 10000\n") // the server is measured, not its limits
	f.serve("task,tools")
	_, addr := f.gateway()
	workers := make([]*client.SwarmAgent, agents)
	for i := range workers {
		workers[i] = client.RunAgent(t, fmt.Sprintf("worker-%d", i), "Worker", []string{addr}, func(client.SwarmFrame) any { return "done" })
	}
	var mu sync.Mutex
	sent := map[string]time.Time{}
	took := make(chan time.Duration, tasks)
	guest := client.RunClient(t, []string{addr}, func(f client.SwarmFrame) {
		if f.Type != "client.agent.task.result" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		took <- time.Since(sent[f.RequestID])
	})
	begin := time.Now()
	var all []time.Duration
	for i := range tasks {
		if i >= window {
			all = append(all, receive(t, took, "a result"))
		}
		mu.Lock()
		id, err := guest.Tell("client.agent.task.create.request", object{"agentName": "Worker", "taskData": object{}})
		sent[id] = time.Now()
		mu.Unlock()
		require.NoError(t, err)
	}
	for range window {
		all = append(all, receive(t, took, "a result"))
	}
	total := time.Since(begin)
	slices.Sort(all)
	var spread []int
	sum := 0
	for _, w := range workers {
		mine, again, _, _ := w.Given()
		require.Zero(t, again)
		spread, sum = append(spread, len(mine)), sum+len(mine)
		require.Positive(t, len(mine), "each agent has its part")
	}
	require.Equal(t, tasks, sum, "each task went to one agent")
	_, _, _, wrong := guest.Events()
	require.NoError(t, wrong)
	t.Logf("%d tasks, %d at a time: %.0f a second, p50 %s, p99 %s; tasks of each agent %v",
		tasks, window, tasks/total.Seconds(), all[tasks/2].Round(time.Millisecond), all[tasks*99/100].Round(time.Millisecond), spread)
}
