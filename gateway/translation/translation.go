// Package translation gives the frames of any stored log in the words of any protocol, event by event, without a connection.
package translation

import (
	"net/url"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Translation gives the frames of the events of one log, which it takes in order. It is not safe for concurrent use.
type Translation struct {
	// Fold takes an event whose frames are not wanted. nil: the frames of an event depend on no other one, and Next
	// may begin anywhere.
	Fold func(event.Event)
	// Next takes an event and returns its frames, each one JSON text. The caller must not modify them.
	Next func(event.Event) [][]byte
}

// Protocol begins the translation of a log with the kind and the name. The query chooses a variant, as it does when a client
// connects. The error is always a *fault.Fault that names the parameter.
type Protocol func(kind id.Kind, name string, query url.Values) (Translation, error)

// Of is the protocol of a dialect.
func Of(d dialect.Dialect) Protocol {
	return func(_ id.Kind, _ string, query url.Values) (Translation, error) {
		codec, err := d.Bind(query)
		if err != nil {
			return Translation{}, err
		}
		return Translation{Next: codec.Encode}, nil
	}
}

// Watched is the protocol of participants that watch logs, whose codec encodes events alone.
func Watched(encode func(event.Event) [][]byte) Protocol {
	return func(id.Kind, string, url.Values) (Translation, error) { return Translation{Next: encode}, nil }
}

// shown are the kinds of logs that are threads of AG-UI.
var shown = []id.Kind{id.KindSession, id.KindTeam}

// AGUI returns the variants of AG-UI, as a stream of the whole thread shows them.
func AGUI() Protocols {
	all := Protocols{}
	for _, v := range []fold.Variant{fold.V1, fold.V0, fold.V0Subagents} {
		all[v.Name()] = threads(v)
	}
	return all
}

func threads(v fold.Variant) Protocol {
	return func(kind id.Kind, name string, _ url.Values) (Translation, error) {
		if !slices.Contains(shown, kind) {
			return Translation{}, fault.Newf(fault.InvalidField, "AG-UI only shows sessions and teams, not a %s.", kind).At("as")
		}
		t := fold.Of(kind, v).Clone(name)
		return Translation{Fold: t.Take, Next: func(e event.Event) [][]byte {
			var out [][]byte
			for _, f := range t.Next(e) {
				if f.Shown != fold.OwnStream {
					out = append(out, f.Data)
				}
			}
			return out
		}}, nil
	}
}

// Protocols are protocols by the names of their codecs.
type Protocols map[string]Protocol

// Begin begins the translation of a log into the protocol that the parameter as of the query names.
func (ps Protocols) Begin(kind id.Kind, name string, query url.Values) (Translation, error) {
	p, ok := ps[query.Get("as")]
	if !ok {
		return Translation{}, fault.Newf(fault.InvalidField, "as must be one of %s.", ps.names()).At("as")
	}
	return p(kind, name, query)
}

func (ps Protocols) names() string {
	list := make([]string, 0, len(ps))
	for name := range ps {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
