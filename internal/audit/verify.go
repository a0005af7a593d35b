package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// Report is what Verify has found.
type Report struct {
	Records  int
	Chains   int
	Unlinked int       // records of earlier versions, without a chain
	First    uint64    // sequence of the oldest record; records before it have expired
	Last     uint64    // sequence of the newest record
	Oldest   time.Time // time of the oldest record
	Begun    []string  // chains whose beginning has expired
	Lost     int       // records that their writer reported as lost
	Faults   []string  // gaps, and changed, moved or missing records
}

// Verify checks the chains of all records. It changes nothing. The newest record of each chain is not covered by a
// hash yet: only its place is.
func Verify(ctx context.Context, conn *bus.Conn) (Report, error) {
	s, err := conn.JS().Stream(ctx, subject.StreamAudit)
	if err != nil {
		return Report{}, fmt.Errorf("open the audit log: %w", err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("look at the audit log: %w", err)
	}
	v := verifier{chains: map[string]*links{}, expired: info.State.FirstSeq > 1}
	v.First, v.Last, v.Oldest = info.State.FirstSeq, info.State.LastSeq, info.State.FirstTime
	for next := max(v.First, 1); next <= v.Last; {
		m, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject.AuditAll))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			v.fault("records %d to %d are missing", next, v.Last)
			break
		}
		if err != nil {
			return Report{}, fmt.Errorf("read the audit log: %w", err)
		}
		if m.Sequence > next {
			v.fault("records %d to %d are missing", next, m.Sequence-1)
		}
		next = m.Sequence + 1
		v.take(m)
	}
	v.end(info)
	return v.Report, nil
}

// link is a record in a chain.
type link struct {
	sequence       uint64
	number         int64
	previous, hash string
}

// links is what is known of a chain.
type links struct {
	last    link           // the newest in an unbroken row
	begun   bool           // last is set
	newest  int64          // highest number
	waiting map[int64]link // came before an earlier one
	gaps    [][2]int64
	lost    map[int64]bool // reported by the writer
}

type verifier struct {
	Report
	chains  map[string]*links
	expired bool // the log has dropped its beginning
}

func (v *verifier) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

// take checks one record, in the order of the log.
func (v *verifier) take(m *jetstream.RawStreamMsg) {
	v.Records++
	var r audit.Record
	if err := json.Unmarshal(m.Data, &r); err != nil {
		v.fault("record %d is not readable", m.Sequence)
		return
	}
	if t, action, err := subject.ParseAudit(m.Subject); err != nil || t.String() != r.Tenant || action.String() != r.Action {
		v.fault("record %d was changed: it is stored as %s", m.Sequence, m.Subject)
	}
	if r.Chain == "" {
		if v.Unlinked++; len(v.chains) > 0 {
			v.fault("record %d belongs to no chain", m.Sequence)
		}
		return
	}
	c := v.chains[r.Chain]
	if c == nil {
		c = &links{waiting: map[int64]link{}, lost: map[int64]bool{}}
		v.chains[r.Chain] = c
		v.Chains++
	}
	if r.Number < c.newest && m.Time.Sub(r.Time) > slack {
		v.fault("record %d, number %d of chain %s, was moved behind later ones", m.Sequence, r.Number, r.Chain)
	}
	if r.After >= m.Sequence {
		v.fault("record %d, the first of chain %s, was moved: it follows record %d", m.Sequence, r.Chain, r.After)
	}
	c.newest = max(c.newest, r.Number)
	for _, n := range r.Numbers {
		c.lost[n] = true
	}
	v.add(r.Chain, c, link{m.Sequence, r.Number, r.Previous, hashOf(m.Data)})
}

// add puts a link into its chain.
func (v *verifier) add(id string, c *links, l link) {
	_, twice := c.waiting[l.number]
	if twice || l.number < 1 || c.begun && l.number <= c.last.number {
		v.fault("record %d repeats number %d of chain %s", l.sequence, l.number, id)
		return
	}
	c.waiting[l.number] = l
	if len(c.waiting) > ahead {
		v.skip(id, c)
	}
	v.join(id, c)
}

// join moves the waiting links that follow each other to the end of the row.
func (v *verifier) join(id string, c *links) {
	for {
		l, ok := c.waiting[c.last.number+1]
		if !ok {
			return
		}
		delete(c.waiting, l.number)
		if l.previous != c.last.hash {
			v.fault("record %d, number %d of chain %s, was changed, or record %d that follows it", c.last.sequence, c.last.number, id, l.sequence)
		}
		c.last, c.begun = l, true
	}
}

// skip continues the row after a gap. The beginning of a chain may have expired.
func (v *verifier) skip(id string, c *links) {
	first := slices.Min(slices.Collect(maps.Keys(c.waiting)))
	if !c.begun && v.expired {
		v.Begun = append(v.Begun, fmt.Sprintf("chain %s begins with number %d", id, first))
	} else {
		c.gaps = append(c.gaps, [2]int64{c.last.number + 1, first - 1})
	}
	c.last, c.begun = c.waiting[first], true
	delete(c.waiting, first)
	v.join(id, c)
}

// end reports what is missing in the end.
func (v *verifier) end(info *jetstream.StreamInfo) {
	for _, id := range slices.Sorted(maps.Keys(v.chains)) {
		c := v.chains[id]
		for len(c.waiting) > 0 {
			v.skip(id, c)
		}
		for _, gap := range c.gaps {
			for n := gap[0]; n <= gap[1]; n++ {
				if c.lost[n] {
					v.Lost++
				} else {
					v.fault("number %d of chain %s is missing", n, id)
				}
			}
		}
	}
	cfg := info.Config
	full := cfg.MaxBytes > 0 && float64(info.State.Bytes) > nearlyFull*float64(cfg.MaxBytes)
	if v.expired && !full && (cfg.MaxAge == 0 || v.Records == 0 || time.Since(v.Oldest) < cfg.MaxAge-time.Hour) && v.Records > 0 {
		v.fault("the records before %d are missing, and were not old enough to expire", v.First)
	}
}
