package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/service"
	"github.com/waggle-dev/waggle/services/tools/swarm"
)

func serviceHangs(t *testing.T, f *field) {
	p := f.connect(t, serviceOf("hangs"), silent)
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	const most = 64 / 4
	for range most {
		calls.Go(func() {
			c := ask(t, "hangs", "plain", nil)
			if _, err := f.Call(ctx, c); err == nil {
				t.Error("a service that hangs has answered")
			}
		})
	}
	for range most {
		p.given()
	}
	require.Contains(t, f.fails(t, ask(t, "hangs", "plain", nil), fault.ServiceBusy).Message, "16 open calls")
	f.connect(t, serviceOf("hangs-not"), answers(`"ok"`))
	require.Equal(t, "ok", f.call(t, "hangs-not_plain", nil))
	cancel()
	calls.Wait()
}

func serviceFloods(t *testing.T, f *field) {
	stop := make(chan struct{})
	f.connect(t, serviceOf("floods"), func(p *participant, c event.CallRequestedData) {
		data := json.RawMessage(`"` + strings.Repeat("x", 200_000) + `"`)
		for {
			select {
			case <-stop:
				return
			default:
				p.say(c, command.CallNews{Notification: &event.CallNotifiedData{NotificationType: "x", Data: data}})
			}
		}
	})
	defer close(stop)
	c := ask(t, "floods", "plain", nil)
	c.Timeout = maxWait / 20
	_, err := f.box().CallWith(t.Context(), c, func(tools.Notification) { t.Error("what is too large is not passed on") })
	var got *fault.Fault
	require.ErrorAs(t, err, &got)
	require.Contains(t, []fault.Code{fault.ToolFailed, fault.ToolTimeout}, got.Code)
	f.connect(t, serviceOf("floods-not"), answers(`"ok"`))
	require.Equal(t, "ok", f.call(t, "floods-not_plain", nil))
}

func serviceStray(t *testing.T, f *field) {
	f.connect(t, serviceOf("stray"), func(p *participant, c event.CallRequestedData) {
		nc := p.f.conn.NATS()
		for _, m := range []string{"", "{", "null", "[]", `{"final":true}`, `{"call_id":7}`} {
			_ = nc.Publish(c.Inbox, []byte(m))
			_ = nc.Publish(strings.TrimSuffix(c.Inbox, ".said")+".other", []byte(m))
		}
		other := c
		other.CallID = "another"
		answers(`"of another call"`)(p, other)
		stranger := *p
		stranger.participant.ID = "stranger"
		answers(`"of another service"`)(&stranger, c)
		answers(`"right"`)(p, c)
		answers(`"late"`)(p, c)
	})
	require.Equal(t, "right", f.call(t, "stray_plain", nil))
}

func serviceLarge(t *testing.T, f *field) {
	for name, n := range map[string]int{"large-some": 300_000, "large-too": 800_000} {
		f.connect(t, serviceOf(name), answers(`"`+strings.Repeat("<", n)+`"`))
	}
	res, err := f.Call(t.Context(), newCall(t, "large-some_plain", nil))
	require.NoError(t, err)
	require.True(t, res.Truncated)
	require.Equal(t, 300_000, res.Bytes)
	require.Len(t, res.Text, 128<<10)
	res, err = f.Call(t.Context(), ask(t, "large-some", "plain", nil))
	require.NoError(t, err)
	require.False(t, res.Truncated)
	f.fails(t, ask(t, "large-too", "plain", nil), fault.BadOutput)
}

// Gateways that have ended, that refuse, or that do not answer.
func TestGatewaysThatDoNotConfirm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply   string
		confirm time.Duration
		code    fault.Code
	}{
		"gone":    {"", maxWait, fault.ServiceBusy},
		"refuses": {"-ERR", maxWait, fault.ServiceBusy},
		"mute":    {"mute", maxWait / 12, fault.ServiceLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, service.Config{Waits: swarm.Waits{Confirm: tc.confirm, Lost: maxWait / 100, Return: maxWait / 100}}, false)
			p := f.connect(t, serviceOf(name), silent)
			require.NoError(t, p.sub.Unsubscribe())
			if tc.reply != "" {
				p.fakeGateway(tc.reply)
			}
			require.NoError(t, f.conn.NATS().Flush())
			f.fails(t, ask(t, name, "plain", nil), tc.code)
			f.connect(t, func() command.Participant { d := serviceOf(name); d.Load = 5; return d }(), answers(`"other"`))
			p.seen(func(s tools.Server) bool { return s.ID == name && s.Replicas == 2 })
			res, err := f.Call(t.Context(), ask(t, name, "again", nil))
			require.NoError(t, err)
			require.JSONEq(t, `"other"`, string(res.Data))
		})
	}
}

// A service may not take the names of a server, nor of another service.
func TestServicesCannotTakeNames(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{Builtin: true}, false)
	f.connect(t, serviceOf("workspace"), answers(`"mine"`))
	evil := serviceOf("a_b")
	f.connect(t, evil, answers(`"evil"`))
	good := serviceOf("a")
	good.Tools = append(good.Tools, command.ParticipantTool{ID: "b_plain"})
	f.connect(t, good, answers(`"good"`))
	require.Equal(t, "good", f.call(t, "a_b_plain", nil))
	f.fails(t, newCall(t, "workspace_plain", nil), fault.ToolNotFound)
	for _, name := range []string{"workspace", "a_b"} {
		_, list, err := f.svc.ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, name)
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.NotEqual(t, "good", f.call(t, list[1].Name, nil))
	}
}

func TestStopEndsServiceCalls(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{}, false)
	p := f.connect(t, serviceOf("stop"), silent)
	go func() {
		p.given()
		f.svc.Stop()
	}()
	f.fails(t, ask(t, "stop", "plain", nil), fault.ServiceLost)
}

func TestEntriesThatAreNoServices(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{}, false)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	kv, err := f.conn.JS().KeyValue(ctx, "directory")
	require.NoError(t, err)
	for i, data := range []string{`7`, `{}`, `null`, `{"kind":"agent","tenant":"default","id":"x"}`, `{"kind":"service","tenant":"a.b","id":"x"}`, `{"kind":"service","tenant":"default","id":"x","tools":7}`} {
		_, err := kv.PutString(ctx, fmt.Sprintf("asp-service.gw.j%d", i),
			fmt.Sprintf(`{"what":"asp-service","name":"gw","instance":"j%d","data":%s,"started":"2026-01-01T00:00:00Z"}`, i, data))
		require.NoError(t, err)
	}
	f.connect(t, serviceOf("real"), answers(`"ok"`))
	list, err := f.svc.Servers(t.Context(), id.DefaultTenant, tools.KindService)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "ok", f.call(t, "real_plain", nil))
}

func (p *participant) fakeGateway(reply string) {
	p.t.Helper()
	sub, err := p.f.conn.NATS().Subscribe("direct."+p.participant.Gateway+"."+p.participant.Connection, respond(reply))
	require.NoError(p.t, err)
	p.sub = sub
}

// respond answers every request with the text, or does not answer.
func respond(with string) nats.MsgHandler {
	return func(m *nats.Msg) {
		if with != "mute" {
			_ = m.Respond([]byte(with)) // Fails after the end of the test.
		}
	}
}

// During a loss of the bus a service continues, and its result arrives if the service sends it after the reconnection.
func TestTheBusRestartsDuringAServiceCall(t *testing.T) {
	t.Parallel()
	f := newField(t, service.Config{}, true)
	ready, restarted := make(chan struct{}), make(chan struct{})
	f.connect(t, serviceOf("patient"), func(p *participant, c event.CallRequestedData) {
		close(ready)
		<-restarted
		answers(`"after all"`)(p, c)
	})
	ends := []*bus.Conn{f.rig.conn, f.conn}
	var back []chan struct{}
	for _, c := range ends {
		up := make(chan struct{}, 10)
		back = append(back, up)
		defer c.Watch(func(is bool) {
			if is {
				up <- struct{}{}
			}
		})()
	}
	go func() {
		<-ready
		f.bus.Stop()
		f.bus.Start()
		for i, c := range ends {
			<-back[i]
			if err := c.NATS().Flush(); err != nil {
				t.Error(err)
			}
		}
		close(restarted)
	}()
	require.Equal(t, "after all", f.call(t, "patient_plain", nil))
}
