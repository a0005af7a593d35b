package markdown_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/markdown"
)

const sample = "# Title\n\nSome **bold** and *slanted* `code` with a [link](https://example.com/x) that is wrapped.\n\n" +
	"1. First\n   - nested\n2. Second\n\n- [ ] open\n- [x] done\n\n" +
	"| Name | Price |\n|:-----|------:|\n| tea | 3.50 |\n| coffee | 12.00 |\n\n" +
	"```go\nfmt.Println(\"x\")\n\nreturn\n```\n\n> quoted\n> text\n\nIt costs $5, as a[0] says, with an open [bracket\n"

func TestRender(t *testing.T) {
	require.Equal(t, `Title

Some bold and slanted code with a link
(https://example.com/x) that is wrapped.

1. First
   • nested
2. Second

• ☐ open
• ☑ done

Name   │ Price
───────┼──────
tea    │  3.50
coffee │ 12.00

▏ go
▏ fmt.Println("x")
▏
▏ return

│ quoted text

It costs $5, as a[0] says, with an open
[bracket
`, trimmed(ansi.Strip(markdown.Render(sample, 40))))
	shown := markdown.Render(sample, 40)
	for _, want := range []string{"\x1b[1;4mTitle", "\x1b[1mbold\x1b[0m", "\x1b[3mslanted", "\x1b[36mcode", "\x1b[4mlink"} {
		require.Contains(t, shown, want)
	}
}

func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func piecewise(text string, size int) string {
	var out strings.Builder
	w := markdown.Writer{Out: &out, Width: func() int { return 40 }}
	for len(text) > 0 {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		w.Write(text[:n])
		text = text[n:]
	}
	w.End()
	return out.String()
}

func TestPiecesAreShownBlockByBlock(t *testing.T) {
	whole := markdown.Render(sample, 40)
	for _, size := range []int{1, 7, 40, 1 << 20} {
		require.Equal(t, whole, piecewise(sample, size), "pieces of %d", size)
	}
	var out strings.Builder
	w := markdown.Writer{Out: &out, Width: func() int { return 40 }}
	w.Write("One.\n\n")
	require.Empty(t, out.String(), "the next line may belong to it")
	w.Write("T")
	require.Equal(t, "One.\n", out.String())
	w.Write("wo\n\n```\na\n\nb\n")
	require.Equal(t, "One.\n\nTwo\n", ansi.Strip(out.String()))
	w.End()
	require.Equal(t, "One.\n\nTwo\n\n▏ a\n▏ \n▏ b\n", ansi.Strip(out.String()))
}

// FuzzRender: whatever a model writes, no letter of its words is lost, and nothing but styles steers the terminal.
func FuzzRender(f *testing.F) {
	f.Add(sample)
	f.Add(strings.Repeat("> ", 200) + "deep " + strings.Repeat("*a_", 500))
	f.Add(strings.Repeat("- ", 100) + "x\n" + strings.Repeat("[", 300))
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
			t.Skip("a text is UTF-8 without control characters, and bounded here")
		}
		shown := markdown.Render(text, 60)
		rest := ansi.Strip(shown)
		require.NotContains(t, rest, "\x1b")
		require.LessOrEqual(t, len(shown), 200*len(text)+4096)
		_ = piecewise(text, 16)
	})
}
