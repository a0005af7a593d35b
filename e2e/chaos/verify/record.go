package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Stored is one message of an event stream, as the server has it.
type Stored struct {
	event.Event
	Header uint64 // the position that the header claims
	Raw    string
}

// Record is everything that is stored, log by log, read past the code under test.
type Record struct {
	Logs  map[string][]Stored // in the order of the stream
	next  map[string]uint64   // stream sequence to continue from, by stream
	fresh map[string]bool     // logs that have grown since the last Fresh
}

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{Logs: map[string][]Stored{}, next: map[string]uint64{}, fresh: map[string]bool{}}
}

// Fresh returns the logs that have grown since it was last called.
func (r *Record) Fresh() map[string][]Stored {
	out := map[string][]Stored{}
	for name := range r.fresh {
		out[name] = r.Logs[name]
	}
	r.fresh = map[string]bool{}
	return out
}

const (
	// fetchWait bounds one look at a stream; stored messages come at once.
	fetchWait = 5 * time.Second
	// looks at a stream that has to show something: a consumer of a cluster may not be
	// there yet when it is asked.
	looks = 20
)

// Read reads what has been stored since the last Read.
func (r *Record) Read(ctx context.Context, js jetstream.JetStream) error {
	for _, p := range subject.DefaultPartitions.All() {
		if err := r.readStream(ctx, js, p.EventStream()); err != nil {
			return fmt.Errorf("read %s: %w", p.EventStream(), err)
		}
	}
	return nil
}

func (r *Record) readStream(ctx context.Context, js jetstream.JetStream, name string) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	end := stream.CachedInfo().State.LastSeq
	for look := 1; r.next[name] < end; look++ {
		if err = r.look(ctx, stream, name, end); err != nil && look == looks {
			return fmt.Errorf("nothing after %d of %d: %w", r.next[name], end, err)
		}
		if err != nil {
			if err := process.Rest(ctx, process.Poll); err != nil {
				return err
			}
		}
	}
	return nil
}

// look reads on, up to the end or a trouble.
func (r *Record) look(ctx context.Context, stream jetstream.Stream, name string, end uint64) error {
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.next[name] + 1,
	})
	if err != nil {
		return err
	}
	for r.next[name] < end {
		batch, err := consumer.Fetch(int(min(1024, end-r.next[name])), jetstream.FetchMaxWait(fetchWait))
		if err != nil {
			return err
		}
		before := r.next[name]
		for m := range batch.Messages() {
			if err := r.take(name, m); err != nil {
				return err
			}
		}
		if r.next[name] == before {
			return errors.Join(errors.New("nothing came"), batch.Error())
		}
	}
	return nil
}

func (r *Record) take(stream string, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	s := Stored{Raw: string(m.Data())}
	if err := json.Unmarshal(m.Data(), &s.Event); err != nil {
		return fmt.Errorf("%s: %w", m.Subject(), err)
	}
	if s.Header, err = strconv.ParseUint(m.Headers().Get(event.HeaderSeq), 10, 64); err != nil {
		return fmt.Errorf("%s: header of %s: %w", m.Subject(), s.ID, err)
	}
	r.Logs[s.Subject] = append(r.Logs[s.Subject], s)
	r.fresh[s.Subject] = true
	r.next[stream] = meta.Sequence.Stream
	return nil
}
