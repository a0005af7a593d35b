package dialecttest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// filler fills the data of an event: text goes into every string, except where only a
// token makes sense, raw into what is JSON from elsewhere, and n decides the rest.
type filler struct {
	text, raw string
	n         int
	within    int // pointers above: data may hold data of their own kind
}

// deepest bounds within: a team in a team in a team.
const deepest = 2

// fill returns the JSON data of a canonical type.
func fill(t testing.TB, info event.Info, text, raw string, n int) json.RawMessage {
	t.Helper()
	v := reflect.New(reflect.TypeOf(info.Data)).Elem()
	filler{text: text, raw: raw, n: n}.value("", v)
	data, err := json.Marshal(v.Interface())
	require.NoError(t, err)
	return data
}

// vocabulary holds what members can be that have words of the protocols themselves. Any
// other text gives the first.
var vocabulary = map[string][]string{
	"TeamStatusData.NewStatus": {
		event.TeamRunning, event.TeamStarting, event.TeamIdle, event.TeamPaused, event.TeamFailed, event.TeamShuttingDown,
	},
	"TeamAgentEventData.Status":  {event.AgentIdle},
	"BoardTask.Status":           {event.BoardNotStarted, event.BoardQueued, event.BoardInProgress},
	"BoardUpdatedData.NewStatus": {event.BoardCompleted, event.BoardBlocked, event.BoardFailed},
	"Todo.Status":                {event.TodoDone, event.TodoPending, event.TodoInProgress},
}

// value fills v, which is called name: embedded structs, lists of up to two and, for
// an odd n, what is optional.
func (f filler) value(name string, v reflect.Value) {
	switch {
	case name == "ExecutionID":
		v.SetString("exec_20260301_120000_000001")
		return
	case name == "Code":
		v.SetString("TOOL_FAILED")
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(f.raw))
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(Now))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for field, inner := range v.Fields() {
			if legal, ok := vocabulary[v.Type().Name()+"."+field.Name]; ok {
				inner.SetString(legal[max(slices.Index(legal, f.text), 0)])
				continue
			}
			f.value(field.Name, inner)
		}
	case reflect.Pointer:
		if f.n%2 == 1 && f.within < deepest {
			v.Set(reflect.New(v.Type().Elem()))
			f.within++
			f.value(name, v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.n%3, f.n%3))
		for i := range v.Len() {
			f.value("", v.Index(i))
		}
	default:
		f.scalar(v)
	}
}

func (f filler) scalar(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(f.text)
	case v.Kind() == reflect.Bool:
		v.SetBool(f.n%2 == 1)
	case v.CanInt():
		v.SetInt(int64(f.n))
	case v.CanUint():
		v.SetUint(uint64(max(f.n, 0)))
	case v.CanFloat():
		v.SetFloat(float64(f.n) / 4)
	}
}
