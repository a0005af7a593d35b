package admission

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func table(t testing.TB, l Limits) *Table {
	t.Helper()
	tab, err := NewTable(l)
	require.NoError(t, err)
	return tab
}

func TestConnectionsPerKey(t *testing.T) {
	tab := table(t, Limits{Connections: 2})
	a1, v := tab.Enter("a", t0)
	require.Equal(t, Entered, v)
	_, v = tab.Enter("a", t0)
	require.Equal(t, Entered, v)
	none, v := tab.Enter("a", t0)
	require.Equal(t, TooMany, v)
	require.Nil(t, none)
	_, v = tab.Enter("b", t0)
	require.Equal(t, Entered, v, "another key")
	a1()
	a1()
	_, v = tab.Enter("a", t0)
	require.Equal(t, Entered, v, "one has left, once")
	_, v = tab.Enter("a", t0)
	require.Equal(t, TooMany, v)
}

func TestRatePerKey(t *testing.T) {
	tab := table(t, Limits{Rate: 10, Burst: 3})
	count := func(key string, now time.Time) (n int) {
		for range 20 {
			if _, v := tab.Enter(key, now); v == Entered {
				n++
			}
		}
		return n
	}
	require.Equal(t, 3, count("a", t0))
	require.Equal(t, 3, count("b", t0))
	require.Equal(t, 2, count("a", t0.Add(200*time.Millisecond)))
	require.Equal(t, 3, count("a", t0.Add(time.Hour)))
}

func TestNegativeLimitsAreRefused(t *testing.T) {
	for _, l := range []Limits{{Connections: -1}, {Rate: -1}, {Burst: -1}, {Keys: -1}} {
		_, err := NewTable(l)
		require.Error(t, err, "%+v", l)
	}
}

// Whatever comes and goes, no key has more than its share, and what has left is
// forgotten.
func TestCountsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		tab, err := NewTable(Limits{Connections: limit, Keys: 4})
		if err != nil {
			t.Fatal(err)
		}
		open := map[string][]func(){}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))
			if n := len(open[key]); rapid.Bool().Draw(t, "enter") {
				leave, v := tab.Enter(key, t0)
				if (v == Entered) != (n < limit) {
					t.Fatalf("key %s has %d of %d and was answered %d", key, n, limit, v)
				}
				if v == Entered {
					open[key] = append(open[key], leave)
				}
			} else if n > 0 {
				open[key][n-1]()
				open[key] = open[key][:n-1]
			}
		}
		for _, ls := range open {
			for _, leave := range ls {
				leave()
			}
		}
		if n, _ := tab.Len(); n != 0 {
			t.Fatalf("%d keys are remembered", n)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	tab := table(t, Limits{Connections: 1, Rate: 1, Burst: 1, Keys: 100})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				if leave, v := tab.Enter(fmt.Sprintf("%d.%d", g, i), t0); v == Entered {
					leave()
				}
			}
		})
	}
	wg.Wait()
	open, rates := tab.Len()
	require.Zero(t, open)
	require.LessOrEqual(t, rates, 100)
}

func TestAddress(t *testing.T) {
	for _, c := range []struct {
		remote, key string
		many        bool
	}{
		{"203.0.113.9:4711", "203.0.113.9", false},
		{"[::ffff:203.0.113.9]:4711", "203.0.113.9", false},
		{"[2001:db8:1:2:3::4]:4711", "2001:db8:1:2::/64", false},
		{"[2001:db8:1:2:ffff::]:1", "2001:db8:1:2::/64", false},
		{"127.0.0.1:1", "127.0.0.1", true},
		{"[::1]:1", "::/64", true},
		{"10.1.2.3:1", "10.1.2.3", true},
		{"192.168.0.7:1", "192.168.0.7", true},
		{"[fe80::1%eth0]:1", "fe80::/64", true},
		{"[fd00::1]:1", "fd00::/64", true},
		{"pipe", "pipe", false},
	} {
		key, many := Address(c.remote)
		require.Equal(t, c.key, key, c.remote)
		require.Equal(t, c.many, many, c.remote)
	}
}
