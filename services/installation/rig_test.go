package installation_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/letters"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/installation"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

const maxWait = 60 * time.Second

// rig is an installation with one queue, whose commands fail as long as it is broken.
type rig struct {
	*servicetest.Rig
	web      *servicetest.Web
	clock    servicetest.Clock
	signer   *signature.Signer
	verifier *signature.Verifier

	broken  atomic.Bool
	handled chan cmd.Command // successfully
	dead    chan cmd.Command
}

func newRig(t *testing.T, more func(*installation.Config)) *rig {
	t.Helper()
	conn := bustest.Single(t)
	r := &rig{Rig: servicetest.New(t, conn, maxWait), handled: make(chan cmd.Command, 100), dead: make(chan cmd.Command, 100)}
	r.signer, r.verifier = servicetest.Keys(r.T, r.clock.Now)
	cfg := installation.Config{Conn: conn, Log: r.Log, Logger: zerolog.Nop()}
	if more != nil {
		more(&cfg)
	}
	for _, part := range []interface {
		Start(context.Context) error
		Stop()
	}{r.queue(cmd.Worker), r.queue(cmd.Pipeline), letters.New(conn, r.Log).NewServer(letters.Config{Queues: []id.Name{cmd.Worker}, Logger: zerolog.Nop()}), installation.New(cfg)} {
		require.NoError(t, part.Start(r.Ctx))
		t.Cleanup(part.Stop)
	}
	contract, err := apitest.Current()
	require.NoError(t, err)
	r.web = r.Web(contract.Check, func(mux *http.ServeMux, a auth.Authenticator) {
		outside := apitest.Edge(conn, r.Log, r.Send)
		outside.Signer = r.signer
		api.New(api.Config{Edge: outside, Signatures: r.verifier, Auth: apitest.Anywhere{Auth: a}}).Mount(mux)
	})
	return r
}

// queue handles the commands of a service.
func (r *rig) queue(service id.Name) *command.Workers {
	return command.NewWorkers(r.Conn, command.WorkersConfig{
		Service: service, Concurrency: 1, Logger: zerolog.Nop(),
		OnDead: func(_ context.Context, c cmd.Command, _ string) { r.dead <- c },
	}, r.handle)
}

// handle accepts the commands of people as services do.
func (r *rig) handle(_ context.Context, c cmd.Command, d command.Delivery) error {
	if r.broken.Load() {
		return command.Permanent(errors.New("the disk is full"))
	}
	if c.Signature != "" && (!r.verifier.Signed(c) || d.Accepted.Sub(c.Time).Abs() > 5*time.Minute) {
		return command.Permanent(errors.New("the signature is stale"))
	}
	r.handled <- c
	return nil
}

func order(tenant, name string) cmd.Command {
	t, err := id.ParseTenant(tenant)
	if err != nil {
		panic(err)
	}
	return cmd.Command{
		ID: name, Service: cmd.Worker, Verb: cmd.DoJob, Tenant: t, Key: id.EntityFromExternal("key of " + name),
		Data: json.RawMessage(`{"run_id":"` + name + `"}`),
	}
}

// message is a command of a person, which gateways send.
func message(who, name string) cmd.Command {
	c := order("default", name)
	c.Service, c.Verb, c.Principal = cmd.Pipeline, cmd.SendMessage, who
	return c
}

// die sends commands and waits until they were given up.
func (r *rig) die(all ...cmd.Command) {
	r.T.Helper()
	r.broken.Store(true)
	for _, c := range all {
		require.NoError(r.T, r.Send.Send(r.Ctx, c))
		next(r, r.dead)
	}
	r.broken.Store(false)
}

func next[T any](r *rig, from <-chan T) (out T) {
	r.T.Helper()
	select {
	case out = <-from:
	case <-r.Ctx.Done():
		require.FailNow(r.T, "nothing arrives")
	}
	return out
}

// get decodes the answer to a request, which has the status.
func get[T any](r *rig, status int, who, method, path string, body ...string) (out T) {
	r.T.Helper()
	a := r.web.Ask(who, method, "/api/v1"+path, strings.Join(body, ""), nil)
	require.Equal(r.T, status, a.Status, "%s %s: %s", method, path, a.Body)
	if len(a.Body) > 0 {
		require.NoError(r.T, json.Unmarshal([]byte(a.Body), &out), a.Body)
	}
	return out
}

// resend asks a replica of the worker to return a command to its queue, as the gateway does.
func resend(r *rig, in cmd.LetterRequest) (out cmd.ResendReply) {
	r.T.Helper()
	require.NoError(r.T, rpc.Call(r.Ctx, r.Conn, cmd.Letters, cmd.Worker, in, &out))
	return out
}
