package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/backup"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// lateModel is a model provider that holds all requests until it is opened.
type lateModel struct {
	*httptest.Server
	asked chan struct{}
	open  atomic.Bool
}

func newLateModel(t *testing.T) *lateModel {
	m := &lateModel{asked: make(chan struct{}, 100)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // a worker looks whether its provider can be reached
			http.NotFound(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		m.asked <- struct{}{}
		if !m.open.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"at last\"}}]}\n\n",
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(m.Close)
	t.Cleanup(m.CloseClientConnections)
	return m
}

// ended reports whether any log has such an event.
func ended(t *testing.T, conn *bus.Conn, kind event.Type) bool {
	t.Helper()
	for _, p := range subject.DefaultPartitions.All() {
		s, err := conn.JS().Stream(t.Context(), p.EventStream())
		require.NoError(t, err)
		for seq := s.CachedInfo().State.FirstSeq; seq > 0 && seq <= s.CachedInfo().State.LastSeq; seq++ {
			m, err := s.GetMsg(t.Context(), seq)
			require.NoError(t, err)
			if m.Header.Get(event.HeaderType) == string(kind) {
				return true
			}
		}
	}
	return false
}

// A request arrives after the backup has copied the commands and before it copies the logs, and a
// worker claims the job: the backup holds the run and the claim, but no command. After a restore
// the work reaches its end without a further message.
func TestWorkThatABackupCutInTwoGoesOn(t *testing.T) {
	t.Parallel()
	team := filepath.Join(t.TempDir(), "team.yaml")
	require.NoError(t, os.WriteFile(team, []byte("name: One\ncoordinator: Lead\nmembers:\n  - {name: Lead, model: \"openai:late\"}\n"), 0o600))
	for name, c := range map[string]struct {
		ask   []string
		grown []id.Kind // one log of each
		ends  event.Type
	}{
		"session": {[]string{"chat", "are you there?"}, []id.Kind{id.KindSession}, event.RunCompleted},
		"task": {
			[]string{"tasks", "create", "--agent", "assistant", "are you there?"},
			[]id.Kind{id.KindTask, id.KindSession, id.KindInbox},
			event.TaskFinished,
		},
		"team": {[]string{"teams", "run", "-f", team, "are you there?"}, []id.Kind{id.KindTeam, id.KindMember}, event.RunCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutInTwo(t, c.ask, c.grown, c.ends)
		})
	}
}

func cutInTwo(t *testing.T, ask []string, grown []id.Kind, ends event.Type) {
	model := newLateModel(t)
	file := filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model: openai:late\n"+
		"providers: {openai: {api_key: k, base_url: "+model.URL+"/v1}}\n"), 0o600))
	i := start(t, "--config", file)
	conn, err := bus.Connect(t.Context(), bus.Config{
		URL: i.nats, Name: t.Name(), NKeySeedFile: i.seed(permission.Operator), InboxPrefix: permission.Inbox(permission.Operator),
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)

	dir := filepath.Join(t.TempDir(), "copy")
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	m, err := backup.Save(ctx, conn, dir, "test", func(s backup.Stream) {
		if s.Name != subject.TimerStreams()[0] {
			return
		}
		c := exec.CommandContext(ctx, "waggle", ask...)
		c.Dir, c.Env = i.dir, i.env()
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		select {
		case <-model.asked:
		case <-ctx.Done():
			require.Fail(t, "no worker calls the model", i.errors.String())
		}
	})
	require.NoError(t, err)
	var kinds []id.Kind
	for _, subj := range m.Grown {
		log, err := subject.DefaultPartitions.ParseEvent(subj)
		require.NoError(t, err)
		kinds = append(kinds, log.Kind)
	}
	require.ElementsMatch(t, grown, kinds)
	_ = i.cmd.Process.Kill()
	model.open.Store(true)

	fresh, back := bare(t)
	out, err := i.run(t, "waggle restore --from "+dir+" --nats "+fresh)
	require.NoError(t, err, out)
	require.False(t, ended(t, back, ends))
	again(t, fresh, "--config", file)
	require.Eventually(t, func() bool { return ended(t, back, ends) }, maxWait, 200*time.Millisecond)
	dense(t, back)
}
