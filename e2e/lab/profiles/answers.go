package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/internal/freeport"
)

const (
	chats     = 8
	questions = 20               // of a session
	warmUp    = 10 * time.Second // until caches and pools are full
	profiled  = 20 * time.Second
)

// answers profiles "waggle up" while chats ask its demo model.
func answers(ctx context.Context, root, dir, file string) ([]string, error) {
	binary := filepath.Join(dir, "waggle")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/waggle") //nolint:gosec // a file of the caller
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	var addrs [3]string
	for n := range addrs {
		port, release, err := freeport.Reserve()
		if err != nil {
			return nil, err
		}
		defer release()
		addrs[n] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	addr, nats, telemetry := addrs[0], addrs[1], addrs[2]
	up := exec.CommandContext(ctx, binary, "up", "--addr", addr, "--nats-addr", nats, "--telemetry-addr", telemetry, //nolint:gosec // as built
		"--data", filepath.Join(dir, "data"), "--workspace", filepath.Join(dir, "workspace"), "--model", "demo", "--log-level", "error")
	up.Env = append(os.Environ(), "WAGGLE_QUOTA_TENANT_SESSIONS=-1", "WAGGLE_QUOTA_PRINCIPAL_SESSIONS=-1", "WAGGLE_QUOTA_TENANT_TOKENS=-1", "WAGGLE_QUOTA_PRINCIPAL_TOKENS=-1")
	up.Stderr = os.Stderr
	if err := up.Start(); err != nil {
		return nil, err
	}
	n, err := ask(ctx, addr, "http://"+telemetry+"/debug/pprof/profile", file)
	if err := errors.Join(err, up.Process.Signal(syscall.SIGTERM), up.Wait()); err != nil {
		return nil, err
	}
	busy := up.ProcessState.UserTime() + up.ProcessState.SystemTime()
	return []string{
		fmt.Sprintf("%.2f ms of CPU an answer", busy.Seconds()*1e3/float64(n)),
		fmt.Sprintf("%.0f answers a second", float64(n)/(warmUp+profiled).Seconds()),
	}, nil
}

// ask lets the chats ask for as long as it takes a profile after the warm-up, and returns the number of answers.
func ask(parent context.Context, addr, profiles, file string) (int64, error) {
	if err := await(parent, "http://"+addr+"/readyz"); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(parent, warmUp+profiled)
	defer cancel()
	var answered atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, chats+1)
	for range chats {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := session(ctx, "ws://"+addr+"/ws", &answered); err != nil && ctx.Err() == nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Go(func() {
		select {
		case <-time.After(warmUp):
			errs <- fetch(parent, fmt.Sprintf("%s?seconds=%d", profiles, int(profiled.Seconds())), file)
		case <-ctx.Done():
		}
	})
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return answered.Load(), err
}

// session asks the questions of one session, one after the other.
func session(ctx context.Context, url string, answered *atomic.Int64) error {
	c, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseNow() }()
	if err := until(ctx, c, "agent_ready"); err != nil {
		return err
	}
	for range questions {
		if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"user_message","content":"what is 2+3?"}`)); err != nil {
			return err
		}
		if err := until(ctx, c, "agent_response"); err != nil {
			return err
		}
		answered.Add(1)
	}
	return nil
}

var errRefused = errors.New("the gateway has refused a message")

// until reads to the frame of a type.
func until(ctx context.Context, c *websocket.Conn, kind string) error {
	for {
		_, raw, err := c.Read(ctx)
		if err != nil {
			return err
		}
		var f struct{ Type string }
		switch err := json.Unmarshal(raw, &f); {
		case err != nil:
			return err
		case f.Type == kind:
			return nil
		case f.Type == "error":
			return fmt.Errorf("%w: %s", errRefused, raw)
		}
	}
}

// fetch stores what an address answers.
func fetch(ctx context.Context, url, file string) error {
	body, err := get(ctx, url)
	if err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o600)
}

// await asks an address until it answers.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := get(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

var errStatus = errors.New("unexpected status")

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errStatus, res.Status)
	}
	return io.ReadAll(res.Body)
}
