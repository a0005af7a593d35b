package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Stored is a summary and its place in the index.
type Stored struct {
	Log subject.Log
	Summary
	Sequence uint64
}

// Page is a part of the summaries of a tenant, the newest change first.
type Page struct {
	Summaries []Stored
	Total     int  // of the tenant
	More      bool // older ones follow: ask before the Sequence of the last one
}

// Page returns the newest summaries of a tenant's logs of the kind that lie before the sequence, want of them at most;
// 0 means the end of the index. It reads backwards from there and nothing else, whatever the number of summaries. A
// summary that does not change keeps its place, so pages that follow each other have each of these once.
func (x *Index) Page(ctx context.Context, t id.Tenant, k id.Kind, before uint64, want int) (Page, error) {
	p, err := x.newest.Read(ctx, subject.IndexFilter(t, k), before, want)
	out := Page{Total: p.Total, More: p.More}
	for _, e := range p.Entries {
		one, broken := summaryOf(e)
		if broken != nil {
			return out, broken
		}
		out.Summaries = append(out.Summaries, one)
	}
	return out, err
}

// Summary returns the summary of a log, which may be a second old, and whether the index has one.
func (x *Index) Summary(ctx context.Context, log subject.Log) (Stored, bool, error) {
	e, err := x.newest.Last(ctx, log.Index())
	switch {
	case errors.Is(err, newest.ErrNone):
		return Stored{}, false, nil
	case err != nil:
		return Stored{}, false, err
	}
	one, err := summaryOf(e)
	return one, err == nil && !one.Gone, err
}

// ParsePlace reads the member next of a page, which is a place in the index. The empty text is the end of the index, 0.
func ParsePlace(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fault.Newf(fault.InvalidField, "before must be the next value of an earlier page.").At("before").Wrap(err)
	}
	return n, nil
}

func summaryOf(e newest.Entry) (Stored, error) {
	log, err := subject.ParseIndex(e.Subject)
	if err != nil {
		return Stored{}, err
	}
	out := Stored{Log: log, Sequence: e.Sequence}
	if err := json.Unmarshal(e.Data, &out.Summary); err != nil {
		return out, fmt.Errorf("decode the summary of %s: %w", log, err)
	}
	return out, nil
}
