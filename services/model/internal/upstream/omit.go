package upstream

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

// Option is a part of a request that the request could do without. Servers that do not know it, or do not take it, refuse
// the whole request.
type Option struct {
	Name  string
	Words []string // in lower case; a refusal that has one of them means this part
	Named bool     // it is omitted only after a refusal that has one of the words
	Once  bool     // a refusal says nothing about the next request
}

// named reports whether a refusal means the option.
func (o Option) named(refusal string) bool {
	return slices.ContainsFunc(o.Words, func(w string) bool { return strings.Contains(refusal, w) })
}

// Without names the options that a request omits.
type Without map[string]bool

// Habits remembers, for each model of a server, the options that it refuses. The zero value is ready for concurrent use.
type Habits struct {
	mu      sync.Mutex
	refused map[string][]string
	always  []string // by every model of the server

	suspected map[string][]string // omitted once after a refusal that did not name it, and answered
}

// Expect names options that all models of the server refuse. Call it before the first request.
func (h *Habits) Expect(names ...string) { h.always = names }

// maxHabits bounds the remembered models, whose names come from requests, and the options of each.
const maxHabits = 256

// known returns what the model refuses.
func (h *Habits) known(name string) Without {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := Without{}
	for _, o := range h.always {
		out[o] = true
	}
	for _, o := range h.refused[name] {
		out[o] = true
	}
	return out
}

func (h *Habits) learn(name string, names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == nil || len(h.refused) >= maxHabits {
		h.refused = map[string][]string{}
	}
	all := slices.Concat(h.refused[name], names)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) <= maxHabits {
		h.refused[name] = all
	}
}

// Ask makes a request with all options that the model is not known to refuse. If the server refuses it, Ask omits one option
// after the other, those first that the refusal names: a refusal for another reason keeps the option out of the way, the same
// refusal puts it back. An option counts as refused only if the request without it was answered, and after a refusal that did
// not name it only if the same happens at the next request: it may have had another reason. Ask returns what the answered
// request omitted, also because of earlier refusals, or the first refusal.
func (h *Habits) Ask(name string, options func(refusal string) []Option, attempt func(Without) error) (omitted []string, err error) {
	without := h.known(name)
	first := attempt(without)
	if err = first; err == nil {
		h.clear(name)
		return slices.Sorted(maps.Keys(without)), nil
	}
	tried := Without{}
	for refuses(err) {
		o, ok := next(options, said(err), without, tried)
		if !ok {
			return nil, first
		}
		tried[o.Name], without[o.Name] = true, true
		again := attempt(without)
		switch {
		case again == nil:
			h.settle(name, options(said(err)), append(omitted, o.Name), said(first))
			return slices.Sorted(maps.Keys(without)), nil
		case !refuses(again):
			return nil, again
		case same(said(again), said(err)):
			delete(without, o.Name)
		default:
			omitted, err = append(omitted, o.Name), again
		}
	}
	return nil, err
}

// settle remembers what was omitted, except for options that a refusal says nothing about.
func (h *Habits) settle(name string, options []Option, omitted []string, refusal string) {
	var lasting []string
	for _, o := range options {
		if slices.Contains(omitted, o.Name) && !o.Once && (o.Named || o.named(refusal) || h.suspects(name, o.Name)) {
			lasting = append(lasting, o.Name)
		}
	}
	h.learn(name, lasting)
}

// suspects reports whether the option was suspected before, and suspects it from now on.
func (h *Habits) suspects(name, option string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(h.suspected[name], option) {
		return true
	}
	if h.suspected == nil || len(h.suspected) >= maxHabits {
		h.suspected = map[string][]string{}
	}
	h.suspected[name] = append(h.suspected[name], option)
	return false
}

// clear forgets suspicions after an answer to a request with all options.
func (h *Habits) clear(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.suspected, name)
}

// next returns the option to omit next.
func next(options func(string) []Option, refusal string, without, tried Without) (Option, bool) {
	left := slices.DeleteFunc(options(refusal), func(o Option) bool {
		return without[o.Name] || tried[o.Name] || o.Named && !o.named(refusal)
	})
	if len(left) == 0 {
		return Option{}, false
	}
	slices.SortStableFunc(left, func(a, b Option) int { return cmp.Compare(rank(a, refusal), rank(b, refusal)) })
	return left[0], true
}

func rank(o Option, refusal string) int {
	if o.named(refusal) {
		return 0
	}
	return 1
}

// refuses reports whether an error may mean that the server does not take a part of the request.
func refuses(err error) bool {
	s, ok := errors.AsType[*StatusError](err)
	return ok && !s.Late && s.Class() == fault.ModelRefused && (s.Status == http.StatusBadRequest || s.Status == http.StatusUnprocessableEntity)
}

// said returns the words of a refusal, in lower case.
func said(err error) string {
	s, ok := errors.AsType[*StatusError](err)
	if !ok {
		return ""
	}
	return strings.ToLower(s.Kind + " " + s.Param + " " + s.Detail)
}

// same reports whether two refusals say the same: words with digits, such as the ids of requests, do not count.
func same(a, b string) bool { return withoutIDs(a) == withoutIDs(b) }

func withoutIDs(s string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(s), func(w string) bool { return strings.ContainsAny(w, "0123456789") }), " ")
}

// ToolOption names the option of a tool in its present form: one that has changed since is offered again.
func ToolOption(t model.ToolSpec) string {
	sum := sha256.Sum256(append([]byte(t.Description+"\n"), t.InputSchema...))
	return "tool " + t.Name + " " + hex.EncodeToString(sum[:6])
}

// ToolOptions returns the options of the tools that a refusal names.
func ToolOptions(req model.Request, refusal string) (out []Option) {
	for _, t := range req.Tools {
		if names(refusal, t.Name) {
			out = append(out, Option{Name: ToolOption(t), Words: []string{strings.ToLower(t.Name)}})
		}
	}
	return out
}

// LeftOut returns the tools of the request that were omitted.
func LeftOut(req model.Request, omitted []string) (out []model.LeftOut) {
	for _, t := range req.Tools {
		if slices.Contains(omitted, ToolOption(t)) {
			out = append(out, model.LeftOut{Tool: t.Name, Reason: "the model's service refused its schema"})
		}
	}
	return out
}

// names reports whether a refusal, in lower case, holds the name as a word.
func names(refusal, name string) bool {
	name = strings.ToLower(name)
	for at := 0; ; {
		i := strings.Index(refusal[at:], name)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		if (i == 0 || !inName(refusal[i-1])) && (at == len(refusal) || !inName(refusal[at])) {
			return true
		}
	}
}

func inName(c byte) bool { return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }
