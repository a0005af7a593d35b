package admission

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// maxForeign bounds the origins that are logged: strangers can make up any number of them.
const maxForeign = 64

// Foreign logs the origins of pages that are refused, each once. It is safe for concurrent use.
type Foreign struct {
	Log zerolog.Logger

	mu   sync.Mutex
	seen map[string]struct{}
}

// Refused logs the origin of a refused request with the configuration that allows it, unless it has been logged before.
func (f *Foreign) Refused(r *http.Request) {
	origins := r.Header.Values("Origin")
	if len(origins) != 1 || checkOrigin(origins[0]) != nil {
		return // no configuration allows it
	}
	origin := strings.ToLower(origins[0])
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.seen[origin]; known || len(f.seen) == maxForeign {
		return
	}
	if f.seen == nil {
		f.seen = map[string]struct{}{}
	}
	f.seen[origin] = struct{}{}
	f.Log.Warn().Str("origin", origin).Str("to_allow_it", "gateway: {allowed_origins: ["+strconv.Quote(origin)+"]}").
		Bool("last_logged", len(f.seen) == maxForeign).Msg("web page rejected: origin not allowed")
}
