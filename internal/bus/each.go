package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// errCut means that a feed ended before its reader had all messages.
var errCut = errors.New("the feed has ended early")

// Each calls visit for every message that the stream has now and that matches the filters, oldest first. It ends with the first
// error. With newest, which needs a filter, it visits only the last message of each subject.
func (c *Conn) Each(ctx context.Context, stream string, newest bool, visit func(*Message) error, filters ...string) error {
	from := jetstream.DeliverAllPolicy
	if newest {
		from = jetstream.DeliverLastPerSubjectPolicy
	}
	feed, err := c.Feed(ctx, stream, from, filters...)
	if err != nil {
		return err
	}
	defer feed.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("read %s: %w", stream, context.Cause(ctx))
		case <-feed.Over():
			return fmt.Errorf("read %s: %w", stream, errCut)
		case m := <-feed.Updates():
			if m == nil {
				return nil
			}
			if err := visit(m); err != nil {
				return err
			}
		}
	}
}

// Count returns the number of messages of a stream that match the filters.
func (c *Conn) Count(ctx context.Context, stream string, filters ...string) (n uint64, err error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("look at stream %s: %w", stream, err)
	}
	for _, filter := range filters {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return 0, fmt.Errorf("look at stream %s: %w", stream, err)
		}
		for _, some := range info.State.Subjects {
			n += some
		}
	}
	return n, nil
}

// Purge removes the messages of a stream that match the filter.
func (c *Conn) Purge(ctx context.Context, stream, filter string) error {
	s, err := c.js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(filter))
	}
	if err != nil {
		return fmt.Errorf("purge %s of stream %s: %w", filter, stream, err)
	}
	return nil
}
