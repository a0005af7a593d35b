// Package attack measures what users notice while strangers attack a gateway. The command is "make attack"; a smaller
// run is part of the end-to-end tests.
package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// Chats are users that ask one question after the other, with a pause of random length: with equal pauses they would ask in
// step, and wait for each other more than for the gateway.
type Chats struct {
	Addr  string
	Key   string
	Users int
	Pause time.Duration // on average
}

// Times are how long answers took, sorted.
type Times []time.Duration

// Quantile returns the time within which the part p of the answers came.
func (t Times) Quantile(p float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)-1, int(p*float64(len(t))))]
}

// String returns the figures that tests compare.
func (t Times) String() string {
	return fmt.Sprintf("%d answers, p50 %v, p99 %v", len(t), t.Quantile(0.5), t.Quantile(0.99))
}

// Run lets the users ask until the time is over, and returns when all have their last answer.
func (c Chats) Run(ctx context.Context, d time.Duration) (Times, error) {
	stop := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(stop) })
	defer timer.Stop()
	var (
		mu   sync.Mutex
		all  Times
		errs []error
		wg   sync.WaitGroup
	)
	for n := range c.Users {
		wg.Go(func() {
			times, err := c.user(ctx, rand.New(rand.NewPCG(uint64(n), 1)), stop) //nolint:gosec // pauses need no secret
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all, errors.Join(errs...)
}

// user asks in one session, over one connection.
func (c Chats) user(ctx context.Context, random *rand.Rand, stop <-chan struct{}) (times Times, err error) {
	conn, _, err := websocket.Dial(ctx, "ws://"+c.Addr+"/ws", &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + c.Key}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.CloseNow() }()
	if err := until(ctx, conn, "agent_ready"); err != nil {
		return nil, err
	}
	for {
		pause := time.NewTimer(time.Duration(2 * random.Float64() * float64(c.Pause)))
		select {
		case <-pause.C:
		case <-stop:
			return times, nil
		}
		began := time.Now()
		if err := wsjson.Write(ctx, conn, map[string]string{"type": "user_message", "content": "hello"}); err != nil {
			return times, err
		}
		if err := until(ctx, conn, "agent_response"); err != nil {
			return times, err
		}
		times = append(times, time.Since(began))
	}
}

// until reads until a frame of the type arrives.
func until(ctx context.Context, conn *websocket.Conn, kind string) error {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return fmt.Errorf("while waiting for %s: %w", kind, err)
		}
		var f struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(b, &f); err != nil {
			return err
		}
		if f.Type == kind {
			return nil
		}
	}
}
