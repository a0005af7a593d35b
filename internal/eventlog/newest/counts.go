package newest

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// fresh is how long a count holds. The server goes through all subjects of a filter for each count: 16 ms with 100,000.
	fresh = time.Second
	// maxCounts bounds the filters whose counts are kept, some 200 bytes each.
	maxCounts = 1024
)

// census is what is known about all messages of a filter.
type census struct {
	total  int
	first  uint64 // sequence of the oldest one, or of one that is gone since
	at     time.Time
	stream time.Time // when the stream was made; zero: not known
}

// Counts keeps the counts of the filters that were asked for last. It is safe for concurrent use.
type Counts struct {
	mu     sync.Mutex
	recent *simplelru.LRU[string, census]
}

// NewCounts returns Counts without a count.
func NewCounts() *Counts {
	recent, err := simplelru.NewLRU[string, census](maxCounts, nil)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &Counts{recent: recent}
}

func (c *Counts) get(filter string, now time.Time) (census, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.recent.Get(filter)
	return known, ok && now.Sub(known.at) < fresh
}

func (c *Counts) put(filter string, known census) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.Add(filter, known)
}
