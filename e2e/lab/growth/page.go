package growth

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Page collects the tables of a run. It is safe for concurrent use.
type Page struct {
	Command string // that made it
	Remark  string // about the machine; may be empty

	mu       sync.Mutex
	sections []section
}

type section struct {
	title, about string
	table        *Table
}

// Add adds a table.
func (p *Page) Add(title, about string, t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sections = append(p.sections, section{title, about, t})
}

// String returns the page as Markdown.
func (p *Page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	b.WriteString("# Growth\n\nCosts of an installation as it grows: `waggle up`, one process with its own NATS server and the model `demo`. " +
		"`make growth`\nwrites this page. Times are medians. The line before the last of a table compares the last size with the first. " +
		"The slope\nin the last line is the exponent over all sizes: 0 stands for a cost that stays, 1 for one that grows with the size.\n\n")
	b.WriteString(Head(p.Command))
	if p.Remark != "" {
		fmt.Fprintf(&b, "- Remark: %s\n", p.Remark)
	}
	for _, s := range p.sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", s.title, s.about, s.table)
	}
	return b.String()
}

// Head says when, where and by which command a page of measurements was made.
func Head(command string) string {
	return fmt.Sprintf("- Date: %s\n- Machine: %s\n- Command: `%s`\n", time.Now().UTC().Format(time.DateOnly), machine(), command)
}

// machine describes the machine as far as it says.
func machine() string {
	out := fmt.Sprintf("%d cores", runtime.NumCPU())
	if name := value("/proc/cpuinfo", "model name"); name != "" {
		out += " of " + name
	}
	var kib int
	if _, err := fmt.Sscanf(value("/proc/meminfo", "MemTotal"), "%d", &kib); err == nil {
		out += fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
	}
	return out + ", " + runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()
}

// value returns the first value of a name in a file of lines "name: value", empty if the file does not have it.
func value(file, name string) string {
	raw, err := os.ReadFile(file) //nolint:gosec // a file of the kernel
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if key, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
