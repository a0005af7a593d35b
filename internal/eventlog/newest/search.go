package newest

// Verdict says what becomes of an entry that a search has found.
type Verdict int

// The verdicts.
const (
	Skipped Verdict = iota // it does not belong on the page
	Taken                  // it is on the page
	Full                   // the page has no room for it: it is the first of the next page
)

// Search looks for the items of a page among entries that are read backwards, the newest first. A filter that few entries pass makes
// a page short or empty.
type Search[T any] struct {
	Limit        int // items of the page
	Least        int // entries of the first read, then twice as many each time
	Most, AtOnce int // entries of all reads, and of one
	Read         func(before uint64, entries int) (Part[T], error)
	Place        func(*T) uint64 // of an entry
	// Take puts an entry on the page, if it belongs there. An error ends the search.
	Take func(*T) (Verdict, error)
}

// Part is what a search reads at once.
type Part[T any] struct {
	Entries []T
	End     uint64 // place of the last entry that was looked at, even if it is not among the entries; 0: the last of these
	Looked  int    // number of the entries that were looked at
	More    bool   // others follow
}

// Before fills the page with the items before a place; 0: with the newest ones. The next page is before the place that it returns; 0:
// the page is the last.
func (s Search[T]) Before(place uint64) (next uint64, err error) {
	found := 0
	for scanned, least := 0, s.Least; ; least = min(2*least, s.AtOnce) {
		part, err := s.Read(place, min(max(s.Limit-found, least), s.Most-scanned))
		if err != nil {
			return 0, err
		}
		for i := range part.Entries {
			if found == s.Limit {
				return place, nil
			}
			one := &part.Entries[i]
			verdict, err := s.Take(one)
			switch {
			case err != nil:
				return 0, err
			case verdict == Full:
				return place, nil
			case verdict == Taken:
				found++
			}
			place = s.Place(one)
		}
		if part.End != 0 {
			place = part.End
		}
		switch scanned += part.Looked; {
		case !part.More:
			return 0, nil
		case found == s.Limit || scanned >= s.Most:
			return place, nil
		}
	}
}
