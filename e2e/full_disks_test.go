//go:build nightly && linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// smallDisk is the size of the disk of a NATS server: several times what the sessions of the test need.
const smallDisk = "size=128m"

// again are the faults after which a message is to be sent again.
var again = regexp.MustCompile(`"(BUS_UNAVAILABLE|OVERLOADED)"`)

// fullDisks are the disks of a cluster of three, with sessions that are asked.
type fullDisks struct {
	*testing.T
	g        *guarded
	c        *cluster
	api      string
	disks    []string
	sessions []string
	asked    map[string][]string // messages of each session that count
}

// TestDisksOfAClusterAreFull: one of three, which changes nothing; then all, and messages are refused as BUS_UNAVAILABLE, or as
// OVERLOADED where a service could not carry them out, or answered later. Once the disks have space and the NATS servers were
// restarted, every message is answered exactly once, those that were refused when they are sent again, and no process of Waggle was
// restarted.
func TestDisksOfAClusterAreFull(t *testing.T) {
	f := &fullDisks{T: t, asked: map[string][]string{}}
	f.g, f.c = startClusterIn(t, f.disk, "WAGGLE_NATS_REPLICAS=3", "WAGGLE_NATS_EVENT_MAX_BYTES=33554432")
	f.g.run(permission.Bootstrap, "bootstrap")
	f.api = "http://" + f.g.serve() + "/api/v1/sessions"
	for range 8 {
		f.sessions = append(f.sessions, f.named())
	}
	require.Empty(t, f.ask("before"), "refused")
	f.answered()

	f.fill(0)
	f.until("one is full", func(round string) bool { return len(f.ask(round)) == 0 })
	f.answered()

	f.fill(1)
	f.fill(2)
	var refused map[string][]string
	f.until("all are full", func(round string) bool { refused = f.ask(round); return len(refused) == len(f.sessions) })
	for i, dir := range f.disks {
		require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
		f.c.kill(i)
		f.c.servers[i] = f.g.startServer(f.c.options[i])
	}
	f.until("the cluster is back", func(round string) bool { return len(f.ask(round)) == 0 })
	for session, ids := range refused {
		for _, id := range ids {
			require.Equal(t, http.StatusAccepted, f.post(session, id), "a refused message is sent again")
			f.asked[session] = append(f.asked[session], id)
		}
	}
	f.answered()
	for role, p := range f.g.running {
		select {
		case <-p.Ended():
			require.Fail(t, role+" has ended", p.Output())
		default:
		}
	}
}

// disk gives a server a small disk, of which it believes that it is large: the streams may hold more than they will.
func (f *fullDisks) disk(o *server.Options) {
	dir := f.TempDir()
	require.NoError(f, syscall.Mount("disk", dir, "tmpfs", 0, smallDisk), "a small disk needs root")
	f.Cleanup(func() { require.NoError(f, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	f.disks = append(f.disks, dir)
	o.StoreDir, o.JetStreamMaxStore = dir, 1<<40
}

// fill leaves no space on the disk of a server.
func (f *fullDisks) fill(i int) {
	f.Helper()
	file, err := os.Create(filepath.Join(f.disks[i], "filler"))
	require.NoError(f, err)
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err = file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	require.ErrorIs(f, err, syscall.ENOSPC)
	_ = file.Close() // its content does not count
}

// until asks all sessions again, until the condition holds of a round.
func (f *fullDisks) until(what string, over func(round string) bool) {
	f.Helper()
	n := 0
	process.Eventually(f, what, func() bool { n++; return over(fmt.Sprintf("%s, %d", what, n)) })
}

// ask asks all sessions at once, and returns the ids of the messages that were refused, by session. The others count.
func (f *fullDisks) ask(round string) map[string][]string {
	f.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	refused := map[string][]string{}
	for _, s := range f.sessions {
		wg.Go(func() {
			status := f.post(s, round)
			mu.Lock()
			defer mu.Unlock()
			if status == http.StatusAccepted {
				f.asked[s] = append(f.asked[s], round)
				return
			}
			refused[s] = append(refused[s], round)
		})
	}
	wg.Wait()
	f.Logf("%s: %d of %d messages are refused", round, len(refused), len(f.sessions))
	return refused
}

// post sends a message, and returns the status of the response: 202, or 503 with a fault that says to send it again.
func (f *fullDisks) post(session, id string) int {
	status, body := f.request(http.MethodPost, "/"+session+"/messages", fmt.Sprintf(`{"id":%q,"content":"what is 2+3?"}`, id))
	if status != http.StatusAccepted {
		if status != http.StatusServiceUnavailable || !again.Match(body) {
			f.Errorf("%s is refused with %d: %s", id, status, body)
		}
	}
	return status
}

func (f *fullDisks) request(method, path, body string) (status int, answer []byte) {
	req, err := http.NewRequestWithContext(f.Context(), method, f.api+path, bytes.NewReader([]byte(body)))
	if err != nil {
		f.Errorf("%s %s: %v", method, path, err)
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.Errorf("%s %s: %v", method, path, err)
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		f.Errorf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}

func (f *fullDisks) named() string {
	f.Helper()
	var named struct {
		SessionID string `json:"session_id"`
	}
	status, body := f.request(http.MethodPost, "", "{}")
	require.Equal(f, http.StatusCreated, status, "%s", body)
	require.NoError(f, json.Unmarshal(body, &named))
	return named.SessionID
}

// answered waits until each message that counts has had its one answer, in a log without a hole or a double.
func (f *fullDisks) answered() {
	f.Helper()
	for _, s := range f.sessions {
		process.Eventually(f, "the messages of "+s+" have answers", func() bool {
			asked, ended := map[string]int{}, 0
			for i, e := range f.log(s) {
				require.Equal(f, uint64(i+1), e.Sequence, "of the log of %s", s)
				switch e.Type {
				case event.MessageReceived:
					d, err := event.As[event.MessageReceivedData](e)
					require.NoError(f, err)
					asked[d.MessageID]++
					require.Equal(f, 1, asked[d.MessageID], "%s is in the log twice", d.MessageID)
				case event.RunCompleted:
					ended++
				case event.RunFailed, event.RunCancelled, event.MessageRefused:
					require.Fail(f, "a message has no answer", "%s: %s", e.Type, e.Data)
				}
			}
			return ended == len(asked) && len(asked) >= len(f.asked[s])
		})
	}
}

// log returns the log of a session.
func (f *fullDisks) log(session string) []event.Event {
	f.Helper()
	var all []event.Event
	page := struct {
		Events []event.Event
		Next   string
		More   bool
	}{Next: "0", More: true}
	for page.More {
		status, body := f.request(http.MethodGet, "/"+session+"/events?after="+page.Next, "")
		if status != http.StatusOK {
			return nil // the servers elect a leader
		}
		page.Events = nil
		require.NoError(f, json.Unmarshal(body, &page))
		all = append(all, page.Events...)
	}
	return all
}
