package api

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// streams are the routes whose answers last. The gateway serves them.
type streams struct {
	log  func(id.Kind) http.HandlerFunc // may be nil
	live http.HandlerFunc               // may be nil
}

func (s streams) routes() []Route {
	events := openapi.Answer{Status: http.StatusOK, About: "Server-sent events: canonical events (schema event).", Media: respond.MediaEvents}
	lines := openapi.Answer{Status: http.StatusOK, About: "For Accept: application/jsonl, the events that the log has now, one on each line.", Media: respond.MediaLines}
	of := func(path, op, what string, kind id.Kind, missing fault.Code) Route {
		r := Route{
			Method: "GET", Path: path, ID: op, Tag: "events", Summary: "Stream the log of " + what + ".",
			Query:   []openapi.Parameter{{Name: "after", About: "Position: the stream begins with the next event.", Type: "string"}},
			Header:  []openapi.Parameter{{Name: "Last-Event-ID", About: "Position: comes before the parameter after.", Type: "string"}},
			Answers: []openapi.Answer{events, lines},
			Faults:  []fault.Code{missing, fault.SessionDeleted, fault.CursorInvalid, fault.HeadExpired, fault.TooManySockets, fault.Draining},
		}
		if s.log != nil {
			r.Handler = s.log(kind)
		}
		return r
	}
	return []Route{
		of("/sessions/{id}/stream", "streamSession", "a session", id.KindSession, fault.SessionNotFound),
		of("/tasks/{id}/stream", "streamTask", "a task", id.KindTask, fault.TaskNotFound),
		of("/teams/{id}/stream", "streamTeam", "a team", id.KindTeam, fault.TeamNotFound),
		{
			Method: "GET", Path: "/live", ID: "streamLive", Tag: "events", Summary: "Stream the announcements of the tenant, or several topics at once.",
			Query: []openapi.Parameter{
				{Name: "types", About: "Types of announcements, separated by commas; all by default.", Type: "string", Many: true},
				{Name: "t", About: "Topic: events (the announcements), or log:KIND/ID@SEQ (the events of a log behind SEQ). A stream has at most 8.", Type: "string", Many: true},
			},
			Header:  []openapi.Parameter{{Name: "Last-Event-ID", About: "With topics: the positions in all logs, which come before those of the topics.", Type: "string"}},
			Answers: []openapi.Answer{events}, Faults: []fault.Code{fault.InvalidField, fault.CursorInvalid, fault.TooManySockets, fault.Draining},
			Handler: s.live,
		},
	}
}
