package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Look returns the place of a tenant as the control cluster has it now.
func (d *Directory) Look(ctx context.Context, t id.Tenant) (Place, error) {
	e, err := d.kv.Get(ctx, t.String())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return Place{Cell: d.usual}, nil
	case err != nil:
		return Place{}, fmt.Errorf("look up the cell of %s: %w", t, err)
	}
	p, ok := follower{}.Decode(e.Key(), e.Value())
	if !ok {
		return Place{}, fmt.Errorf("the entry of %s is not readable", t)
	}
	p.Revision = e.Revision()
	return p, nil
}

// Assign gives a tenant without an entry its cell. It returns ErrAssigned if the tenant has an entry: a move changes that.
func (d *Directory) Assign(ctx context.Context, t id.Tenant, cell id.Name) error {
	_, err := d.write(ctx, t, Place{Cell: cell})
	if errors.Is(err, ErrChanged) {
		return fmt.Errorf("assign %s: %w", t, ErrAssigned)
	}
	return err
}

// Begin marks a tenant as moving to a cell, and returns its new place. It returns ErrMoving if the tenant moves already, and
// ErrChanged if another process was faster.
func (d *Directory) Begin(ctx context.Context, t id.Tenant, to id.Name) (Place, error) {
	p, err := d.Look(ctx, t)
	switch {
	case err != nil:
		return p, err
	case p.Moving():
		return p, fmt.Errorf("move %s: %w, from %s to %s", t, ErrMoving, p.Cell, p.To)
	case p.Cell == to:
		return p, fmt.Errorf("move %s: the cell %s already serves it", t, to)
	}
	p.To = to
	return d.write(ctx, t, p)
}

// Finish ends the move that Begin returned: the tenant's new cell serves it from now on.
func (d *Directory) Finish(ctx context.Context, t id.Tenant, p Place) (Place, error) {
	return d.write(ctx, t, Place{Cell: p.To, Revision: p.Revision})
}

// Abandon aborts the move that Begin returned: the tenant's old cell continues to serve it.
func (d *Directory) Abandon(ctx context.Context, t id.Tenant, p Place) (Place, error) {
	return d.write(ctx, t, Place{Cell: p.Cell, Revision: p.Revision})
}

// write replaces the entry with the revision of the place, or creates it for 0.
func (d *Directory) write(ctx context.Context, t id.Tenant, p Place) (Place, error) {
	p.Since = time.Now().UTC()
	value, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	if p.Revision == 0 {
		p.Revision, err = d.kv.Create(ctx, t.String(), value)
	} else {
		p.Revision, err = d.kv.Update(ctx, t.String(), value, p.Revision)
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); errors.Is(err, jetstream.ErrKeyExists) ||
		ok && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return p, fmt.Errorf("the cell of %s: %w", t, ErrChanged)
	}
	if err != nil {
		return p, fmt.Errorf("write the cell of %s: %w", t, err)
	}
	return p, nil
}
