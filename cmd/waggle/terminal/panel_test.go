package terminal

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// picture returns the rows that a terminal shows after the text.
func picture(text string) []string {
	lines := []string{""}
	at := 0
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= 'A' && r <= 'Z' }) + 2
			switch text[end] {
			case 'A':
				at -= int(text[2] - '0') // tests move fewer than ten lines
			case 'K':
				lines[at] = ""
			case 'J':
				lines = append(lines[:at], "")
			}
			text = text[end+1:]
			continue
		case text[0] == '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
		case text[0] != '\r':
			lines[at] += text[:1]
		}
		text = text[1:]
	}
	return lines
}

// display records the calls of its methods.
type display struct {
	bytes.Buffer
	status string
	rows   []Row
}

func (d *display) Status(text string) { d.status = text }
func (d *display) Panel(rows []Row)   { d.rows = rows }

func TestThePanelStaysBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both bytes.Buffer
		s := NewScreen(&both, &both)
		s.live = true
		rows := []Row{{Bold, "a team"}, {Plain, "a\tmember\n\x1b[2J"}, {Plain, strings.Repeat("x", 200)}}
		s.Panel(rows)
		tick(1)
		require.Equal(t, []string{"a team", "a member ", strings.Repeat("x", 78) + "…"}, picture(both.String()))
		s.Note(Plain, "first")
		_, _ = s.Write([]byte("second\n"))
		tick(2)
		require.Equal(t, []string{"first", "second", "a team"}, picture(both.String())[:3])
		written := both.Len()
		tick(5)
		require.Equal(t, written, both.Len(), "what has not changed is not painted again")
		s.Panel(rows[:1])
		tick(1)
		require.Equal(t, []string{"first", "second", "a team"}, picture(both.String()))
		var display display
		s.Through(&display)
		require.Equal(t, []string{"first", "second", ""}, picture(both.String()), "the display shows it")
		s.Note(Plain, "third")
		s.Status("busy")
		s.Panel(rows[:1])
		require.Equal(t, "third\n|busy|a team", display.String()+"|"+display.status+"|"+display.rows[0].Text)
		s.Status("")
		s.Through(nil)
		tick(1)
		require.Len(t, picture(both.String()), 3)
		s.Panel(nil)
		require.Equal(t, []string{"first", "second", ""}, picture(both.String()))
		s.Close()
	})
}

func TestAPanelIsNoHigherThanTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both bytes.Buffer
		s := NewScreen(&both, &both)
		s.live = true
		s.Panel(make([]Row, 100))
		tick(1)
		require.Len(t, picture(both.String()), usualHeight-1)
		s.Close()
	})
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", time.Minute: "1 min", time.Hour: "1 h", 47 * time.Hour: "47 h", 48 * time.Hour: "2 days",
	} {
		require.Equal(t, want, Age(d))
	}
}
