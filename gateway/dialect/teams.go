package dialect

import (
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Teams is implemented by codecs of sockets whose path or query names what they show:
// a team, a member of one, or any other run. The log is there before the socket is.
//
// Several frames may come of one event. Each carries a position of its own, which
// grows from frame to frame, and a client may resume after any of them.
type Teams interface {
	Codec

	// Welcome returns the first frame of a socket, that it is connected, and those that say
	// how the team and its members are: they follow the events that the view knows of. The
	// view is nil for a run outside of teams.
	Welcome(at Link, id string, view *command.TeamAttachReply) [][]byte

	// FailBy is Codec.Fail on a socket that shows a team for which the member speaks.
	FailBy(member string, f *fault.Fault, now time.Time) []byte

	// Place returns for the position of a frame where to read on: after the event
	// with sequence seq, of whose successor the first skip frames are not to be sent
	// again.
	Place(position uint64) (seq uint64, skip int)
}

// TeamDialect is a dialect whose connections show a team or another run.
type TeamDialect interface {
	Dialect
	// BindTeams is Bind for codecs of teams.
	BindTeams(query url.Values) (Teams, error)
}
