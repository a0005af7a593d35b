package terminal

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// descriptor is implemented by *os.File; other values are not terminals.
type descriptor interface{ Fd() uintptr }

// Is reports whether v is a terminal, usually a file.
func Is(v any) bool {
	d, ok := v.(descriptor)
	return ok && term.IsTerminal(int(d.Fd()))
}

// Color reports whether text written to v should be coloured: on a terminal,
// unless NO_COLOR (no-color.org) or TERM=dumb says otherwise.
func Color(v any) bool {
	return Is(v) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Cyan   Style = "36"
)

// Paint returns text in the style, or unchanged if color is false.
func Paint(color bool, style Style, text string) string {
	if !color || style == Plain {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// FrameTime is the interval of the spinner's pictures: ten a second look smooth at little cost.
const FrameTime = 100 * time.Millisecond

// SpinnerFrames are the pictures of the spinner.
var SpinnerFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Display shows the screen's output in its place, above the input of the user.
type Display interface {
	io.Writer
	Status(text string) // beside a spinner; empty = no status
	Panel(rows []Row)   // empty = no panel
}

// Screen writes answers to out and, if err is a terminal, remarks and a spinner to
// err, so that neither damages the other. Methods may be called concurrently.
type Screen struct {
	mu       sync.Mutex
	out, err io.Writer
	display  Display // shows all output in the screen's place; nil = the screen itself
	live     bool    // err is a terminal
	color    bool
	styled   bool   // out shows styles
	status   string // the spinner's text; empty = no spinner
	panel    []Row  // shown instead, unless empty
	changed  bool   // the screen shows an older panel
	shown    int    // lines of the status or the panel that the screen shows
	inLine   bool   // out does not stand at the beginning of a line
	frame    int
	stop     chan struct{}
	done     chan struct{}
}

// NewScreen returns a screen. Close stops its spinner.
func NewScreen(out, err io.Writer) *Screen {
	return &Screen{out: out, err: err, live: Is(err), color: Color(err), styled: Color(out)}
}

// Live reports whether the screen shows remarks.
func (s *Screen) Live() bool { return s.live }

// Styled reports whether answers may have styles.
func (s *Screen) Styled() bool { return s.styled }

// Width returns how many columns the terminal has.
func (s *Screen) Width() int {
	width, _ := s.size()
	return width
}

// Through sends all later output to the display. A nil display ends that.
func (s *Screen) Through(d Display) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.display = d
}

// to returns w, or the display that replaces it. The caller holds the lock.
func (s *Screen) to(w io.Writer) io.Writer {
	if s.display != nil {
		return s.display
	}
	return w
}

// Write writes part of an answer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	s.clear()
	s.inLine = p[len(p)-1] != '\n'
	return s.to(s.out).Write(p)
}

// FreshLine ends an unfinished line of an answer.
func (s *Screen) FreshLine() {
	s.mu.Lock()
	inLine := s.inLine
	s.mu.Unlock()
	if inLine {
		_, _ = s.Write([]byte{'\n'})
	}
}

// Remark writes a line about progress, on a terminal only.
func (s *Screen) Remark(style Style, line string) {
	if s.live {
		s.remark(style, line)
	}
}

// Note writes a line that is part of the conversation, on a terminal or not.
func (s *Screen) Note(style Style, line string) { s.remark(style, line) }

// Warn writes a line that must be seen, on a terminal or not.
func (s *Screen) Warn(line string) { s.remark(Red, line) }

func (s *Screen) remark(style Style, line string) {
	s.FreshLine()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	_, _ = io.WriteString(s.to(s.err), Paint(s.color, style, line)+"\n")
}

// Status shows text next to a spinner until the next call; empty text removes it.
func (s *Screen) Status(text string) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.status = text
	switch {
	case s.display != nil:
		s.display.Status(text)
	case text != "":
		s.turn()
	}
}

// turn starts the spinner if it does not run. The caller holds the lock.
func (s *Screen) turn() {
	if s.stop == nil {
		s.stop, s.done = make(chan struct{}), make(chan struct{})
		go s.spin(s.stop, s.done)
	}
}

func (s *Screen) spin(stop, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(FrameTime)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			s.draw()
		}
	}
}

// draw paints the next picture, unless an answer has an unfinished line.
func (s *Screen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inLine || s.display != nil {
		return
	}
	if len(s.panel) > 0 {
		s.paint()
		return
	}
	if s.status == "" {
		return
	}
	s.frame = (s.frame + 1) % len(SpinnerFrames)
	s.shown = 1
	_, _ = io.WriteString(s.err, "\r\x1b[K"+Paint(s.color, Dim, SpinnerFrames[s.frame]+" "+s.status))
}

// clear removes the status line. The caller holds the lock.
func (s *Screen) clear() {
	if s.shown > 0 {
		_, _ = io.WriteString(s.err, erase(s.shown))
		s.shown = 0
	}
}

// Close removes the status line and the panel and stops the spinner. It may be called
// twice.
func (s *Screen) Close() {
	s.Status("")
	s.Panel(nil)
	s.mu.Lock()
	stop, done := s.stop, s.done
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		close(stop)
		<-done
	}
}

// Panel shows rows below all output until the next call; an empty list removes them. Rows are cut to the terminal's width,
// and from the top to its height. Without a terminal Panel does nothing.
func (s *Screen) Panel(rows []Row) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(rows) == 0 {
		s.clear()
	}
	s.panel = rows
	s.changed = true
	if s.display != nil {
		s.display.Panel(rows)
		return
	}
	s.turn()
}

// paint draws the panel if the screen shows an outdated one. The caller holds the lock.
func (s *Screen) paint() {
	if !s.changed && s.shown > 0 {
		return
	}
	width, height := s.size()
	rows := s.panel[max(len(s.panel)-height+1, 0):]
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Paint(s.color, r.Style, cut(Strip(r.Text), width-1)))
	}
	s.clear()
	_, _ = io.WriteString(s.err, b.String())
	s.shown, s.changed = len(rows), false
}

func (s *Screen) size() (width, height int) {
	if d, ok := s.err.(descriptor); ok {
		if w, h, err := term.GetSize(int(d.Fd())); err == nil && w > 1 && h > 1 {
			return w, h
		}
	}
	return usualWidth, usualHeight
}
