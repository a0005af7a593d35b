package entry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	gojson "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// drawEvent draws an event of the log, with data that has every kind of value.
func drawEvent(t *rapid.T) event.Event {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := rapid.IntRange(0, 6).Draw(t, "kind"); {
		case n == 0:
			return nil
		case n == 1:
			return rapid.Bool().Draw(t, "bool")
		case n == 2:
			return rapid.Float64().Draw(t, "number")
		case n == 3 && depth < 4:
			return []any{value(depth + 1), value(depth + 1)}
		case n == 4 && depth < 4:
			return map[string]any{text.Draw(t, "name"): value(depth + 1), "b": value(depth + 1)}
		default:
			return text.Draw(t, "text")
		}
	}
	data, err := json.Marshal(map[string]any{"x": value(0)})
	require.NoError(t, err)
	return event.Event{
		SpecVersion: event.SpecVersion, ID: text.Draw(t, "id"), Source: text.Draw(t, "source"),
		Type:    rapid.OneOf(rapid.Just(event.MessageDelta), rapid.Custom(func(t *rapid.T) event.Type { return event.Type(text.Draw(t, "type")) })).Draw(t, "type"),
		Subject: testLog("scan").Name(), Time: time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "time")).UTC(),
		Sequence: rapid.Uint64().Draw(t, "seq"), Data: data,
		TraceParent: text.Draw(t, "trace"), Request: text.Draw(t, "request"),
	}
}

// agree checks that the scanner reads raw as the JSON decoder does, if it reads it.
func agree(t require.TestingT, raw []byte) (scanned bool) {
	var fast, exact event.Event
	if !scan(raw, testLog("scan").Name(), &fast) {
		return false
	}
	require.NoError(t, gojson.Unmarshal(raw, &exact, lenient), "%s", raw)
	require.Equal(t, exact, fast, "%s", raw)
	return true
}

// TestScannerAgreesWithTheDecoder: whatever becomes of an event on its way, the scanner reads it as the JSON decoder
// does, or leaves it to that.
func TestScannerAgreesWithTheDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := Encode(drawEvent(t))
		require.NoError(t, err)
		agree(t, raw)
		hurt := append([]byte(nil), raw...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(hurt)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				hurt[at] = rapid.SampledFrom([]byte("{}[]\",:\\u0e.-+1 \n\x00\xff")).Draw(t, "byte")
			case 1:
				hurt = append(hurt[:at:at], hurt[at+1:]...)
			default:
				hurt = append(hurt[:at:at], append([]byte{hurt[at]}, hurt[at:]...)...)
			}
			if len(hurt) == 0 {
				return
			}
		}
		agree(t, hurt)
	})
}

func FuzzScan(f *testing.F) {
	raw := string(stored(f, 3, delta("m", "text\n\u00e9<")).Raw)
	f.Add([]byte(strings.ReplaceAll(raw, testLog("pure").Name(), testLog("scan").Name())))
	f.Fuzz(func(t *testing.T, raw []byte) { agree(t, raw) })
}

// ordinaryEntry returns an entry with every member in its stored form.
func ordinaryEntry(t *testing.T) (log string, raw []byte) {
	t.Helper()
	ev, err := event.New(testLog("scan"), "id-1", "worker-1", time.UnixMilli(1700000000123), delta("m", "a \"quote\", a line\n and é"))
	require.NoError(t, err)
	ev.Sequence, ev.TraceParent, ev.Request = 7, "00-ab-cd-01", "r1"
	ev.Data = json.RawMessage(`{"text":"\u00e9\n","n":[-1.5e+3,0,{}],"x":{"y":[],"z":null},"t":true,"f":false}`)
	raw, err = Encode(ev)
	require.NoError(t, err)
	return ev.Subject, raw
}

// TestScannerReadsWhatIsStored: ordinary events take the fast way, and share their data with the stored form.
func TestScannerReadsWhatIsStored(t *testing.T) {
	_, raw := ordinaryEntry(t)
	require.True(t, agree(t, raw))
}

// TestScannerLeavesTheRest: forms that Encode does not make are the decoder's, which refuses what was always refused.
func TestScannerLeavesTheRest(t *testing.T) {
	raw := string(stored(t, 3, delta("m", "x")).Raw)
	raw = strings.ReplaceAll(raw, testLog("pure").Name(), testLog("scan").Name())
	require.True(t, agree(t, []byte(raw)))
	for _, other := range []string{
		`{"unknown":1,` + raw[1:],
		`{ ` + raw[1:],
		raw + ` `,
		strings.Replace(raw, `"sequence":3`, `"sequence":03`, 1),
		strings.Replace(raw, `"sequence":3`, `"sequence":3.0`, 1),
		strings.Replace(raw, `"sequence":3`, `"sequence":-3`, 1),
		strings.Replace(raw, `"sequence":3`, `"sequence":18446744073709551616`, 1),
		strings.Replace(raw, `"specversion":"1.0"`, `"specversion":"2.0"`, 1),
		strings.Replace(raw, `"data":{`, `"data":{"a":`, 1),
		strings.Replace(raw, `"data":`, `"data":`+strings.Repeat("[", maxScanned+2), 1),
		strings.Replace(raw, `"text":"x"`, `"text":"\x"`, 1),
		strings.Replace(raw, `"text":"x"`, `"text":"\u00g0"`, 1),
		strings.Replace(raw, `"text":"x"`, "\"text\":\"\n\"", 1),
		strings.Replace(raw, `T00:00:00`, `T0:00:00`, 1),
		strings.Replace(raw, `T00:00:00`, `T24:00:00`, 1),
		strings.Replace(raw, `T00:00:00.003Z`, `T00:00:00,003Z`, 1),
		strings.Replace(raw, `T00:00:00.003Z`, `T00:00:00.003+00:00`, 1),
		raw[:len(raw)-1], raw + "}", "", "{}",
	} {
		var e event.Event
		require.False(t, scan([]byte(other), testLog("scan").Name(), &e), other)
	}
}
