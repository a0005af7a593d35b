package mcp

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// clock is a time that only the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func guardOf(r io.Reader, c *clock) (*guard, *[]string) {
	dropped := []string{}
	if c == nil {
		c = &clock{}
	}
	return newGuard(r, c.now, func(b []byte) { dropped = append(dropped, string(b)) }), &dropped
}

func TestGuardLetsMessagesThroughAndDropsTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"{\"a\":1}\n":                  "{\"a\":1}\n",
		"hello\n{\"a\":1}\nbye\n":      "{\"a\":1}\n",
		"[INFO] x\n[{\"a\":1}]\n[1]\n": "[{\"a\":1}]\n",
		"\n \r\n\t{\"a\":1}\r\n":       "{\"a\":1}\r\n",
		"{\"a\":1}":                    "{\"a\":1}",
		"\"text\"\n7\nnull\n":          "",
		"[":                            "",
	} {
		g, _ := guardOf(strings.NewReader(in), nil)
		got, err := io.ReadAll(g)
		require.NoError(t, err, in)
		require.Equal(t, want, string(got), in)
	}
	g, dropped := guardOf(strings.NewReader("banner\n{}\n"+strings.Repeat("#", 3*guardBlock)+"\n{}\n"), nil)
	got, err := io.ReadAll(g)
	require.NoError(t, err)
	require.Equal(t, "{}\n{}\n", string(got))
	require.Len(t, *dropped, 2, "a line is reported once, however long it is")
	require.Equal(t, "banner\n", (*dropped)[0])
}

// The guard passes exactly the messages, for any division of writes and reads.
func TestGuardProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`\{"[a-z{}\[\] ]{0,40}"\}`),
			rapid.StringMatching(`[a-z"0-9][a-z{}\[\]]{0,40}`),
			rapid.Just(`[{"a":1},{"b":2}]`),
		)).Draw(t, "lines")
		var want bytes.Buffer
		for _, l := range lines {
			if l[0] == '{' || l[0] == '[' {
				want.WriteString(l + "\n")
			}
		}
		var in io.Reader = strings.NewReader(strings.Join(lines, "\n") + "\n")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 1:
			in = iotest.OneByteReader(in)
		case 2:
			in = iotest.DataErrReader(in)
		}
		g, _ := guardOf(in, nil)
		var out io.Reader = g
		if rapid.Bool().Draw(t, "small") {
			out = iotest.OneByteReader(g)
		}
		got, err := io.ReadAll(out)
		require.NoError(t, err)
		require.Equal(t, want.String(), string(got))
	})
}

// endless repeats a block without end.
type endless struct {
	block string
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		c := copy(p[n:], e.block[e.at:])
		n, e.at = n+c, (e.at+c)%len(e.block)
	}
	return len(p), nil
}

func TestGuardEndsAnEndlessLine(t *testing.T) {
	g, _ := guardOf(io.MultiReader(strings.NewReader("{"), &endless{block: strings.Repeat("x", 1000)}), nil)
	n, err := io.Copy(io.Discard, g)
	require.ErrorIs(t, err, errLineTooLong)
	require.LessOrEqual(t, n, int64(maxLine))
}

func TestGuardEndsAFlood(t *testing.T) {
	for _, block := range []string{strings.Repeat("x", 1000), strings.Repeat("\n", 1000), "{}\n", "no message\n"} {
		g, _ := guardOf(&endless{block: block}, nil)
		n, err := io.Copy(io.Discard, g)
		require.ErrorIs(t, err, errFlood, block)
		require.LessOrEqual(t, n, int64(floodBurst))
	}
	g, _ := guardOf(&endless{block: "{}\n"}, nil)
	n, err := io.Copy(io.Discard, g)
	require.ErrorIs(t, err, errFlood)
	require.Less(t, n/3, int64(floodBurst/messageCost), "so many messages can wait at most")
}

func TestGuardAllowsWhatIsAskedForAndWhatTrickles(t *testing.T) {
	c := &clock{t: time.Unix(0, 0)}
	g, _ := guardOf(&endless{block: "{\"big\":\"" + strings.Repeat("x", 1<<20) + "\"}\n"}, c)
	buf := make([]byte, 32<<10)
	for range 200 {
		g.credit() // For each call an answer of 1 MiB.
		for range (1 << 20) / len(buf) {
			_, err := io.ReadFull(g, buf)
			require.NoError(t, err)
		}
	}
	g, _ = guardOf(&endless{block: "{}\n"}, c)
	for range 100_000 { // 200 messages a second.
		c.t = c.t.Add(5 * time.Millisecond)
		_, err := io.ReadFull(g, buf[:3])
		require.NoError(t, err)
	}
}
