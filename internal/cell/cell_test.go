package cell_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

const maxWait = 60 * time.Second

var (
	a, b = id.MustName("a"), id.MustName("b")
	red  = tenant("red")
)

func tenant(s string) id.Tenant {
	t, err := id.ParseTenant(s)
	if err != nil {
		panic(err)
	}
	return t
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, url string) *cell.Directory {
	t.Helper()
	return openOn(t, bustest.Dial(t, url))
}

func openOn(t testing.TB, c *bus.Conn) *cell.Directory {
	t.Helper()
	d, err := cell.Open(within(t), c, a)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// until waits until a copy is as it should be: it looks after each change.
func until(t testing.TB, d *cell.Directory, is func() bool) {
	t.Helper()
	changed := make(chan struct{}, 1)
	defer d.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for ctx := within(t); !is(); {
		select {
		case <-changed:
		case <-ctx.Done():
			require.FailNow(t, "the copy never says so")
		}
	}
}

// TestOneOfManyMoversWins: all others learn why they may not move the tenant.
func TestOneOfManyMoversWins(t *testing.T) {
	control := bustest.Start(t, bus.DefaultTopology())
	var mu sync.Mutex
	var wins []cell.Place
	var all sync.WaitGroup
	for i := range 8 {
		d := open(t, control.URL)
		all.Go(func() {
			p, err := d.Begin(within(t), red, id.MustName(fmt.Sprintf("c%d", i)))
			if err != nil {
				if !errors.Is(err, cell.ErrChanged) && !errors.Is(err, cell.ErrMoving) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			wins = append(wins, p)
		})
	}
	all.Wait()
	require.Len(t, wins, 1)
	p, err := open(t, control.URL).Look(within(t), red)
	require.NoError(t, err)
	require.Equal(t, wins[0].To, p.To)
	require.Equal(t, a, p.Cell)
}

// TestAMoveEndsOnce: a move that was given up can not be finished, and a finished one not be given up.
func TestAMoveEndsOnce(t *testing.T) {
	d := open(t, bustest.Start(t, bus.DefaultTopology()).URL)
	ctx := within(t)
	p, err := d.Begin(ctx, red, b)
	require.NoError(t, err)
	_, err = d.Abandon(ctx, red, p)
	require.NoError(t, err)
	_, err = d.Finish(ctx, red, p)
	require.ErrorIs(t, err, cell.ErrChanged)
	p, err = d.Begin(ctx, red, b)
	require.NoError(t, err)
	_, err = d.Finish(ctx, red, p)
	require.NoError(t, err)
	_, err = d.Abandon(ctx, red, p)
	require.ErrorIs(t, err, cell.ErrChanged)
	until(t, d, func() bool { return d.Place(red).Cell == b && !d.Place(red).Moving() })
	require.ErrorIs(t, d.Assign(ctx, red, a), cell.ErrAssigned)
	_, err = d.Begin(ctx, red, b)
	require.ErrorContains(t, err, "already serves it")
}

// TestTheLastCopyServesOn without a control cluster.
func TestTheLastCopyServesOn(t *testing.T) {
	control := bustest.Start(t, bus.DefaultTopology())
	conn := bustest.Dial(t, control.URL)
	d := openOn(t, conn)
	ctx := within(t)
	require.NoError(t, d.Assign(ctx, red, b))
	_, err := d.Join(ctx, b, id.MustName("g1"), "http://127.0.0.1:1")
	require.NoError(t, err)
	until(t, d, func() bool { return d.Place(red).Cell == b })
	control.Stop()
	bustest.Down(t, conn) // a request that is on its way would wait for its answer
	require.Equal(t, b, d.Place(red).Cell)
	require.Equal(t, []string{"http://127.0.0.1:1"}, d.Next(b))
	require.Equal(t, a, d.Place(tenant("other")).Cell)
	require.Error(t, d.Assign(ctx, tenant("other"), b), "nothing changes without the control cluster")
}

// TestGatewaysAreTakenInTurn, draining ones last, and say what they have seen.
func TestGatewaysAreTakenInTurn(t *testing.T) {
	url := bustest.Start(t, bus.DefaultTopology()).URL
	d, other := open(t, url), open(t, url)
	ctx := within(t)
	one, err := other.Join(ctx, b, id.MustName("g1"), "http://one")
	require.NoError(t, err)
	two, err := other.Join(ctx, b, id.MustName("g2"), "http://two")
	require.NoError(t, err)
	require.NoError(t, d.WaitGateways(ctx, b, func(g []cell.Gateway) bool { return len(g) == 2 }))
	require.NotEqual(t, d.Next(b)[0], d.Next(b)[0])
	require.NoError(t, one.Drain())
	require.NoError(t, two.Saw(7))
	require.NoError(t, two.Saw(3))
	require.NoError(t, d.WaitGateways(ctx, b, func(g []cell.Gateway) bool {
		return len(g) == 2 && g[0].Draining && g[1].Seen == 7
	}))
	for range 4 {
		require.Equal(t, []string{"http://two", "http://one"}, d.Next(b))
	}
	require.Equal(t, []id.Name{b}, d.Cells())
	require.Empty(t, d.Next(a))
}

// FuzzEntries: no value of the bucket stops the copy, and none places a tenant nowhere.
func FuzzEntries(f *testing.F) {
	url := bustest.Start(f, bus.DefaultTopology()).URL
	d := open(f, url)
	kv, err := bustest.Dial(f, url).Bucket(within(f), subject.BucketCells)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "{}", `{"cell":"b"}`, `{"cell":"b","to":"c"}`, `{"cell":"a b"}`, `{"cell":7}`, "null"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		revision, err := kv.Put(within(t), red.String(), value)
		require.NoError(t, err)
		until(t, d, func() bool { return d.Revision() >= revision })
		if d.Place(red).Cell.IsZero() {
			t.Fatalf("%q places the tenant nowhere", value)
		}
	})
}
