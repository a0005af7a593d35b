package payload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Delete deletes all objects of a log, and returns their number. It needs the right to purge the stream.
func (s *Store) Delete(ctx context.Context, log subject.Log) (int, error) {
	if _, err := s.open(ctx); err != nil {
		return 0, unavailable(err)
	}
	objects, err := s.list(ctx, log)
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

// list returns the names of the objects of a log, with the NATS ids of all their versions.
func (s *Store) list(ctx context.Context, log subject.Log) (map[string][]string, error) {
	feed, err := s.conn.Feed(ctx, subject.StreamPayloads, jetstream.DeliverAllPolicy, subject.PayloadMetas)
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	defer feed.Stop()
	objects := map[string][]string{}
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("list objects: %w", context.Cause(ctx))
		case <-feed.Over():
			return nil, errors.New("list objects: the feed has ended")
		case m := <-feed.Updates():
			if m == nil {
				return objects, nil
			}
			var info jetstream.ObjectInfo
			if json.Unmarshal(m.Data, &info) != nil || info.NUID == "" {
				continue
			}
			if of, _, err := subject.ParsePayloadName(info.Name); err == nil && of == log {
				objects[info.Name] = append(objects[info.Name], info.NUID)
			}
		}
	}
}
