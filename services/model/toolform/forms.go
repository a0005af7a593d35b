package toolform

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/services/model"
)

// Forms remembers the forms of tools, which come with every request. The zero value is ready for concurrent use.
type Forms struct {
	mu   sync.Mutex
	made map[[sha256.Size]byte]made
}

type made struct {
	tool   model.ToolSpec
	reason string // why it has no form; empty if it has
}

// maxMade bounds the remembered forms. When they are too many, all are made anew.
const maxMade = 1024

// Fit returns the tools in the form of a dialect, and those that have none.
func (f *Forms) Fit(list []model.ToolSpec, d Dialect) (fit []model.ToolSpec, out []model.LeftOut) {
	for _, t := range list {
		switch m := f.one(t, d); {
		case m.reason != "":
			out = append(out, model.LeftOut{Tool: t.Name, Reason: m.reason})
		default:
			fit = append(fit, m.tool)
		}
	}
	return fit, out
}

func (f *Forms) one(t model.ToolSpec, d Dialect) made {
	key := sha256.Sum256([]byte(strings.Join([]string{t.Name, t.Description, string(t.InputSchema), strconv.Itoa(int(d))}, "\x00")))
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.made[key]; ok {
		return m
	}
	tool, err := Fit(t, d)
	m := made{tool: tool}
	if err != nil {
		m.reason = strings.TrimPrefix(err.Error(), "the tool "+t.Name+": ")
	}
	if f.made == nil || len(f.made) >= maxMade {
		f.made = map[[sha256.Size]byte]made{}
	}
	f.made[key] = m
	return m
}
