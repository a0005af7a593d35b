package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStrip(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 日本 🐝\n\tx":              "plain äöü 日本 🐝\n\tx",
		"\x1b[31mred\x1b[0m":               "red",
		"\x1b]0;title\aafter":              "after",
		"\x1b]8;;http://x\x1b\\link":       "link",
		"\x1bPdevice\x1b\\x":               "x",
		"\u009b2Jcleared":                  "cleared",
		"\u009dtitle\u009cafter":           "after",
		"\x1b(Bset":                        "set",
		"a\rb\bc\x00d\x7fe\af":             "abcdef",
		"\x1b]0;never ended\nnext line":    "\nnext line",
		"\ufeffa\u200bb\u00adc\U000e0041":  "abc",
		"pay \u202e001\u202c to":           "pay 001 to",
		"bad \xff utf8 \xc3":               "bad \uFFFD utf8 \uFFFD",
		"\x1b\x1b[1mtwice":                 "twice",
		"\x1b]0;" + strings.Repeat("x", 9): "",
	} {
		require.Equal(t, want, Strip(in), "%q", in)
	}
}

func safe(t require.TestingT, s string) {
	require.True(t, utf8.ValidString(s), "%q", s)
	for _, r := range s {
		require.False(t, r != '\n' && r != '\t' && unicode.IsControl(r), "%q", s)
		require.False(t, unicode.Is(unicode.Cf, r), "%q", s)
	}
}

// Strip prints the same for any division of a text into pieces.
func TestStripDoesNotDependOnTheCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{
			"\x1b", "[", "]", "0;t", "31", "m", "\a", "\\", "\n", "ä", "日", "\u009b", "x", "P", "\xc3", "\x00", "(",
		})).Draw(t, "pieces")
		whole := strings.Join(pieces, "")
		at := rapid.IntRange(0, len(whole)).Draw(t, "cut")
		var one, two Stripper
		want := one.Strip(whole)
		require.Equal(t, want, two.Strip(whole[:at])+two.Strip(whole[at:]))
		safe(t, want)
	})
}

func FuzzStrip(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m")
	f.Add("\x1b]0;title\a\u202e\xff")
	f.Fuzz(func(t *testing.T, in string) {
		safe(t, Strip(in))
		safe(t, Line(in, 10))
		if n := utf8.RuneCountInString(Line(in, 10)); n > 10 {
			t.Fatalf("%d characters", n)
		}
	})
}

func TestAnUnfinishedSequenceSwallowsOnlySoMuch(t *testing.T) {
	out := Strip("\x1b]0;" + strings.Repeat("x", 10*maxSequence))
	require.Greater(t, len(out), 8*maxSequence)
}

func TestLine(t *testing.T) {
	require.Equal(t, "a b c", Line(" a\n b\t\x1b[1mc ", 10))
	require.Equal(t, "abcd…", Line("abcdefgh", 5))
}

func TestScreenKeepsTheStatusOutOfTheText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both bytes.Buffer
		s := NewScreen(&both, &both)
		s.live = true
		s.Status("thinking")
		tick(3)
		_, _ = s.Write([]byte("an answer"))
		tick(3)
		s.Remark(Dim, "a remark")
		_, _ = s.Write([]byte("end\n"))
		s.Close()
		s.Close()
		require.Contains(t, both.String(), "⠹ thinking")
		lines := strings.Split(strings.TrimSuffix(afterLastClear(both.String()), "\n"), "\n")
		require.Equal(t, []string{"an answer", "a remark", "end"}, lines)
	})
}

func TestScreenWithoutATerminalIsSilent(t *testing.T) {
	var out, err bytes.Buffer
	s := NewScreen(&out, &err)
	s.Status("thinking")
	s.Remark(Red, "remark")
	_, _ = s.Write([]byte("x"))
	s.FreshLine()
	s.FreshLine()
	s.Close()
	require.Equal(t, "x\n", out.String())
	require.Empty(t, err.String())
	require.False(t, Color(&err))
	require.Equal(t, "x", Paint(false, Red, "x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", Paint(true, Red, "x"))
}

func afterLastClear(s string) string {
	parts := strings.Split(s, "\r\x1b[K")
	return parts[len(parts)-1]
}

// tick waits for n pictures of the spinner. Within a synctest bubble the timer fires as soon as all goroutines are idle.
func tick(n int) {
	<-time.After(time.Duration(n)*FrameTime + FrameTime/2)
	synctest.Wait()
}

func TestASCIIKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		b, err := json.Marshal(want)
		require.NoError(t, err)
		var got string
		require.NoError(t, json.Unmarshal(ASCII(b), &got))
		require.Equal(t, want, got)
		require.Equal(t, string(ASCII(b)), Strip(string(ASCII(b))))
	})
}
