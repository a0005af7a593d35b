package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// ahead bounds the records of a chain that wait for an earlier one: several times the records that a writer has in
	// flight, the only ones that can overtake each other.
	ahead = 8 * inFlight
	// nearlyFull is the part of the bound above which a log may have dropped records before their time.
	nearlyFull = 0.9
)

// Report is what a check has found.
type Report struct {
	Records  int       `json:"records"`
	Chains   int       `json:"chains"`
	Unlinked int       `json:"unlinked"`         // records of earlier versions, without a chain
	First    uint64    `json:"first"`            // sequence of the oldest record; records before it have expired
	Last     uint64    `json:"last"`             // sequence of the newest record
	Oldest   time.Time `json:"oldest"`           // time of the oldest record
	Newest   time.Time `json:"newest"`           // time of the newest record
	Begun    []string  `json:"begun,omitempty"`  // chains whose beginning has expired
	Lost     int       `json:"lost"`             // records that their writer reported as lost
	Faults   []Fault   `json:"faults,omitempty"` // gaps, and changed, moved or missing records
}

// Fault is a place where the log is not whole.
type Fault struct {
	Record uint64 `json:"record,omitempty"` // its sequence in the log; 0: the fault is of a whole chain
	Text   string `json:"text"`
	Stored string `json:"stored,omitempty"` // the subject of a record that was changed: it may name another tenant
}

// String returns the fault for a reader who may see all tenants.
func (f Fault) String() string {
	if f.Stored == "" {
		return f.Text
	}
	return f.Text + ": it is stored as " + f.Stored
}

// Verify checks the chains of all records. It changes nothing. The newest record of each chain is not covered by a
// hash yet: only its place is.
func Verify(ctx context.Context, conn *bus.Conn) (Report, error) {
	var c Check
	_, err := c.Continue(ctx, conn, math.MaxInt)
	return c.Report, err
}

// Check is a check of the log in parts. Its JSON form holds all that the next part needs. The zero Check begins with the oldest record.
type Check struct {
	Report
	Links   map[string]*links `json:"links,omitempty"` // by chain
	Expired bool              `json:"expired,omitempty"`
	Next    uint64            `json:"next,omitempty"` // sequence of the next record to check; 0: the check has not begun
}

// Continue checks at most the given number of records, up to the one that was the newest when the check began. It reports whether the check
// is done.
func (v *Check) Continue(ctx context.Context, conn *bus.Conn, records int) (done bool, err error) {
	s, err := conn.JS().Stream(ctx, subject.StreamAudit)
	if err != nil {
		return false, fmt.Errorf("open the audit log: %w", err)
	}
	if v.Next == 0 {
		v.begin(s.CachedInfo())
	}
	if err := v.expire(ctx, s); err != nil {
		return false, err
	}
	for read := 0; v.Next <= v.Last; read++ {
		if read == records {
			return false, nil
		}
		if err := v.read(ctx, s); err != nil {
			return false, err
		}
	}
	v.end(s.CachedInfo())
	return true, nil
}

// Valid returns an error if a stored check is not one that Continue has left.
func (v *Check) Valid() error {
	if v.Next == 0 || v.Next > v.Last {
		return errors.New("the check is not in progress")
	}
	for id, c := range v.Links {
		if c == nil {
			return fmt.Errorf("chain %q has no state", id)
		}
	}
	return nil
}

func (v *Check) begin(info *jetstream.StreamInfo) {
	st := info.State
	v.Expired, v.Next = st.FirstSeq > 1, max(st.FirstSeq, 1)
	v.First, v.Last, v.Oldest, v.Newest = st.FirstSeq, st.LastSeq, st.FirstTime, st.LastTime
}

// read checks the next record that the log has.
func (v *Check) read(ctx context.Context, s jetstream.Stream) error {
	m, err := s.GetMsg(ctx, v.Next, jetstream.WithGetMsgSubject(subject.AuditAll))
	found := v.Last + 1
	switch {
	case err == nil:
		found = min(m.Sequence, found)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Errorf("read the audit log: %w", err)
	}
	if found > v.Next {
		if err := v.expire(ctx, s); err != nil {
			return err
		}
		if found > v.Next {
			v.fault(v.Next, "records %d to %d are missing", v.Next, found-1)
		}
	}
	v.Next = found + 1
	if found <= v.Last {
		v.take(m)
	}
	return nil
}

// expire continues with the oldest record if the log has dropped the next ones since the check began. The record of a chain that follows
// them is as its beginning.
func (v *Check) expire(ctx context.Context, s jetstream.Stream) error {
	info, err := s.Info(ctx)
	if err != nil {
		return fmt.Errorf("look at the audit log: %w", err)
	}
	if info.State.FirstSeq <= v.Next {
		return nil
	}
	v.Expired, v.Next = true, info.State.FirstSeq
	for _, c := range v.Links {
		c.Row, c.Begun = link{}, false
	}
	return nil
}

// link is a record in a chain.
type link struct {
	Sequence uint64 `json:"s"`
	Number   int64  `json:"n"`
	Previous string `json:"p,omitempty"`
	Hash     string `json:"h"`
}

// links is what is known of a chain.
type links struct {
	Row     link           `json:"row"`               // the newest in an unbroken row
	Begun   bool           `json:"begun,omitempty"`   // Row is set
	Newest  int64          `json:"newest"`            // highest number
	Waiting map[int64]link `json:"waiting,omitempty"` // came before an earlier one
	Gaps    [][2]int64     `json:"gaps,omitempty"`
	Lost    map[int64]bool `json:"lost,omitempty"` // reported by the writer
}

func (v *Check) fault(record uint64, format string, args ...any) {
	v.Faults = append(v.Faults, Fault{Record: record, Text: fmt.Sprintf(format, args...)})
}

// take checks one record, in the order of the log.
func (v *Check) take(m *jetstream.RawStreamMsg) {
	v.Records++
	var r audit.Record
	if err := json.Unmarshal(m.Data, &r); err != nil {
		v.fault(m.Sequence, "record %d is not readable", m.Sequence)
		return
	}
	if t, action, err := subject.ParseAudit(m.Subject); err != nil || t.String() != r.Tenant || action.String() != r.Action {
		v.Faults = append(v.Faults, Fault{Record: m.Sequence, Text: fmt.Sprintf("record %d was changed", m.Sequence), Stored: m.Subject})
	}
	if r.Chain == "" {
		if v.Unlinked++; len(v.Links) > 0 {
			v.fault(m.Sequence, "record %d belongs to no chain", m.Sequence)
		}
		return
	}
	c := v.Links[r.Chain]
	if c == nil {
		c = &links{}
		if v.Links == nil {
			v.Links = map[string]*links{}
		}
		v.Links[r.Chain] = c
		v.Chains++
	}
	if r.Number < c.Newest && m.Time.Sub(r.Time) > slack {
		v.fault(m.Sequence, "record %d, number %d of chain %s, was moved behind later ones", m.Sequence, r.Number, r.Chain)
	}
	if r.After >= m.Sequence {
		v.fault(m.Sequence, "record %d, the first of chain %s, was moved: it follows record %d", m.Sequence, r.Chain, r.After)
	}
	c.Newest = max(c.Newest, r.Number)
	c.prepare()
	for _, n := range r.Numbers {
		c.Lost[n] = true
	}
	v.add(r.Chain, c, link{m.Sequence, r.Number, r.Previous, hashOf(m.Data)})
}

// prepare makes the maps, which a stored check lacks while they are empty.
func (c *links) prepare() {
	if c.Waiting == nil {
		c.Waiting = map[int64]link{}
	}
	if c.Lost == nil {
		c.Lost = map[int64]bool{}
	}
}

// add puts a link into its chain.
func (v *Check) add(id string, c *links, l link) {
	_, twice := c.Waiting[l.Number]
	if twice || l.Number < 1 || c.Begun && l.Number <= c.Row.Number {
		v.fault(l.Sequence, "record %d repeats number %d of chain %s", l.Sequence, l.Number, id)
		return
	}
	c.Waiting[l.Number] = l
	if len(c.Waiting) > ahead {
		v.skip(id, c)
	}
	v.join(id, c)
}

// join moves the waiting links that follow each other to the end of the row.
func (v *Check) join(id string, c *links) {
	for {
		l, ok := c.Waiting[c.Row.Number+1]
		if !ok {
			return
		}
		delete(c.Waiting, l.Number)
		if l.Previous != c.Row.Hash {
			v.fault(c.Row.Sequence, "record %d, number %d of chain %s, was changed, or record %d that follows it", c.Row.Sequence, c.Row.Number, id, l.Sequence)
		}
		c.Row, c.Begun = l, true
	}
}

// skip continues the row after a gap. The beginning of a chain may have expired.
func (v *Check) skip(id string, c *links) {
	first := slices.Min(slices.Collect(maps.Keys(c.Waiting)))
	if !c.Begun && v.Expired {
		v.Begun = append(v.Begun, fmt.Sprintf("chain %s begins with number %d", id, first))
	} else {
		c.Gaps = append(c.Gaps, [2]int64{c.Row.Number + 1, first - 1})
	}
	c.Row, c.Begun = c.Waiting[first], true
	delete(c.Waiting, first)
	v.join(id, c)
}

// gap names the numbers of a chain that are missing, other than those that their writer reported as lost.
func (v *Check) gap(id string, c *links, from, to int64) {
	missing := func(to int64) {
		switch {
		case from == to:
			v.fault(0, "number %d of chain %s is missing", from, id)
		case from < to:
			v.fault(0, "numbers %d to %d of chain %s are missing", from, to, id)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.Lost)) {
		if n >= from && n <= to {
			v.Lost++
			missing(n - 1)
			from = n + 1
		}
	}
	missing(to)
}

// end reports what is missing in the end.
func (v *Check) end(info *jetstream.StreamInfo) {
	for _, id := range slices.Sorted(maps.Keys(v.Links)) {
		c := v.Links[id]
		for len(c.Waiting) > 0 {
			v.skip(id, c)
		}
		for _, gap := range c.Gaps {
			v.gap(id, c, gap[0], gap[1])
		}
	}
	cfg := info.Config
	full := cfg.MaxBytes > 0 && float64(info.State.Bytes) > nearlyFull*float64(cfg.MaxBytes)
	if v.Expired && !full && (cfg.MaxAge == 0 || v.Records == 0 || time.Since(v.Oldest) < cfg.MaxAge-time.Hour) && v.Records > 0 {
		v.fault(v.First, "the records before %d are missing, and were not old enough to expire", v.First)
	}
}
