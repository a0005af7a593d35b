package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// queryTopic is the parameter that names a topic of a stream of several things.
	queryTopic = "t"
	// mostTopics bounds the topics of a stream: each log takes its own reader.
	mostTopics = 8
	// topicEvents are the announcements of the tenant, and topicLog begins the topic of a log.
	topicEvents, topicLog = "events", "log:"
)

// missing are the faults of logs that do not exist, by kind.
var missing = map[id.Kind]fault.Code{
	id.KindSession: fault.SessionNotFound, id.KindTask: fault.TaskNotFound, id.KindTeam: fault.TeamNotFound, id.KindMember: fault.MemberNotFound,
}

// topics shows a principal the topics that the query names. One that the principal does not see is said to be missing, and the
// others are shown.
func (s *streams) topics(r *http.Request, c *edge.Client, types []event.Type, to transport.Transport) (*events.Topics, error) {
	names := r.URL.Query()[queryTopic]
	if len(names) > mostTopics {
		return nil, fault.Newf(fault.InvalidField, "A stream can have at most %d topics.", mostTopics).At(queryTopic)
	}
	logs, err := logsOf(r, names)
	if err != nil {
		return nil, err
	}
	shown := events.NewTopics(to, c.Watches())
	for i, name := range names {
		if name == topicEvents {
			shown.Announcements(r.Context(), name, s.announcements, c.Principal(), types)
			continue
		}
		log := subject.Log{Tenant: c.Principal().Tenant, Kind: logs[i].kind, Entity: logs[i].entity}
		last, _, err := c.Ends(r.Context(), log, fault.New(missing[log.Kind]))
		if err == nil && logs[i].after > last.Seq {
			err = fault.New(fault.CursorInvalid).At(queryTopic)
		}
		if err != nil {
			shown.Fail(name, s.asFault(err))
			continue
		}
		shown.Log(r.Context(), name, s.shared.Streams, log, eventlog.Cursor{Seq: logs[i].after})
	}
	shown.Show()
	return shown, nil
}

// topicOfLog is a log, and the seq after which it is to be shown.
type topicOfLog struct {
	kind   id.Kind
	entity id.Entity
	after  uint64
}

// logsOf returns the logs that topics name, in their places. A client that reconnects repeats its address, so that the positions
// of Last-Event-ID take precedence.
func logsOf(r *http.Request, names []string) ([]topicOfLog, error) {
	resumed := map[string]uint64{}
	for text := range strings.FieldsSeq(r.Header.Get(sse.HeaderResume)) {
		one, name, err := parseLog(text)
		if err != nil {
			return nil, err.At(sse.HeaderResume)
		}
		resumed[name] = one.after
	}
	out := make([]topicOfLog, len(names))
	for i, topic := range names {
		if slices.Contains(names[:i], topic) {
			return nil, fault.Newf(fault.InvalidField, "The topic %q is listed twice.", topic).At(queryTopic)
		}
		if topic == topicEvents {
			continue
		}
		text, is := strings.CutPrefix(topic, topicLog)
		if !is {
			return nil, fault.Newf(fault.InvalidField, "The topic %q is unknown. Use events or log:KIND/ID@SEQ.", topic).At(queryTopic)
		}
		one, name, err := parseLog(text)
		if err != nil {
			return nil, err.At(queryTopic)
		}
		one.after = max(one.after, resumed[name])
		out[i] = one
	}
	return out, nil
}

// parseLog reads KIND/ID@SEQ, or KIND/ID for the beginning, and returns the name without the seq.
func parseLog(text string) (one topicOfLog, name string, f *fault.Fault) {
	name, seq, has := text, "", false
	if i := strings.LastIndexByte(text, '@'); i >= 0 { // ids of clients may have others
		name, seq, has = text[:i], text[i+1:], true
	}
	kind, entity, whole := strings.Cut(name, "/")
	if one.kind = id.Kind(kind); !whole || missing[one.kind] == "" || entity == "" {
		return one, name, fault.Newf(fault.InvalidField, "%q is not the topic of a log. Use KIND/ID@SEQ with the kind session, member, team or task.", text)
	}
	one.entity = id.EntityFromExternal(entity)
	name = kind + "/" + one.entity.String()
	if has {
		var err error
		if one.after, err = strconv.ParseUint(seq, 10, 64); err != nil {
			return one, name, fault.Newf(fault.CursorInvalid, "%q is not a seq.", seq)
		}
	}
	return one, name, nil
}
