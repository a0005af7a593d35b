//go:build unix

package gateway_test

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// The figures of streams that docs/PROTOCOL-AGUI.md has: "make streams" counts them on a machine that does nothing else.
var (
	idleStreams = flag.Int("idle", 400, "idle streams of server-sent events")
	manyViewers = flag.Int("viewers", 30, "viewers beside one that reads nothing")
	costViewers = flag.Int("sinks", 20, "viewers of each transport whose frames are compared")
	costFrames  = flag.Int("frames", 300, "frames for each of them")
)

// windows returns a transport of HTTP/2 in clear text whose streams take so many bytes before they are read.
func windows(bytes int) *http.Transport {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: bytes}}
}

// delays watches a thread with many viewers while texts come, and returns after how long each viewer had each text.
func (r *rig) delays(viewers, texts int, stalled bool) []time.Duration {
	r.t.Helper()
	name, l := r.thread(running("one")...)
	tr, small := &http.Transport{MaxIdleConnsPerHost: -1}, windows(64<<10)
	r.t.Cleanup(tr.CloseIdleConnections)
	r.t.Cleanup(small.CloseIdleConnections)
	open := func(tr *http.Transport) *http.Response {
		res, err := (&http.Client{Transport: tr}).Get("http://" + r.addr + "/agui/threads/" + name + "?follow=1")
		require.NoError(r.t, err)
		r.t.Cleanup(func() { _ = res.Body.Close() })
		require.Equal(r.t, http.StatusOK, res.StatusCode)
		return res
	}
	if stalled {
		open(small) //nolint:bodyclose // open has it closed
	}
	var mu sync.Mutex
	var all []time.Duration
	sent := make([]time.Time, texts)
	var g errgroup.Group
	for range viewers {
		res := open(tr)
		g.Go(func() error {
			in, mine := bufio.NewReaderSize(res.Body, 64<<10), make([]time.Time, 0, texts)
			for len(mine) < texts {
				line, err := in.ReadString('\n')
				if err != nil {
					return fmt.Errorf("after %d texts: %w", len(mine), err)
				}
				for range strings.Count(line, "text-of-") {
					mine = append(mine, time.Now())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for i, at := range mine {
				all = append(all, at.Sub(sent[i]))
			}
			return nil
		})
	}
	r.happens(l, event.MessageStartedData{MessageID: "m", RunID: "w-one", Attempt: 1})
	tick := time.NewTicker(5*time.Millisecond + time.Duration(viewers)*200*time.Microsecond) // the machine has the clients, too
	defer tick.Stop()
	long := strings.Repeat("x", 8<<10)
	for i := range texts {
		<-tick.C
		mu.Lock()
		sent[i] = time.Now()
		mu.Unlock()
		r.happens(l, event.MessageDeltaData{MessageID: "m", RunID: "w-one", Attempt: 1, Text: fmt.Sprint("text-of-", i, long)})
	}
	require.NoError(r.t, g.Wait())
	slices.Sort(all)
	return all
}

// TestAStalledViewerHarmsNoOther: all others get everything, as soon as without it, and what waits for it is bounded.
func TestAStalledViewerHarmsNoOther(t *testing.T) {
	const texts = 50
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.PerIP, c.QueueBytes = 3**manyViewers+1000, 3**manyViewers+1000, 64<<10
	})
	share := func(all []time.Duration, of float64) time.Duration { return all[int(of*float64(len(all)-1))] }
	r.delays(*manyViewers, texts, false) // warm
	alone := r.delays(*manyViewers, texts, false)
	beside := r.delays(*manyViewers, texts, true)
	require.Len(t, beside, *manyViewers*texts)
	t.Logf("%d viewers, %d texts each: p50 %s, p99 %s; beside a stalled one: p50 %s, p99 %s", *manyViewers, texts,
		share(alone, .5), share(alone, .99), share(beside, .5), share(beside, .99))
}

// BenchmarkFramesOfStreams shows events of about 300 bytes to viewers of another process: on sockets, and as streams. It
// reports the CPU of this process per delivered frame, its part of the append included, and the ratio of the two.
func BenchmarkFramesOfStreams(b *testing.B) {
	r := start(b, func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.PerIP = *costViewers+1000, *costViewers+1000
	})
	name, l := r.thread(running("one")...)
	cost := func(path string, add func()) time.Duration {
		count := func() float64 { return r.metric("waggle_gateway_frames_out_total") }
		greeted := count() + float64(2**costViewers) // a socket that is not greeted yet misses frames
		defer eventually(b, "they are gone", func() bool { return r.metric("waggle_gateway_connections") == 0 })
		defer sockets(b, r.addr, path, *costViewers)()
		eventually(b, "all are greeted", func() bool { return count() >= greeted })
		sent, before := count(), cpu()
		for range *costFrames {
			add()
		}
		eventually(b, "all have the frames", func() bool { return count() >= sent+float64(*costViewers**costFrames) })
		return cpu() - before
	}
	var socket, stream time.Duration
	for b.Loop() { // the two take turns, so that what disturbs disturbs both
		socket += cost("/ws?session="+l.Entity.String(), func() { r.many(l, 1) })
		stream += cost("/agui/threads/"+name+"?follow=1", func() { r.happens(l, event.RetryScheduledData{RunID: "w-one", Attempt: 1, Message: ordinary}) })
	}
	beside(b, "socket", socket, "stream", stream, b.N**costViewers**costFrames, "frame")
}
