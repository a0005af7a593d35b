package subject

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// IndexPosition is the subject of the positions in the shards up to which the index is complete.
const IndexPosition = "index.position"

// Index returns the subject of the log's summary in the index.
func (l Log) Index() string { return "index." + l.Name() }

// IndexFilter returns the filter of the summaries of a tenant's logs of a kind.
func IndexFilter(t id.Tenant, k id.Kind) string {
	return "index." + t.String() + "." + string(k) + ".*"
}

// IndexOf returns the filter of the summaries of all logs of a kind.
func IndexOf(k id.Kind) string { return "index.*." + string(k) + ".*" }

// ParseIndex parses a subject that Log.Index returns.
func ParseIndex(s string) (Log, error) {
	name, ok := strings.CutPrefix(s, "index.")
	if !ok {
		return Log{}, invalid("index", s)
	}
	return ParseName(name)
}

// KindFilter returns the filter of the logs of a kind in the partition, of all tenants.
func (p Partition) KindFilter(k id.Kind) string {
	return "evt." + p.String() + ".*." + string(k) + ".*"
}

// LiveType returns the filter of the announcements of one type in all logs of a kind.
func LiveType(k id.Kind, eventType string) string { return "live.*." + string(k) + ".*." + eventType }
