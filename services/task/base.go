package task

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/registry"
)

// source is the service in the events that it appends by itself.
const source = "waggle/task"

// base is what the parts of the service share.
type base struct {
	ledger   *ledger.Service[life, assignment.Env]
	cfg      Config
	deps     ledger.Deps
	registry *registry.Registry
	payloads *payload.Store
	acks     *acks.Acks // from the start on
}

// send sends a command in the service's name.
func (b *base) send(ctx context.Context, c cmd.Command) error { return b.ledger.Send(ctx, c) }

// once sends a command unless this process has sent it for this state of the task.
func (b *base) once(ctx context.Context, h *ledger.Log[life], key string, c cmd.Command) error {
	return h.Outbox.Once(key, func() error { return b.sendTo(ctx, h, c) })
}

// sendTo sends a command of the task's tenant, to the task itself unless another key,
// and to this service unless another one, is named.
func (b *base) sendTo(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	c.Tenant = h.Ref.Tenant
	if c.Key.IsZero() {
		c.Key = h.Ref.Entity
	}
	if c.Service == (id.Name{}) {
		c.Service = cmd.Task
	}
	return b.send(ctx, c)
}

// encode returns the JSON form of a command's data, which always has one: its raw
// members were valid when they arrived.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return raw
}

// data decodes the data of a request.
func data[T any](in cmd.ParticipantRequest) (T, error) {
	var v T
	if in.Tenant.IsZero() {
		return v, fault.New(fault.InvalidField).At("tenant")
	}
	if len(in.Data) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(in.Data, &v); err != nil {
		return v, fault.New(fault.InvalidField).At("data").Wrap(err)
	}
	return v, nil
}

func taskLog(t id.Tenant, task string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}
}
