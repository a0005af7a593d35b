package seal_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/session/seal"
)

var (
	keys  = seal.Keys{bytes.Repeat([]byte("k"), 32), bytes.Repeat([]byte("o"), 32)}
	now   = time.Unix(1_700_000_000, 0)
	state = []byte(`{"b": 9007199254740993, "a": "<é>", "memory": "{\"x\":1}"}`)
)

func sealed(t testing.TB) []byte {
	t.Helper()
	signed, err := keys.Seal(state, now)
	require.NoError(t, err)
	return signed
}

func refused(t require.TestingT, err error, code fault.Code, reason string) {
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code)
	require.Contains(t, f.Message, reason)
}

func TestASignedStateComesBack(t *testing.T) {
	signed := sealed(t)
	got, at, err := keys.Open(signed, now.Add(seal.Valid))
	require.NoError(t, err)
	require.True(t, at.Equal(now))
	require.JSONEq(t, string(state), string(got))
	require.Contains(t, string(got), "9007199254740993", "integers keep their digits")
	first, err := seal.Hash(state)
	require.NoError(t, err)
	second, err := seal.Hash(got)
	require.NoError(t, err)
	require.Equal(t, first, second)
	_, err = seal.Hash([]byte("{"))
	require.Error(t, err)
}

// TestTheFormIsTheOneOfTheProtocol computes checksum and signature as its clients do.
func TestTheFormIsTheOneOfTheProtocol(t *testing.T) {
	var s seal.Signed
	require.NoError(t, json.Unmarshal(sealed(t), &s))
	form := `{"a":"<é>","b":9007199254740993,"memory":"{\"x\":1}"}`
	sum := sha256.Sum256([]byte(form))
	require.Equal(t, hex.EncodeToString(sum[:]), s.Checksum)
	h := hmac.New(sha256.New, keys[0])
	fmt.Fprintf(h, "%s:%d:%s", form, now.Unix(), "1.0")
	require.Equal(t, hex.EncodeToString(h.Sum(nil)), s.Signature)
	require.Equal(t, "1.0", s.Version)
}

func TestAClientMayWriteItAnew(t *testing.T) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(sealed(t)))
	d.UseNumber()
	require.NoError(t, d.Decode(&doc))
	again, err := json.MarshalIndent(doc, "", "  ") // other order, white space, \u003c
	require.NoError(t, err)
	_, _, err = keys.Open(again, now)
	require.NoError(t, err)
}

func TestAKeyCanBeReplaced(t *testing.T) {
	signed := sealed(t)
	fresh := bytes.Repeat([]byte("n"), 32)
	_, _, err := seal.Keys{fresh, keys[0]}.Open(signed, now)
	require.NoError(t, err)
	_, _, err = seal.Keys{fresh}.Open(signed, now)
	refused(t, err, fault.StateTampered, "signature")
	_, _, err = seal.Keys{}.Open(signed, now)
	refused(t, err, fault.StateTampered, "signature")
	_, err = seal.Keys{}.Seal(state, now)
	require.ErrorContains(t, err, "the key is missing")
	_, err = keys.Seal([]byte("{"), now)
	require.Error(t, err)
	require.NoError(t, keys.Check())
	require.ErrorContains(t, append(keys[:2:2], []byte("short")).Check(), "key 3")
}

func TestWhatIsRefused(t *testing.T) {
	edit := func(f func(*seal.Signed)) []byte {
		var s seal.Signed
		require.NoError(t, json.Unmarshal(sealed(t), &s))
		f(&s)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return b
	}
	for _, c := range []struct {
		name   string
		signed []byte
		at     time.Time
		code   fault.Code
		reason string
	}{
		{"nothing", nil, now, fault.StateTampered, "not a signed state"},
		{"null", []byte(`null`), now, fault.StateTampered, "missing"},
		{"a number", []byte(`7`), now, fault.StateTampered, "not a signed state"},
		{"no state", []byte(`{"timestamp":1,"version":"1.0","checksum":"a","signature":"b"}`), now, fault.StateTampered, "missing"},
		{"another state", edit(func(s *seal.Signed) { s.State = []byte(`{"a":1}`) }), now, fault.StateTampered, "checksum"},
		{"another time", edit(func(s *seal.Signed) { s.Timestamp++ }), now, fault.StateTampered, "signature"},
		{"no time", edit(func(s *seal.Signed) { s.Timestamp = 0 }), now, fault.StateTampered, "missing"},
		{"another version", edit(func(s *seal.Signed) { s.Version = "2.0" }), now, fault.StateTampered, "version"},
		{"another checksum", edit(func(s *seal.Signed) { s.Checksum = strings.Repeat("0", 64) }), now, fault.StateTampered, "checksum"},
		{"another signature", edit(func(s *seal.Signed) { s.Signature = strings.Repeat("0", 64) }), now, fault.StateTampered, "signature"},
		{"a signature in capitals", edit(func(s *seal.Signed) { s.Signature = strings.ToUpper(s.Signature) }), now, fault.StateTampered, "signature"},
		{"too old", sealed(t), now.Add(seal.Valid + time.Second), fault.StateExpired, "24 hours"},
		{"of the future", sealed(t), now.Add(-time.Hour), fault.StateTampered, "clocks"},
		{"two states", []byte(strings.Replace(string(sealed(t)), `"state":`, `"state":{},"state":`, 1)), now, fault.StateTampered, "not a signed state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := keys.Open(c.signed, c.at)
			refused(t, err, c.code, c.reason)
		})
	}
	_, _, err := keys.Open(sealed(t), now.Add(-time.Minute))
	require.NoError(t, err, "clocks differ a little")
}

// TestNoByteCanBeChanged: whatever is done to one byte, or to the length, the state
// is refused, or it is the same (one control character has two ways to be escaped).
func TestNoByteCanBeChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOfN(rapid.String(), rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Int64(), func(n int64) any { return n }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		), 0, 6).Draw(t, "state")
		raw, err := json.Marshal(doc)
		require.NoError(t, err)
		signed, err := keys.Seal(raw, now)
		require.NoError(t, err)
		want, _, err := keys.Open(signed, now)
		require.NoError(t, err)

		bad := bytes.Clone(signed)
		at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			bad[at] ^= rapid.ByteRange(1, 255).Draw(t, "xor")
		case 1:
			bad = append(bad[:at:at], bad[at+1:]...)
		default:
			bad = bad[:at]
		}
		got, _, err := keys.Open(bad, now)
		if err != nil {
			refused(t, err, fault.StateTampered, "")
			return
		}
		require.Equal(t, string(want), string(got), "%s became %s", signed, bad)
	})
}

func FuzzOpen(f *testing.F) {
	f.Add(sealed(f))
	f.Add([]byte(`{"state":{},"timestamp":1700000000,"version":"1.0","checksum":"","signature":""}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, signed []byte) {
		got, at, err := keys.Open(signed, now)
		if err != nil {
			var fl *fault.Fault
			require.ErrorAs(t, err, &fl)
			return
		}
		again, err := keys.Seal(got, at)
		require.NoError(t, err)
		_, _, err = keys.Open(again, now)
		require.NoError(t, err)
	})
}
