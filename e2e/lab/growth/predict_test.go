package growth_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/e2e/lab/growth/simulation"
)

var (
	thinking = flag.Duration("think", 100*time.Millisecond, "mean time that a user thinks after an answer")
	askers   = flag.String("users", "4", "numbers of users whose answers are predicted, ascending")
	bounds   = flag.Bool("bounds", false, "fail if a prediction is wrong by more than its factor: only on a machine that does nothing else")
)

// Factors by which a prediction may be wrong with -bounds.
const (
	wrongRate = 1.5
	wrongP50  = 2.5
)

// observed is what users saw, and what it cost.
type observed struct {
	rate float64 // answers a second
	p50  time.Duration
	cpu  time.Duration // of an answer: installation and clients
}

// watch lets users ask and think, and returns what the second part of it showed.
func (i *installation) watch(users int) observed {
	i.t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	begin := time.Now().Add(*length / 4)
	end := begin.Add(*length)
	var all sync.WaitGroup
	errs := make(chan error, users)
	for n := range users {
		all.Go(func() {
			errs <- i.use(uint64(n), end, func(at time.Time, d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				if at.After(begin) && (at.Before(end) || len(took) == 0) { // at least the answer that was on its way
					took = append(took, d)
				}
			})
		})
	}
	<-time.After(time.Until(begin))
	before := i.busy() + ownTime(i.t)
	<-time.After(time.Until(end))
	busy := i.busy() + ownTime(i.t) - before
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(i.t, err)
	}
	slices.Sort(took)
	require.NotEmpty(i.t, took)
	return observed{float64(len(took)) / length.Seconds(), took[len(took)/2], busy / time.Duration(len(took))}
}

// use is a user: it asks, waits for the answer, and thinks.
func (i *installation) use(n uint64, end time.Time, note func(time.Time, time.Duration)) error {
	r := rand.New(rand.NewPCG(1, n))
	c, err := client.TryOrbit(i.t, i.socket(""))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.ReadTo("agent_ready", 1); err != nil {
		return err
	}
	for time.Now().Before(end) {
		<-time.After(time.Duration(r.ExpFloat64() * float64(*thinking)))
		began := time.Now()
		c.Ask("what is 2+3?")
		if err := c.ReadTo("agent_response", 1); err != nil {
			return err
		}
		note(time.Now(), time.Since(began))
		c.Frames = c.Frames[:0]
	}
	return nil
}

// ownTime returns the processor time of the test, whose clients share the machine with the installation.
func ownTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestPrediction measures a real installation with one user, predicts with the simulation what more users get, and compares that
// with what they really get.
func TestPrediction(t *testing.T) {
	i := install(t)
	i.watch(2) // caches and pools fill
	one := i.watch(1)
	t.Logf("one user: %v cpu an answer, p50 %v, %.1f answers a second", one.cpu, one.p50, one.rate)
	model := simulation.Calibrate(simulation.Observation{CPU: one.cpu, Latency: one.p50, Think: *thinking, Cores: runtime.NumCPU()})
	table := growth.NewTable("users", "answers a second", "predicted", "p50 ms", "predicted ms", "cpu ms an answer")
	var wrong []string
	for _, n := range sizes(t, *askers) {
		got, want := i.watch(n), model.Predict(n)
		table.Add(n, got.rate, want.Rate, ms(got.p50), ms(want.Whole.P50), ms(got.cpu))
		if off(want.Rate, got.rate) > wrongRate || off(want.Whole.P50.Seconds(), got.p50.Seconds()) > wrongP50 {
			wrong = append(wrong, fmt.Sprint(n, " users"))
		}
	}
	t.Logf("\n%s", table)
	require.False(t, *bounds && len(wrong) > 0, "the prediction is wrong by more than a factor of %v in the rate or %v in p50: %v", wrongRate, wrongP50, wrong)
}

// off returns the factor between two numbers, at least 1.
func off(a, b float64) float64 { return max(a/b, b/a) }
