package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a copy of a bucket whose values are texts; "?" is an invalid value.
type page struct {
	mu       sync.Mutex
	known    map[string]string
	readings int
	changed  chan struct{}
	closed   atomic.Bool
	late     atomic.Bool // called after Close
}

func newPage() *page { return &page{changed: make(chan struct{}, 1)} }

func (p *page) Decode(_ string, value []byte) (string, bool) {
	return string(value), string(value) != "?"
}

func (p *page) Replace(all map[string]bucket.Entry[string]) {
	p.change(func() {
		p.readings++
		p.known = map[string]string{}
		for k, e := range all {
			p.known[k] = e.Value
		}
	})
}

func (p *page) Apply(c bucket.Change[string]) {
	p.change(func() {
		if c.Gone {
			delete(p.known, c.Key)
		} else {
			p.known[c.Key] = c.Value
		}
	})
}

func (p *page) change(f func()) {
	if p.closed.Load() {
		p.late.Store(true)
	}
	p.mu.Lock()
	f()
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *page) state() (map[string]string, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.known), p.readings
}

// says waits until the copy holds exactly these entries.
func (p *page) says(t *testing.T, want map[string]string) {
	t.Helper()
	p.until(t, func(have map[string]string, _ int) bool { return maps.Equal(have, want) })
}

func (p *page) until(t *testing.T, ok func(map[string]string, int) bool) {
	t.Helper()
	late := time.After(bustest.MaxWait)
	for {
		have, n := p.state()
		if ok(have, n) {
			return
		}
		select {
		case <-p.changed:
		case <-late:
			require.FailNow(t, "the copy never says so", "%d readings; have %v", n, have)
		}
	}
}

func put(t *testing.T, kv jetstream.KeyValue, key, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.MaxWait)
	defer cancel()
	_, err := kv.PutString(ctx, key, value)
	require.NoError(t, err)
}

func open(t *testing.T, c *bus.Conn, cfg jetstream.KeyValueConfig) jetstream.KeyValue {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.MaxWait)
	defer cancel()
	cfg.Bucket, cfg.Storage = "copied", jetstream.FileStorage
	kv, err := c.JS().CreateOrUpdateKeyValue(ctx, cfg)
	require.NoError(t, err)
	return kv
}

func follow(t *testing.T, cfg bucket.Config) (*page, *bucket.Follower[string]) {
	t.Helper()
	p := newPage()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.MaxWait)
	defer cancel()
	cfg.Name = "a test's bucket"
	f, err := bucket.Follow(ctx, cfg, p)
	require.NoError(t, err)
	t.Cleanup(func() {
		f.Close()
		p.closed.Store(true)
	})
	return p, f
}

func TestACopyFollowsItsKeysAndNoOthers(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	kv := open(t, c, jetstream.KeyValueConfig{})
	for k, v := range map[string]string{"a.x": "1", "a.gone": "1", "a.odd": "?", "b.x": "1"} {
		put(t, kv, k, v)
	}
	require.NoError(t, kv.Delete(t.Context(), "a.gone"))
	some, _ := follow(t, bucket.Config{Conn: c, KV: kv, Keys: "a.*"})
	have, n := some.state()
	require.Equal(t, map[string]string{"a.x": "1"}, have, "Follow returns with a whole copy: no deletes, nothing unreadable")
	require.Equal(t, 1, n)
	all, _ := follow(t, bucket.Config{Conn: c, KV: kv})
	put(t, kv, "b.x", "2")
	put(t, kv, "a.y", "2")
	all.says(t, map[string]string{"a.x": "1", "a.y": "2", "b.x": "2"})
	require.NoError(t, kv.Delete(t.Context(), "b.x"))
	require.NoError(t, kv.Purge(t.Context(), "a.x"))
	all.says(t, map[string]string{"a.y": "2"})
	some.says(t, map[string]string{"a.y": "2"})
	put(t, kv, "a.y", "?")
	some.says(t, map[string]string{})
	_, n = some.state()
	require.Equal(t, 1, n, "changes need no second reading")
}

// An expired key leaves the copy when its marker comes.
func TestWhatExpiresIsGone(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	kv := open(t, c, jetstream.KeyValueConfig{TTL: time.Second, LimitMarkerTTL: time.Minute})
	put(t, kv, "a", "1")
	p, _ := follow(t, bucket.Config{Conn: c, KV: kv})
	p.says(t, map[string]string{})
	_, n := p.state()
	require.Equal(t, 1, n)
}

// Without markers the follower does not see that a key has expired: the owner notices, and the follower reads the
// bucket again.
func TestWhatExpiredUnseenIsLookedUp(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	kv := open(t, c, jetstream.KeyValueConfig{})
	put(t, kv, "a", "1")
	p := newPage()
	f, err := bucket.Follow(t.Context(), bucket.Config{
		Conn: c, KV: kv, Every: 50 * time.Millisecond,
		Stale: func() bool { have, _ := p.state(); return len(have) > 0 },
	}, p)
	require.NoError(t, err)
	defer f.Close()
	p.says(t, map[string]string{"a": "1"})
	open(t, c, jetstream.KeyValueConfig{TTL: time.Second}) // now that the copy has it, it expires
	p.says(t, map[string]string{})
	_, n := p.state()
	require.Greater(t, n, 1)
}

// While the server is away the copy stays; keys that were deleted meanwhile, with expired markers, are not in it
// afterwards.
func TestACopyIsReadAnewAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c, other := bustest.Dial(t, s.URL), bustest.Dial(t, s.URL)
	kv := open(t, c, jetstream.KeyValueConfig{})
	put(t, kv, "a", "1")
	put(t, kv, "b", "1")
	p, _ := follow(t, bucket.Config{Conn: c, KV: kv, Pause: 20 * time.Millisecond})
	for round := 1; round <= 3; round++ {
		_, before := p.state()
		s.Stop()
		have, _ := p.state()
		require.Equal(t, map[string]string{"a": fmt.Sprint(round), "b": "1"}, have)
		s.Start()
		value := fmt.Sprint(round + 1)
		require.Eventually(t, func() bool {
			theirs, err := other.JS().KeyValue(t.Context(), "copied")
			if err != nil {
				return false
			}
			_, err = theirs.PutString(t.Context(), "a", value)
			return err == nil
		}, bustest.MaxWait, 20*time.Millisecond)
		p.says(t, map[string]string{"a": value, "b": "1"})
		p.until(t, func(_ map[string]string, n int) bool { return n > before })
	}
}

// faulty opens feeds that the test breaks.
type faulty struct {
	bucket.Feed
	over chan struct{}
}

func (f faulty) Over() <-chan struct{} { return f.over }

// opener counts the feeds that are opened.
func opener(c *bus.Conn, n *atomic.Int64, change func(n int64, f bucket.Feed) (bucket.Feed, error)) func(context.Context) (bucket.Feed, error) {
	return func(ctx context.Context) (bucket.Feed, error) {
		f, err := bucket.Watch(ctx, c, "copied", ">")
		if err != nil {
			return nil, err
		}
		return change(n.Add(1), f)
	}
}

func TestAWatchThatIsLostIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	cut, n := make(chan struct{}), atomic.Int64{}
	kv := open(t, c, jetstream.KeyValueConfig{})
	put(t, kv, "a", "1")
	p, _ := follow(t, bucket.Config{Conn: c, KV: kv, Pause: 10 * time.Millisecond, Open: opener(c, &n, func(n int64, f bucket.Feed) (bucket.Feed, error) {
		if n == 1 {
			return faulty{f, cut}, nil
		}
		return f, nil
	})})
	put(t, kv, "a", "2")
	p.says(t, map[string]string{"a": "2"})
	close(cut)
	put(t, kv, "a", "3") // the first feed may still deliver it
	p.until(t, func(have map[string]string, readings int) bool { return have["a"] == "3" && readings == 2 })
	require.EqualValues(t, 2, n.Load())
}

// hung is a feed that delivers nothing.
type hung struct{ bucket.Feed }

func (hung) Updates() <-chan *bus.Message { return nil }

// The follower gives a hanging first reading up and repeats it, and retries one that cannot begin. Follow waits for a
// complete reading.
func TestASlowFirstReadingIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	kv, n := open(t, c, jetstream.KeyValueConfig{}), atomic.Int64{}
	put(t, kv, "a", "1")
	p, _ := follow(t, bucket.Config{Conn: c, KV: kv, Budget: time.Second, Pause: 10 * time.Millisecond, Open: opener(c, &n, func(n int64, f bucket.Feed) (bucket.Feed, error) {
		switch n {
		case 1:
			f.Stop()
			return nil, errors.New("no")
		case 2:
			return hung{f}, nil
		}
		return f, nil
	})})
	have, readings := p.state()
	require.Equal(t, map[string]string{"a": "1"}, have)
	require.Equal(t, 1, readings, "what was read by halves is never shown")
	require.GreaterOrEqual(t, n.Load(), int64(3))
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	tried, n := make(chan struct{}, 1), atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-tried
		cancel()
	}()
	kv := open(t, c, jetstream.KeyValueConfig{})
	_, err := bucket.Follow(ctx, bucket.Config{Conn: c, KV: kv, Pause: 10 * time.Millisecond, Open: opener(c, &n, func(_ int64, f bucket.Feed) (bucket.Feed, error) {
		f.Stop()
		select {
		case tried <- struct{}{}:
		default:
		}
		return nil, errors.New("never")
	})}, newPage())
	require.ErrorIs(t, err, context.Canceled)
}

// Close ends the follower at once, with changes on their way, twice, and without a server.
func TestACloseEndsNotifications(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, s.URL)
	kv := open(t, c, jetstream.KeyValueConfig{})
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = kv.PutString(ctx, "a", fmt.Sprint(i))
		}
	})
	var pages []*page
	for range 20 {
		p := newPage()
		f, err := bucket.Follow(t.Context(), bucket.Config{Conn: c, KV: kv}, p)
		require.NoError(t, err)
		_, n := p.state()
		require.Equal(t, 1, n)
		f.Close()
		p.closed.Store(true)
		f.Close()
		pages = append(pages, p)
		<-f.Done()
	}
	stop()
	writing.Wait()
	last := newPage()
	f, err := bucket.Follow(t.Context(), bucket.Config{Conn: c, KV: kv}, last)
	require.NoError(t, err)
	s.Stop()
	f.Close()
	for _, p := range pages {
		require.False(t, p.late.Load())
	}
}
