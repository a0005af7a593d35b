package audit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pageRead is the number of records that one read returns, and maxScan bounds the records that one page looks at. A
	// filter that few of them pass makes a page short or empty, and its Next continues.
	pageRead = 200
	maxScan  = 5000
)

// Stored is a record and its place in the log.
type Stored struct {
	Sequence uint64
	audit.Record
}

// Page is a part of the selected records, the newest first.
type Page struct {
	Records []Stored
	Next    uint64 // ask before it for the next page; 0: the log has no more
}

// ReadPage returns the newest records of a tenant that the query selects and that lie before the sequence, want of them at
// most; 0 means the end of the log. Records without a tenant belong to none.
func ReadPage(ctx context.Context, log *eventlog.Store, t id.Tenant, q Query, before uint64, want int) (Page, error) {
	reader := newest.Reader{Log: log, Stream: subject.StreamAudit}
	filter := subject.AuditOf(t)
	if action, err := id.ParseName(q.Action); err == nil {
		filter = subject.Audit(t, action) // the bus does the work
	}
	var out Page
	var err error
	out.Next, err = newest.Search[newest.Entry]{
		Limit: want, Least: pageRead, Most: maxScan, AtOnce: pageRead,
		Place: func(e *newest.Entry) uint64 { return e.Sequence },
		Read: func(before uint64, _ int) (newest.Part[newest.Entry], error) {
			part, err := reader.Read(ctx, filter, before, pageRead)
			return newest.Part[newest.Entry]{Entries: part.Entries, Looked: len(part.Entries), More: part.More}, err
		},
		Take: func(e *newest.Entry) (newest.Verdict, error) {
			r := Stored{Sequence: e.Sequence}
			if err := json.Unmarshal(e.Data, &r.Record); err != nil {
				return newest.Skipped, fmt.Errorf("record %d of the audit log: %w", e.Sequence, err)
			}
			if !q.matches(r.Record) {
				return newest.Skipped, nil
			}
			out.Records = append(out.Records, r)
			return newest.Taken, nil
		},
	}.Before(before)
	return out, err
}
