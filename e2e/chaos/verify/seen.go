package verify

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Frames compares the frames of a client with those of a new viewer: they are the same,
// once and in order. Pieces of texts may be cut differently, but have to
// add up to the same.
func Frames(v *Verdict, r Report, again []Seen) {
	c := &v[PromiseResume]
	for _, gap := range r.Gaps {
		c.reordered("%s", gap)
	}
	have := map[uint64]string{}
	texts, before := map[string]string{}, uint64(0)
	for _, s := range r.Seen {
		if _, twice := have[s.Seq]; twice {
			c.doubled("%s: %d", r.Who, s.Seq)
		} else if s.Seq < before {
			c.reordered("%s: %d after %d", r.Who, s.Seq, before)
		}
		before = s.Seq
		if of, text, loose := r.Loose(s.Raw); loose {
			texts[of] += text
			continue
		}
		have[s.Seq] = s.Raw
		if other := foreign(r.Tenant, s.Raw); other != "" {
			v[PromiseIsolation].AddBroken("%s sees %s: %s", r.Who, other, s.Raw)
		}
	}
	for _, s := range again {
		c.Checked++
		if of, text, loose := r.Loose(s.Raw); loose {
			rest, ok := cutPrefix(texts[of], text)
			if !ok {
				c.AddLost("%s: %q of the text %s, where %q is", r.Who, text, of, texts[of])
			}
			texts[of] = rest
			continue
		}
		raw, there := have[s.Seq]
		switch {
		case !there:
			c.AddLost("%s: %d: %s", r.Who, s.Seq, s.Raw)
		case raw != s.Raw:
			c.AddBroken("%s: %d was %s, is %s", r.Who, s.Seq, raw, s.Raw)
		}
		delete(have, s.Seq)
	}
	for seq, raw := range have {
		c.doubled("%s: %d is in no log: %s", r.Who, seq, raw)
	}
	for of, rest := range texts {
		if rest != "" {
			c.doubled("%s: %q of the text %s", r.Who, rest, of)
		}
	}
}

// cutPrefix takes a piece from the beginning of a text. A text that has been taken
// wholly has no more pieces.
func cutPrefix(text, piece string) (rest string, ok bool) {
	if len(text) < len(piece) || text[:len(piece)] != piece {
		return "", false
	}
	return text[len(piece):], true
}

// Deadlines judges whether a deadline has passed. The load leaves every one of them
// several times the time that it needs: one that has passed was measured with two clocks.
func Deadlines(v *Verdict, logs map[string][]Stored) {
	c := &v[PromiseWork]
	for name, events := range logs {
		for _, e := range events {
			var d struct {
				Code   fault.Code `json:"code"`
				Reason string     `json:"reason"`
			}
			_ = json.Unmarshal(e.Data, &d) // data without such members are about nothing of the kind
			if passed[e.Type] || late[d.Code] {
				c.AddBroken("%s: a deadline passed early: %s %s", name, e.Type, e.Data)
			}
		}
	}
}

// Events and codes of a deadline that has passed.
var (
	passed = map[event.Type]bool{
		event.InputExpiredData{}.EventType(): true, (event.TaskAskExpiredData{}).EventType(): true,
	}
	late = map[fault.Code]bool{
		fault.TaskTimeout: true, fault.ModelTimeout: true, fault.ToolTimeout: true, fault.InputExpired: true,
		fault.SessionExpired: true, fault.StateExpired: true, fault.Expired: true,
	}
)
