package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// chunkSize is the server's own default: it fits into a message of the default payload limit (1 MiB).
	chunkSize = 128 << 10
	// windowSize bounds the data in flight: the server's default. It is below the 64 MiB after which a server disconnects a
	// slow client, even with all shards at once.
	windowSize = 2 << 20
	// silence is the longest wait for the next chunk. The server drops a client after 10 s without an answer, so the server
	// reaches its limit first.
	silence = 30 * time.Second
	// unknownPause is the pause before a part that did not reach any server is sent again.
	unknownPause = 50 * time.Millisecond
	// apiMaxWait bounds one request: a leader election takes up to 9 s.
	apiMaxWait = 15 * time.Second
)

// apiError is an error response of JetStream.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// streamState holds the used part of a stream's state.
type streamState struct {
	Messages uint64 `json:"messages"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
}

// ask sends a request to JetStream and decodes the answer.
func ask(ctx context.Context, c *bus.Conn, subj string, req, resp any) error {
	ctx, cancel := context.WithTimeout(ctx, apiMaxWait)
	defer cancel()
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	m, err := c.NATS().RequestWithContext(ctx, subj, body)
	if err != nil {
		return fmt.Errorf("%s: %w", subj, err)
	}
	return answer(m.Data, resp)
}

// answer decodes a response of JetStream, or returns its error.
func answer(data []byte, resp any) error {
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &failed); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(data, resp)
}

// save copies one stream into a file.
func save(ctx context.Context, c *bus.Conn, dir, name string) (Stream, error) {
	s := Stream{Name: name, File: name + ".snapshot", Taken: time.Now().UTC()}
	inbox := c.NATS().NewInbox()
	sub, err := c.NATS().SubscribeSync(inbox)
	if err != nil {
		return s, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil { // the window bounds it
		return s, err
	}
	var begun struct {
		Config json.RawMessage `json:"config"`
		State  json.RawMessage `json:"state"`
	}
	err = ask(ctx, c, "$JS.API.STREAM.SNAPSHOT."+name, map[string]any{
		"deliver_subject": inbox, "no_consumers": true, "jsck": true, "chunk_size": chunkSize, "window_size": windowSize,
	}, &begun)
	if err != nil {
		return s, err
	}
	var state streamState
	if err := json.Unmarshal(begun.State, &state); err != nil {
		return s, fmt.Errorf("state of the stream: %w", err)
	}
	s.Config, s.State = begun.Config, begun.State
	s.Messages, s.FirstSeq, s.LastSeq = state.Messages, state.FirstSeq, state.LastSeq
	s.Bytes, s.SHA256, err = receive(ctx, c, sub, filepath.Join(dir, s.File))
	return s, err
}

// receive writes the chunks of a snapshot into a file until the server marks the end.
func receive(ctx context.Context, c *bus.Conn, sub *nats.Subscription, file string) (n int64, sum string, err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the operator's folder
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := newHash()
	w := bufio.NewWriterSize(io.MultiWriter(f, h), chunkSize)
	for {
		m, err := next(ctx, sub)
		if err != nil {
			return n, "", err
		}
		if len(m.Data) == 0 {
			if err := finished(m); err != nil {
				return n, "", err
			}
			break
		}
		written, err := w.Write(m.Data)
		n += int64(written)
		if err != nil {
			return n, "", err
		}
		if m.Reply == "" {
			continue
		}
		if err := c.NATS().Publish(m.Reply, nil); err != nil { // opens the window
			return n, "", err
		}
	}
	err = errors.Join(w.Flush(), f.Sync())
	return n, h.String(), err
}

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("wait for the next part of the snapshot: %w", err)
	}
	return m, nil
}

// finished returns the reason why a snapshot ended, nil if it is complete.
func finished(m *nats.Msg) error {
	status := m.Header.Get("Status")
	if status == "" || status == "204" {
		return nil
	}
	return fmt.Errorf("the server ended the snapshot: %s %s", status, m.Header.Get("Description"))
}

// restore creates one stream from a file. The caller chooses the number of copies.
func restore(ctx context.Context, c *bus.Conn, dir string, s Stream, replicas int) error {
	var cfg map[string]json.RawMessage
	if err := json.Unmarshal(s.Config, &cfg); err != nil {
		return fmt.Errorf("configuration in the manifest: %w", err)
	}
	cfg["num_replicas"] = json.RawMessage(fmt.Sprint(max(replicas, 1)))
	delete(cfg, "placement") // other servers may hold it now
	var begun struct {
		Deliver string `json:"deliver_subject"`
	}
	err := ask(ctx, c, "$JS.API.STREAM.RESTORE."+s.Name, map[string]any{"config": cfg, "state": s.State}, &begun)
	if err != nil {
		return err
	}
	made, err := send(ctx, c, begun.Deliver, filepath.Join(dir, s.File))
	if err != nil {
		return err
	}
	if made.Messages < s.Messages && s.kept(cfg) || made.LastSeq < s.LastSeq {
		return fmt.Errorf("it has %d messages up to seq %d, the backup has %d up to seq %d", made.Messages, made.LastSeq, s.Messages, s.LastSeq)
	}
	return nil
}

// kept reports whether a stream keeps its messages regardless of age, and removes none of them: other streams discard at once
// the messages that have expired since the backup, or were being removed while it was taken.
func (s Stream) kept(cfg map[string]json.RawMessage) bool {
	age := string(cfg["max_age"])
	return (age == "" || age == "0") && string(cfg["allow_msg_schedules"]) != "true" && string(cfg["allow_msg_ttl"]) != "true"
}

// send sends the file in parts; the server answers every part, and the last, empty one with the created stream.
func send(ctx context.Context, c *bus.Conn, to, file string) (state streamState, err error) {
	f, err := os.Open(file) //nolint:gosec // in the operator's folder
	if err != nil {
		return state, err
	}
	defer func() { _ = f.Close() }()
	part := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(f, part)
		if n > 0 {
			m, err := request(ctx, c, to, part[:n])
			if err != nil {
				return state, err
			}
			if len(m.Data) > 0 { // only a refusal has content here
				return state, answer(m.Data, &struct{}{})
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return state, err
		}
	}
	m, err := request(ctx, c, to, nil)
	if err != nil {
		return state, err
	}
	var made struct {
		State streamState `json:"state"`
	}
	err = answer(m.Data, &made)
	return made.State, err
}

// request hands a part over. In a cluster the answer to the request for a restore may arrive before all servers know
// who takes the parts: a part that did not reach any server is sent again.
func request(ctx context.Context, c *bus.Conn, to string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	pause := time.NewTicker(unknownPause)
	defer pause.Stop()
	for {
		m, err := c.NATS().RequestWithContext(ctx, to, data)
		if err == nil {
			return m, nil
		}
		if errors.Is(err, nats.ErrNoResponders) {
			select {
			case <-pause.C:
				continue
			case <-ctx.Done():
			}
		}
		return nil, fmt.Errorf("hand the snapshot over: %w", err)
	}
}

// sum is a SHA-256 hash with a String method.
type sum struct{ hash.Hash }

func newHash() sum { return sum{sha256.New()} }

func (s sum) String() string { return hex.EncodeToString(s.Sum(nil)) }

const (
	manifestName = "manifest.json"
	// formatVersion is the version of the manifest; the files have JetStream's own format.
	formatVersion = 1
	// parallel snapshots run at once: as many as the event log usually has shards, so that the snapshots of all shards begin within
	// milliseconds of each other.
	parallel = int(subject.DefaultPartitions)
)

// Stream is a stream, or the stream behind a bucket, in a backup.
type Stream struct {
	Name     string          `json:"name"`
	File     string          `json:"file"` // in the manifest's folder
	Bytes    int64           `json:"bytes"`
	SHA256   string          `json:"sha256"`
	Taken    time.Time       `json:"taken"` // by the local clock: the copy holds everything stored before
	Messages uint64          `json:"messages"`
	FirstSeq uint64          `json:"first_seq"`
	LastSeq  uint64          `json:"last_seq"`
	Config   json.RawMessage `json:"config"` // the stream's configuration, as the server wrote it
	State    json.RawMessage `json:"state"`
}
