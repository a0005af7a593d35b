package payload

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Delete deletes all objects of a log, and returns their number. It needs the right to purge the stream.
func (s *Store) Delete(ctx context.Context, log subject.Log) (int, error) {
	return s.remove(ctx, func(of subject.Log) bool { return of == log })
}

// DeleteTenant deletes all objects of a tenant, as Delete does.
func (s *Store) DeleteTenant(ctx context.Context, t id.Tenant) (int, error) {
	return s.remove(ctx, func(of subject.Log) bool { return of.Tenant == t })
}

// remove deletes all objects of the logs that match.
func (s *Store) remove(ctx context.Context, match func(subject.Log) bool) (int, error) {
	if _, err := s.open(ctx); err != nil {
		return 0, unavailable(err)
	}
	objects, err := s.list(ctx, match)
	if err != nil {
		return 0, unavailable(err)
	}
	n := 0
	for name, parts := range objects {
		// The description goes last: a repeated Delete finds the parts that are left.
		for _, part := range parts {
			if err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject.PayloadParts(part))); err != nil {
				return n, unavailable(fmt.Errorf("delete a part of object %s: %w", name, err))
			}
		}
		if err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject.PayloadMeta(name))); err != nil {
			return n, unavailable(fmt.Errorf("delete object %s: %w", name, err))
		}
		n++
	}
	return n, nil
}

// described decodes the description of an object, and returns the log that the object belongs to.
func described(data []byte, info *jetstream.ObjectInfo) (subject.Log, bool) {
	if json.Unmarshal(data, info) != nil || info.NUID == "" {
		return subject.Log{}, false
	}
	log, _, err := subject.ParsePayloadName(info.Name)
	return log, err == nil
}

// list returns the names of the objects of the logs that match, with the NATS ids of all their versions.
func (s *Store) list(ctx context.Context, match func(subject.Log) bool) (map[string][]string, error) {
	objects := map[string][]string{}
	err := s.conn.Each(ctx, subject.StreamPayloads, false, func(m *bus.Message) error {
		var info jetstream.ObjectInfo
		if of, ok := described(m.Data, &info); ok && match(of) {
			objects[info.Name] = append(objects[info.Name], info.NUID)
		}
		return nil
	}, subject.PayloadMetas)
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return objects, nil
}
