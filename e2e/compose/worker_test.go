//go:build compose

package compose_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// TestAChatSaysThatNoWorkerIsAvailable: the only worker's container is killed. A client
// that asks then is told within seconds, before the lease of the dead worker expires, and
// gets the answer when the container is back.
func TestAChatSaysThatNoWorkerIsAvailable(t *testing.T) {
	f := start(t, tools(t)[0])
	d := f.talk(0)
	d.Once()
	worker := f.containers("worker")
	require.Len(t, worker, 1)
	f.run("docker", "kill", worker[0])

	ctx, cancel := process.Within(2 * process.MaxWait)
	defer cancel()
	asked := time.Now()
	id := d.Message(verify.Question, nil)
	about := func(action string) func(sdk.Frame) bool {
		return func(x sdk.Frame) bool {
			return x.Event == myagent.SystemNotice && x.Seq == 0 && x.Meta().Action == action
		}
	}
	_, err := d.Await(ctx, about(myagent.ActionNoWorker))
	require.NoError(t, err)
	t.Logf("told %.1f s after the question that no worker is available", time.Since(asked).Seconds())
	require.Less(t, time.Since(asked), 20*time.Second, "the lease of a dead worker lasts 30 s")

	f.run("docker", "start", worker[0])
	_, err = d.Await(ctx, about(myagent.ActionWorkerBack))
	require.NoError(t, err)
	_, err = d.Await(ctx, client.EndOf(id))
	require.NoError(t, err, "the answer")
}
