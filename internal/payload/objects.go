package payload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// partSize is the size of the parts of an object, that of the client library.
const partSize = 128 << 10

// overhead bounds the bytes that the server adds to each message, with its subject.
const overhead = 1 << 10

// errFull is like the server's refusal.
var errFull = &jetstream.APIError{Code: 503, ErrorCode: codeStoreFailed, Description: "maximum bytes exceeded"}

// write stores an object in the form of NATS' object store. It adds messages and removes none: the client library
// replaces the description of an object with a roll-up, and the stream does not allow roll-ups, because any writer
// could remove the objects of all others with one. What an interrupted write leaves behind expires as objects do.
func (s *Store) write(ctx context.Context, name string, data []byte) error {
	if err := s.room(ctx, len(data)); err != nil {
		return err
	}
	digest := sha256.New()
	_, _ = digest.Write(data)
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: partSize}},
		Bucket:     subject.BucketPayloads, NUID: rand.Text(), Size: uint64(len(data)),
		Digest: jetstream.GetObjectDigestValue(digest),
	}
	for part := range slices.Chunk(data, partSize) {
		if _, err := s.js.Publish(ctx, subject.PayloadParts(info.NUID), part); err != nil {
			return fmt.Errorf("part %d: %w", info.Chunks+1, err)
		}
		info.Chunks++
	}
	description, err := json.Marshal(info)
	if err != nil {
		return err
	}
	_, err = s.js.Publish(ctx, subject.PayloadMeta(name), description)
	return err
}

// room refuses data that does not fit, before its first part takes up what is left.
func (s *Store) room(ctx context.Context, size int) error {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return err
	}
	need := uint64(size + (size/partSize+2)*overhead) //nolint:gosec // a size is not negative
	if most := info.Config.MaxBytes; most > 0 && info.State.Bytes+need > uint64(most) {
		return errFull
	}
	return nil
}

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
