package payload

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Copy copies all objects of a tenant to another installation, and returns their number. It checks each against its digest, and
// leaves out objects that are lost already.
func Copy(ctx context.Context, from, to *Store, t id.Tenant) (n int, err error) {
	found := map[string]uint64{} // sizes
	err = from.conn.Each(ctx, subject.StreamPayloads, false, func(m *bus.Message) error {
		var info jetstream.ObjectInfo
		if log, ok := described(m.Data, &info); ok && log.Tenant == t {
			found[info.Name] = info.Size
		}
		return nil
	}, subject.PayloadMetas)
	if err != nil {
		return 0, fmt.Errorf("list objects: %w", err)
	}
	for name, size := range found {
		log, digest, err := subject.ParsePayloadName(name)
		if err != nil {
			return n, err
		}
		ref := event.ObjectRef{Log: log.Local(), Digest: digest, Size: int64(size)} //nolint:gosec // far below any int
		data, err := from.Get(ctx, t, ref)
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.PayloadLost {
			continue
		}
		if err == nil {
			_, err = to.Put(ctx, log, data)
		}
		if err != nil {
			return n, fmt.Errorf("copy object %s: %w", name, err)
		}
		n++
	}
	return n, nil
}
