package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

const (
	// gap separates columns.
	gap = 2
	// maxText bounds the characters of a fact: more than a question in the list has.
	maxText = 16 << 10
	// narrow is the least width that shortening leaves a column.
	narrow = 8
)

// View implements tea.Model.
func (m *model) View() tea.View {
	l := &m.lists[m.at]
	lines := append([]string{m.title(), m.tabs()}, m.table(l)...)
	lines = append(lines, m.rule())
	lines = append(lines, m.details(l)...)
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(min(len(lines), m.height-2), 0)], m.bottom()...)
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// line cuts a text, which is one line and cannot steer the terminal, to the width.
func (m *model) line(style terminal.Style, text string) string {
	return terminal.Paint(m.color, style, ansi.Truncate(text, m.width, "…"))
}

func (m *model) title() string {
	l := &m.lists[m.at]
	text := "Waggle  " + terminal.Line(m.url, m.width)
	if l.err == nil {
		return m.line(terminal.Bold, text)
	}
	text += "  "
	if !l.at.IsZero() {
		text += "as of " + l.at.Local().Format(time.TimeOnly) + ", "
	}
	return m.line(terminal.Red, text+"no answer: "+terminal.Line(socket.Answered(l.err).Error(), 4*m.width))
}

// tabs shows the rooms. The inbox has the number of what waits.
func (m *model) tabs() string {
	var b strings.Builder
	for i, r := range m.rooms {
		name := fmt.Sprintf("%d %s", i+1, r.name)
		if i == sessions && m.state != "" {
			name += ": " + m.state
		}
		if n := len(m.lists[questions].rows); i == questions && n > 0 {
			name += fmt.Sprintf(" (%d)", n)
		}
		style := terminal.Dim
		if i == m.at {
			style, name = terminal.Bold, "["+name+"]"
		} else if i == questions && len(m.lists[questions].rows) > 0 {
			style = terminal.Yellow
		}
		if ansi.StringWidth(b.String())+len(name)+gap > m.width {
			break
		}
		b.WriteString(terminal.Paint(m.color, style, name) + strings.Repeat(" ", gap))
	}
	return b.String()
}

// table shows the part of the list that holds the selected row.
func (m *model) table(l *list) []string {
	r := m.rooms[m.at]
	if len(l.rows) == 0 {
		text := r.empty
		if m.at == sessions && m.state != "" {
			text = "No session is " + m.state + "."
		}
		if l.at.IsZero() {
			text = ""
		}
		return []string{"", m.line(terminal.Dim, text)}
	}
	at := max(m.picked(l), 0)
	first := max(0, min(at-m.page()/2, len(l.rows)-m.page()))
	shown := l.rows[first:min(first+m.page(), len(l.rows))]
	widths := m.widths(r.head, shown)
	out := []string{m.line(terminal.Dim, "  "+columns(r.head, widths))}
	for i, one := range shown {
		mark, style := "  ", one.style
		if first+i == at {
			mark, style = "› ", terminal.Bold
		}
		out = append(out, m.line(style, mark+columns(one.cells, widths)))
	}
	return out
}

// widths returns the widths of columns. The widest ones give way until all fit.
func (m *model) widths(head []string, shown []row) []int {
	out := make([]int, len(head))
	sum := gap*len(head) + gap
	for i := range head {
		out[i] = ansi.StringWidth(head[i])
		for _, r := range shown {
			out[i] = max(out[i], ansi.StringWidth(terminal.Line(r.cells[i], m.width)))
		}
		sum += out[i]
	}
	for sum > m.width {
		widest := 0
		for i := range out {
			if out[i] > out[widest] {
				widest = i
			}
		}
		if out[widest] <= narrow {
			break
		}
		out[widest]--
		sum--
	}
	return out
}

func columns(cells []string, widths []int) string {
	var b strings.Builder
	for i, c := range cells {
		text := ansi.Truncate(terminal.Line(c, 4*widths[i]+1), widths[i], "…")
		b.WriteString(text + strings.Repeat(" ", widths[i]-ansi.StringWidth(text)+gap))
	}
	return strings.TrimRight(b.String(), " ")
}

func (m *model) rule() string {
	return terminal.Paint(m.color, terminal.Dim, strings.Repeat("─", max(m.width, 0)))
}

// details shows the selected row in full: long lines are wrapped.
func (m *model) details(l *list) []string {
	i := m.picked(l)
	if i < 0 {
		return nil
	}
	var out []string
	for _, f := range l.rows[i].detail {
		if text := terminal.Line(f.text, maxText); text != "" {
			out = append(out, strings.Split(ansi.Wrap(fmt.Sprintf("%-10s %s", f.name, text), m.width, ""), "\n")...)
		}
	}
	return out
}

// bottom is a note or the text that is being written, and the keys.
func (m *model) bottom() []string {
	keys := "1-7 rooms   ↑↓ select   q quit"
	if m.at == sessions {
		keys = "f filter   " + keys
	}
	if q := m.asking(); q != nil {
		keys = takes(q) + "   " + keys
	}
	note := m.line(terminal.Yellow, terminal.Line(m.note, 4*m.width))
	if m.writing != nil {
		m.writing.SetWidth(max(m.width-ansi.StringWidth(m.writing.Prompt)-1, 1))
		note, keys = ansi.Truncate(m.writing.View(), m.width, ""), "Enter sends   Esc drops it"
	}
	return []string{note, m.line(terminal.Dim, keys)}
}
