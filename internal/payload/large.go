package payload

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Shrink stores members of the data that together are too large to stay inline, and replaces them with references.
// The objects belong to the log. It reports whether it stored any.
func (s *Store) Shrink(ctx context.Context, log subject.Log, data event.Large) (changed bool, err error) {
	room := Inline
	for _, p := range data.Payloads() {
		if size := escaped(*p.Data); size <= room {
			room -= size
			continue
		}
		if *p.Ref, err = s.Put(ctx, log, *p.Data); err != nil {
			return changed, err
		}
		*p.Data, changed = json.RawMessage("null"), true
	}
	return changed, nil
}

// Fill replaces the references in a tenant's data with the objects. Its errors are those of Get.
func (s *Store) Fill(ctx context.Context, tenant id.Tenant, data event.Large) error {
	for _, p := range data.Payloads() {
		if *p.Ref == nil {
			continue
		}
		whole, err := s.Get(ctx, tenant, **p.Ref)
		if err != nil {
			return err
		}
		*p.Data, *p.Ref = whole, nil
	}
	return nil
}

// escaped returns the most bytes that data takes where encoding/json escapes it for HTML.
func escaped(data json.RawMessage) int {
	const more = len(`\u003c`) - 1
	n := len(data)
	if n > Inline {
		return n
	}
	for _, c := range data {
		switch c {
		case '<', '>', '&':
			n += more
		case 0xe2: // perhaps a line separator, which has three bytes
			n += more - 2
		}
	}
	return n
}

// Show is Fill for a reader: it replaces lost data with the fault, and logs the lost object for operators. Its other
// errors mean that the data is unavailable now.
func (s *Store) Show(ctx context.Context, tenant id.Tenant, data event.Large) error {
	err := s.Fill(ctx, tenant, data)
	if !errors.Is(err, fault.New(fault.PayloadLost)) {
		return err
	}
	s.log.Error().Err(err).Stringer("tenant", tenant).Msg("stored data lost")
	miss(data)
	return nil
}

// Event returns an event of a tenant's log in the form for a reader. Events without references are unchanged.
func (s *Store) Event(ctx context.Context, tenant id.Tenant, e event.Event) (event.Event, error) {
	data, err := event.Refers(e)
	if err != nil || data == nil {
		return e, nil //nolint:nilerr // The reader handles data that cannot be decoded.
	}
	if err := s.Show(ctx, tenant, data); err != nil {
		return e, err
	}
	return e.With(data)
}

// miss puts the fault in the place of lost data. An outcome without its result is a failure.
func miss(data event.Large) {
	f := fault.New(fault.PayloadLost)
	why, err := json.Marshal(map[string]string{"error": f.Public(), "code": string(f.Code)})
	if err != nil { // two strings always have a JSON form
		why = json.RawMessage("null")
	}
	code, text := string(f.Code), f.Public()
	for _, p := range data.Payloads() {
		if *p.Ref != nil {
			*p.Data, *p.Ref = why, nil
		}
	}
	switch d := data.(type) {
	case *event.TaskFinishedData:
		d.Status, d.Result, d.Code, d.Error = event.TaskEndFailed, nil, code, text
	case *event.ChildFinishedData:
		d.Status, d.Result, d.Code, d.Error = event.TaskEndFailed, nil, code, text
	case *event.CallFinishedData:
		d.Status, d.Result, d.Code, d.Error = "error", nil, code, text
	case *command.TaskView:
		d.Status, d.Result, d.Code, d.Error = event.TaskEndFailed, nil, code, text
	}
}
