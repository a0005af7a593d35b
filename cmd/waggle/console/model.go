package console

import (
	"io"
	"os"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

const (
	prompt    = "› "
	continued = "  "
	// maxInput is the number of rows that show an unsent message.
	maxInput = 8
	// maxLines bounds a message: the gateway accepts fewer bytes than so many lines have.
	maxLines = 10_000
	// maxRows bounds the rows below the text: the unfinished line, the status, an empty row, the message, and a hint.
	maxRows = maxInput + 4
	// busy answers Enter during an answer.
	busy = "the answer is not finished; Enter sends this afterwards, Ctrl-C on an empty line stops the answer"
)

// Messages of the console to its model.
type (
	wanted  struct{} // the console waits for a message
	partial string
	status  string
	panel   []terminal.Row
	turn    struct{} // the next picture of the spinner
	closing struct{}
)

// model is the state of the rows below the text. Only the program's one goroutine calls its methods.
type model struct {
	opt     Options
	got     chan<- result
	resized func(width, height int)

	input   textarea.Model
	waiting bool // the console waits for a message
	hint    string
	past    []string // the messages to scroll through, the unsent one last
	at      int

	partial       string
	status        string
	panel         []terminal.Row
	frame         int
	turning       bool
	color         bool
	width, height int
	closed        bool
}

func newModel(opt Options, got chan<- result, resized func(int, int)) *model {
	in := textarea.New()
	in.ShowLineNumbers = false
	in.Placeholder = opt.Placeholder
	in.DynamicHeight, in.MinHeight, in.MaxHeight, in.MaxContentHeight = true, 1, maxInput, maxLines
	in.MaxWidth = 0
	in.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	in.KeyMap.Paste = key.NewBinding() // terminals paste by themselves
	in.SetVirtualCursor(false)
	in.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return prompt
		}
		return continued
	})
	in.SetWidth(usualWidth - 1)
	in.Focus()
	m := &model{
		opt: opt, got: got, resized: resized, input: in, color: terminal.Color(opt.Out), width: usualWidth, height: usualHeight,
	}
	m.style(false)
	m.recall()
	return m
}

// style shows whether Enter sends.
func (m *model) style(ready bool) {
	plain := lipgloss.NewStyle()
	mark := plain.Faint(true)
	if ready {
		mark = plain.Bold(true)
	}
	s := textarea.StyleState{
		Base: plain, Text: plain, CursorLine: plain, EndOfBuffer: plain,
		Placeholder: plain.Faint(true), Prompt: mark, Selection: plain.Reverse(true),
	}
	m.input.SetStyles(textarea.Styles{Focused: s, Blurred: s})
}

// recall starts an empty message after the history.
func (m *model) recall() {
	m.past = []string{""}
	if m.opt.History != nil {
		m.past = append(append(m.past[:0:0], m.opt.History.Messages()...), "")
	}
	m.at = len(m.past) - 1
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.resized(msg.Width, msg.Height)
		m.input.MaxHeight = max(min(maxInput, msg.Height-4), 1)
		m.input.SetWidth(msg.Width - 1)
		return m, nil
	case wanted:
		m.waiting, m.hint = true, ""
		m.style(true)
		return m, nil
	case partial:
		m.partial = string(msg)
		return m, nil
	case status:
		m.status = string(msg)
		return m, m.spin()
	case panel:
		m.panel = msg
		return m, nil
	case turn:
		m.turning = false
		m.frame = (m.frame + 1) % len(terminal.SpinnerFrames)
		return m, m.spin()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		msg.Content = strings.ReplaceAll(strings.ReplaceAll(msg.Content, "\r\n", "\n"), "\r", "\n")
		return m, m.edit(msg)
	case closing:
		m.closed = true
		return m, tea.Quit
	}
	return m, m.edit(msg)
}

func (m *model) edit(msg tea.Msg) tea.Cmd {
	m.hint = ""
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}

// spin turns the spinner while the status has a text.
func (m *model) spin() tea.Cmd {
	if m.status == "" || m.turning {
		return nil
	}
	m.turning = true
	return tea.Tick(terminal.FrameTime, func(time.Time) tea.Msg { return turn{} })
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	empty := m.input.Length() == 0
	switch k.String() {
	case "enter":
		return m.enter()
	case "ctrl+c":
		if empty {
			m.interrupt()
		} else {
			m.input.Reset()
			m.recall()
		}
		return nil
	case "ctrl+d":
		if empty {
			m.leave()
			return nil
		}
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "up", "ctrl+p":
		if m.input.Line() == 0 && m.input.LineInfo().RowOffset == 0 {
			m.scroll(-1)
			return nil
		}
	case "down", "ctrl+n":
		if m.input.Line() == m.input.LineCount()-1 && m.input.LineInfo().RowOffset >= m.input.LineInfo().Height-1 {
			m.scroll(1)
			return nil
		}
	}
	return m.edit(k)
}

// enter sends the message, unless it continues on another line or the console is not ready for it.
func (m *model) enter() tea.Cmd {
	text := m.input.Value()
	switch {
	case m.unfinished(text):
		m.input.MoveToEnd()
		return tea.Batch(m.edit(tea.KeyPressMsg{Code: tea.KeyBackspace}), m.edit(tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt}))
	case strings.TrimSpace(text) == "":
		return nil
	case !m.waiting:
		m.hint = busy
		return nil
	}
	if m.opt.History != nil {
		m.opt.History.Add(text)
	}
	m.recall()
	m.input.Reset()
	m.waiting = false
	m.style(false)
	m.got <- result{text: text}
	return nil
}

// unfinished reports whether a backslash before the cursor, at the end of the message, asks for another line.
func (m *model) unfinished(text string) bool {
	return strings.HasSuffix(text, `\`) && !strings.HasSuffix(text, `\\`) && m.input.Line() == m.input.LineCount()-1
}

func (m *model) interrupt() {
	select {
	case m.opt.Interrupts <- os.Interrupt:
	default: // one message is still unread
	}
}

// leave ends the conversation if the console waits for a message.
func (m *model) leave() {
	if !m.waiting {
		m.hint = busy
		return
	}
	m.waiting = false
	m.got <- result{err: io.EOF}
}

// scroll moves through earlier messages. The unsent message stays at the end.
func (m *model) scroll(by int) {
	to := m.at + by
	if to < 0 || to >= len(m.past) {
		return
	}
	m.past[m.at] = m.input.Value()
	m.at = to
	m.input.SetValue(m.past[to])
	if by < 0 {
		m.input.MoveToEnd()
	}
}

// View implements tea.Model.
func (m *model) View() tea.View {
	if m.closed {
		return tea.NewView(m.partial)
	}
	var rows []string
	if m.partial != "" {
		rows = append(rows, m.partial)
	}
	for _, r := range m.panel {
		rows = append(rows, terminal.Paint(m.color, r.Style, m.row(r.Text)))
	}
	if m.status != "" && m.partial == "" { // otherwise the growing text shows progress
		rows = append(rows, terminal.Paint(m.color, terminal.Dim, m.row(terminal.SpinnerFrames[m.frame]+" "+m.status)))
	}
	below := ""
	if m.hint != "" {
		below = "\n" + terminal.Paint(m.color, terminal.Dim, m.row("  "+m.hint))
	}
	input := m.input.View()
	if room := m.height - lipgloss.Height(input+below) - 2; len(rows) > max(room, 0) {
		rows = rows[len(rows)-max(room, 0):]
	}
	rows = append(rows, "") // separates text and message
	v := tea.NewView(strings.Join(append(rows, input), "\n") + below)
	if c := m.input.Cursor(); c != nil {
		c.Y += len(rows)
		v.Cursor = c
	}
	return v
}

// row cuts a text to one row of the terminal.
func (m *model) row(text string) string {
	text = strings.NewReplacer("\n", " ", "\t", " ").Replace(terminal.Strip(text))
	return ansi.Truncate(text, max(m.width-1, 1), "…")
}

// The size of a terminal that does not report it.
const (
	usualWidth  = 80
	usualHeight = 24
)

// Options configure a console.
type Options struct {
	In, Out     *os.File
	Environ     []string         // in the form of os.Environ: TERM, NO_COLOR
	History     *History         // may be nil: the console then recalls no earlier messages
	Placeholder string           // shown while the message is empty
	Interrupts  chan<- os.Signal // receives Ctrl-C where it does not clear the message; must be buffered
	Screen      *terminal.Screen // shows all its output through the console while that is open
}

// result is a message of the user, or the end of the conversation.
type result struct {
	text string
	err  error
}
