package payload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// partSize is the size of the parts of an object, that of the client library.
const partSize = 128 << 10

// codeStoreFailed is the server's code for a full stream; nats.go does not name it.
const codeStoreFailed jetstream.ErrorCode = 10077

// overhead bounds the bytes that the server adds to each message, with its subject.
const overhead = 1 << 10

// errFull is like the server's refusal.
var errFull = &jetstream.APIError{Code: 503, ErrorCode: codeStoreFailed, Description: "maximum bytes exceeded"}

// write stores an object in the form of NATS' object store. It adds messages and removes none: the client library
// replaces the description of an object with a roll-up, and the stream does not allow roll-ups, because any writer
// could remove the objects of all others with one. The parts of an interrupted write expire as objects do.
func write(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, name string, data []byte) error {
	if err := room(ctx, stream, len(data)); err != nil {
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
		if _, err := js.Publish(ctx, subject.PayloadParts(info.NUID), part); err != nil {
			return fmt.Errorf("part %d: %w", info.Chunks+1, err)
		}
		info.Chunks++
	}
	description, err := json.Marshal(info)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, subject.PayloadMeta(name), description)
	return err
}

// room refuses data that does not fit, before its first part takes up what is left.
func room(ctx context.Context, stream jetstream.Stream, size int) error {
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	need := uint64(size + (size/partSize+2)*overhead) //nolint:gosec // a size is not negative
	if most := info.Config.MaxBytes; most > 0 && info.State.Bytes+need > uint64(most) {
		return errFull
	}
	return nil
}
