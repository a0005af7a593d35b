package roster

import (
	"cmp"
	"slices"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// Key names a participant of a kind and tenant.
type Key struct {
	Tenant   id.Tenant
	Kind, ID string
}

// KeyOf returns the key of a participant.
func KeyOf(p cmd.Participant) Key { return Key{p.Tenant, p.Kind, p.ID} }

// record is a participant.
type record struct {
	key    Key
	stored *cmd.Participant // as the bucket remembers it; nil: it does not
	live   []reading        // its entries in the directory
	shown  *cmd.Participant // the one that counts. Never changed, but replaced
	suits  ranked           // if it is an online agent
}

// reading is a member of the directory.
type reading struct {
	member      string
	participant *cmd.Participant
	joined      uint64 // orders two members by age
}

// best returns what counts of a participant. A reconnecting one can have several entries: the online one counts, or else
// the youngest.
func (c *record) best() *cmd.Participant {
	if len(c.live) == 0 {
		return c.stored
	}
	best := c.live[0]
	for _, l := range c.live[1:] {
		if better(l, best) {
			best = l
		}
	}
	return best.participant
}

func better(a, than reading) bool {
	if a.participant.Online != than.participant.Online {
		return a.participant.Online
	}
	return a.joined > than.joined
}

// Spot is the place of a participant in a list.
type Spot struct{ Name, ID string }

func (c *record) spot() Spot { return Spot{c.shown.Name, c.key.ID} }

func (s Spot) compare(t Spot) int {
	return cmp.Or(cmp.Compare(s.Name, t.Name), cmp.Compare(s.ID, t.ID))
}

// groupKey names the participants of a kind and tenant.
type groupKey struct {
	tenant id.Tenant
	kind   string
}

// group holds the participants of a kind and tenant in several orders.
type group struct {
	all   *sorted            // by spot
	words map[string]*sorted // those with a capability, by spot
	able  map[string]*sorted // online agents with a capability, the best first
	named map[string]*sorted // online agents of a name, the best first
}

// ranked is an online agent as tasks are assigned to it.
type ranked struct {
	candidate assignment.Candidate
	listed    bool
}

// sorted is a list of records, which differ in its order.
type sorted struct {
	compare func(a, b *record) int
	items   []*record
	loose   bool // items has to be sorted
}

func bySpot(a, b *record) int { return a.spot().compare(b.spot()) }

func byRank(a, b *record) int { return assignment.Compare(a.suits.candidate, b.suits.candidate) }

// add adds a record. Many adds in a row are cheaper if they are loose.
func (s *sorted) add(rec *record, loose bool) {
	if loose || s.loose {
		s.items, s.loose = append(s.items, rec), true
		return
	}
	i, _ := slices.BinarySearchFunc(s.items, rec, s.compare)
	s.items = slices.Insert(s.items, i, rec)
}

func (s *sorted) remove(rec *record) {
	i, ok := slices.BinarySearchFunc(s.sort(), rec, s.compare)
	if ok {
		s.items = slices.Delete(s.items, i, i+1)
	}
}

// sort returns the records in their order. They are valid until the next change.
func (s *sorted) sort() []*record {
	if s == nil {
		return nil
	}
	if s.loose {
		slices.SortFunc(s.items, s.compare)
		s.loose = false
	}
	return s.items
}

// behind returns the records of a list by spot that are behind one.
func (s *sorted) behind(at Spot) []*record {
	items := s.sort()
	i, here := slices.BinarySearchFunc(items, at, func(rec *record, at Spot) int { return rec.spot().compare(at) })
	if here {
		i++
	}
	return items[i:]
}

// with returns the shortest list of those that hold all participants with the capabilities, nil if one of these is unknown.
func (g *group) with(capabilities []string) *sorted { return shortest(g.all, g.words, capabilities) }

func shortest(all *sorted, of map[string]*sorted, words []string) *sorted {
	for _, w := range words {
		l := of[w]
		if l == nil {
			return nil
		}
		if all == nil || len(l.items) < len(all.items) {
			all = l
		}
	}
	return all
}

// list adds a record to the lists by spot.
func (g *group) list(rec *record, loose bool) {
	g.all.add(rec, loose)
	each(rec.shown.Capabilities, func(w string) { put(g.words, w, rec, bySpot, loose) })
}

func (g *group) unlist(rec *record) {
	g.all.remove(rec)
	each(rec.shown.Capabilities, func(w string) { take(g.words, w, rec) })
}

// each calls f with each word once.
func each(words []string, f func(string)) {
	for i, w := range words {
		if slices.Index(words, w) == i {
			f(w)
		}
	}
}

func put(to map[string]*sorted, word string, rec *record, order func(a, b *record) int, loose bool) {
	if to[word] == nil {
		to[word] = &sorted{compare: order}
	}
	to[word].add(rec, loose)
}

func take(from map[string]*sorted, word string, rec *record) {
	if from[word].remove(rec); len(from[word].items) == 0 {
		delete(from, word)
	}
}

// unrank is the opposite of rank. The record has not changed since.
func (g *group) unrank(rec *record) {
	if !rec.suits.listed {
		return
	}
	each(rec.shown.Capabilities, func(w string) { take(g.able, w, rec) })
	take(g.named, rec.shown.Name, rec)
	rec.suits = ranked{}
}

// wantedBy reports whether the task matches an agent.
func (c *record) wantedBy(want event.TaskCreatedData) bool {
	return assignment.Matches(want, assignment.Candidate{ID: c.key.ID, Name: c.shown.Name, Capabilities: c.shown.Capabilities})
}
