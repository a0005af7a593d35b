package dialecttest

import (
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Link is the socket that frames of the suite go to.
var Link = dialect.Link{ConnectionID: "conn-1", Now: Now, Uptime: 90 * time.Second}

// cursor is the form of event ids.
func cursor(e event.Event) string {
	s := strconv.FormatUint(e.Sequence, 10)
	if e.Stream != 0 {
		s += "." + strconv.FormatUint(e.Stream, 10)
	}
	return s
}

// Raws are JSON that comes from elsewhere: arguments, contexts, states.
var Raws = []string{`{}`, `{"a":{"b":[1,2]}}`, `[1,"x"]`, `"x"`, `null`, `1e999`}
