package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/services/model"
)

// A text comes out whole, however it is cut into JSON strings: between the halves of surrogate pairs, within the bytes of a
// character, or anywhere else.
func TestPiecesJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := "x" + rapid.StringOf(rapid.RuneFrom([]rune("aß€🐝\"\\\n\u0000𝄞<"))).Draw(t, "text")
		var pieces []string
		for _, r := range want {
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError && rapid.Bool().Draw(t, "escaped") {
				pieces = append(pieces, fmt.Sprintf(`\u%04x`, high), fmt.Sprintf(`\u%04x`, low))
				continue
			}
			quoted, err := json.Marshal(string(r))
			require.NoError(t, err)
			if r < 0x80 {
				pieces = append(pieces, string(quoted[1:len(quoted)-1]))
				continue
			}
			for _, b := range []byte(string(r)) {
				pieces = append(pieces, string([]byte{b}))
			}
		}
		var text, thought strings.Builder
		take := func(b *strings.Builder) func(string) error {
			return func(s string) error {
				require.True(t, utf8.ValidString(s))
				b.WriteString(s)
				return nil
			}
		}
		s := &Sink{to: model.Listener{Text: take(&text), Reasoning: take(&thought)}}
		for len(pieces) > 0 {
			n := rapid.IntRange(1, len(pieces)).Draw(t, "n")
			var p Piece
			require.NoError(t, p.UnmarshalJSON([]byte(`"`+strings.Join(pieces[:n], "")+`"`)))
			require.NoError(t, s.Piece(p))
			require.NoError(t, s.Think(p.Text))
			pieces = pieces[n:]
		}
		require.NoError(t, s.end())
		require.Equal(t, want, text.String())
		require.Equal(t, want, thought.String())
		require.Equal(t, want, s.SoFar())
	})
}

// Any JSON value is a piece, a count, a word and arguments.
func FuzzPiece(f *testing.F) {
	for _, seed := range []string{`"a"`, `null`, `["a",{"type":"text","text":"b"}]`, `{"type":"thinking","thinking":[{"text":"c"}]}`, `12.0`, `-1`, `"\ud83d"`, `[[[[[[[[[["a"]]]]]]]]]]`, "\"\xed\xa0\x80\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var all struct {
			P Piece
			C Count
			W Word
			A Arguments
		}
		doc := []byte(`{"P":` + string(raw) + `,"C":` + string(raw) + `,"W":` + string(raw) + `,"A":` + string(raw) + `}`)
		if !json.Valid(doc) {
			return
		}
		require.NoError(t, json.Unmarshal(doc, &all))
		require.GreaterOrEqual(t, all.C.N, int64(0))
		s := &Sink{}
		require.NoError(t, s.Piece(all.P))
		require.NoError(t, s.end())
		require.True(t, utf8.ValidString(s.text.String()+s.reasoning.String()+Join(all.A)))
	})
}

// Reasoning between tags does not become text, wherever the pieces are cut; nothing is lost.
func TestTagsSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		thought := rapid.StringMatching(`[a-z <\n]{0,8}`).Draw(t, "thought")
		text := rapid.StringMatching(`[a-z][a-z <>/\n]{0,8}`).Draw(t, "text")
		whole, want := text, ""
		if rapid.Bool().Draw(t, "thinks") {
			whole, want = "\n<think>"+thought+"</think>\n\n"+text, thought
		}
		s := &Sink{}
		for len(whole) > 0 {
			n := rapid.IntRange(1, len(whole)).Draw(t, "n")
			require.NoError(t, s.Text(whole[:n]))
			whole = whole[n:]
		}
		require.NoError(t, s.end())
		require.Equal(t, text, s.text.String())
		require.Equal(t, want, s.reasoning.String())
	})
}

// Lines "error: ..." become events, however they are cut; all other lines stay as they are.
func TestErrorLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"data: 1", "error: 2", "err", "error", ": error: 3", "error:", "event: error", ""})).Draw(t, "lines")
		in := strings.Join(lines, "\n")
		var want []string
		for _, l := range lines {
			if rest, ok := strings.CutPrefix(l, "error:"); ok {
				l = errorEvent + rest + "\n"
			}
			want = append(want, l)
		}
		l := &errorLines{}
		for _, c := range []byte(in) {
			l.take(c)
		}
		l.end()
		require.Equal(t, strings.Join(want, "\n"), strings.TrimSuffix(string(l.out), map[bool]string{true: "\n", false: ""}[l.errored]))
	})
}
