package dialecttest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// shown writes what a frame asks of the gateway on one line, without what it leaves out.
func shown(t *testing.T, r dialect.Request) string {
	t.Helper()
	v := map[string]any{"session": r.Session}
	switch r.Action {
	case dialect.Open:
		v = map[string]any{"open": r.Open}
	case dialect.Ack:
		v["acked"] = position(r.Acked)
	case dialect.Export:
		v["history"], v["max"] = r.History, r.Max
	case dialect.Resume, dialect.Import:
		v["from"], v["batch"], v["merge"] = position(r.Resume), r.Batch, r.Merge
		if r.Signed != nil {
			v["signed"] = r.Signed
		}
	}
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(r.Action) + " " + string(b)
}

func position(p dialect.Position) map[string]any {
	v := map[string]any{}
	if p.Seq != nil {
		v["seq"] = *p.Seq
	}
	for name, s := range map[string]string{"event_id": p.EventID, "client_id": p.ClientID, "hash": p.Hash} {
		if s != "" {
			v[name] = s
		}
	}
	return v
}

// linked returns a frame that a gateway makes for one connection.
func (tr *transcript) linked(t *testing.T, s dialect.Sessions, word, arg string) []byte {
	t.Helper()
	session := Session.Entity.String()
	args := append(strings.Fields(arg), "", "", "")
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(args[i], 10, 64)
		require.NoError(t, err, "!%s %s", word, arg)
		return n
	}
	switch word {
	case "connected":
		return s.Connected(Link)
	case "heartbeat":
		return s.Heartbeat(Link, session, number(0))
	case "expired":
		return s.Expired(Link, session, number(0))
	case "replayed":
		var matched *bool
		if b, err := strconv.ParseBool(args[2]); err == nil {
			matched = &b
		}
		return s.Replayed(Link, session, int(number(0)), number(1), args[1], matched)
	case "batch":
		begin := tr.events[0].Sequence
		return s.Batch(Link, session, tr.events[number(0)-begin:number(1)-begin+1])
	case "refuse":
		return s.Refuse(Link, session, dialect.Action(args[0]), fault.New(fault.Code(args[1])))
	case "exported":
		var d event.StateExportedData
		require.NoError(t, json.Unmarshal([]byte(arg), &d))
		return s.Exported(Link, session, d)
	case "merged":
		e := tr.events[len(tr.events)-1]
		e.From = number(0)
		return s.Encode(e)[0]
	}
	require.Fail(t, "unknown line in the bus section", "!%s", word)
	return nil
}
