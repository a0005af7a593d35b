package bus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Codes of a stream whose limit does not fit: the server reserves the limits of all.
const (
	storageExceeded jetstream.ErrorCode = 10047 // of the server
	accountExceeded jetstream.ErrorCode = 10002 // of the account
)

// notSetUp is the error of a stream that could not be set up. Where the server has no room for it, it says which settings ask for so
// much.
func (t Topology) notSetUp(name string, all []jetstream.StreamConfig, err error) error {
	api, _ := errors.AsType[*jetstream.APIError](err)
	if api == nil || !slices.Contains([]jetstream.ErrorCode{storageExceeded, accountExceeded, codeNoResources}, api.ErrorCode) {
		return fmt.Errorf("set up stream %s: %w", name, err)
	}
	var sum, own int64
	for _, s := range all {
		sum += max(0, s.MaxBytes)
		if s.Name == name {
			own = max(0, s.MaxBytes)
		}
	}
	settings := []string{"audit.max_bytes (" + mebibytes(t.AuditMaxBytes) + ")"}
	if t.EventMaxBytes > 0 {
		settings = append(settings, fmt.Sprintf("nats.event_max_bytes (%s in each of %d streams)", mebibytes(t.EventMaxBytes), t.shards(all)))
	}
	if t.ObjectMaxBytes > 0 {
		settings = append(settings, "nats.object_max_bytes ("+mebibytes(t.ObjectMaxBytes)+")")
	}
	return fmt.Errorf("the NATS server has no room for stream %s: it reserves %s, and all streams together %s. Free space on the disk of the server's store, raise its max_file_store, or lower %s: %w",
		name, mebibytes(own), mebibytes(sum), strings.Join(settings, ", "), err)
}

// shards is how many of the streams have the limit of events.
func (t Topology) shards(all []jetstream.StreamConfig) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(s jetstream.StreamConfig) bool { return s.MaxBytes != t.EventMaxBytes }))
}

func mebibytes(n int64) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%d MiB", (n+mebibyte-1)/mebibyte)
}
