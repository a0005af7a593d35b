package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// The names of the members of a task, see namesTasks.
var (
	namesID           = []string{"id", "taskid", "stepid", "key", "number"}
	namesTitle        = []string{"title", "name", "task", "step", "label"}
	namesDescription  = []string{"description", "objective", "details", "detail", "notes", "note", "instructions", "goal", "content", "prompt"}
	namesDependencies = []string{"dependencies", "dependson", "deps", "depends", "dependency", "requires", "prerequisites", "needs"}
	namesPriority     = []string{"priority"}
	namesCapability   = []string{"capability", "requiredcapability"}
	namesContext      = []string{"context"}
	namesTokens       = []string{"estimatedtokens"}
	namesSeconds      = []string{"estimatedtimeseconds", "estimatedseconds", "estimatedtime"}
	namesExtra        = []string{"extra"}
)

// ranks are the priorities that are given as words.
var ranks = map[string]int{"urgent": 0, "critical": 0, "high": 1, "medium": 2, "normal": 2, "low": 3}

// draft is a task that is being made: its dependencies are names as they were written.
type draft struct {
	task    event.Step
	written string // the id as it was written; empty = absent
	number  bool   // it was written as a number
}

// makeTasks makes tasks of list elements. repair replaces invalid ids with generated ones.
func makeTasks(list []json.RawMessage, repair bool) ([]event.Step, error) {
	if len(list) > MaxTasks {
		return nil, Check(make([]event.Step, len(list)))
	}
	drafts := make([]draft, 0, len(list))
	p := &problems{}
	for i, raw := range list {
		d := draft{}
		if why := d.read(raw); why != "" {
			p.add("tasks["+strconv.Itoa(i)+"]", "task %d %s", i+1, why)
		}
		drafts = append(drafts, d)
	}
	if err := p.fault(); err != nil {
		return nil, err
	}
	name(drafts, repair)
	resolve(drafts)
	tasks := make([]event.Step, 0, len(drafts))
	for _, d := range drafts {
		tasks = append(tasks, d.task)
	}
	if err := Check(tasks); err != nil {
		return nil, err
	}
	return tasks, nil
}

// read reads an element of a list, and returns the problem, or "".
func (d *draft) read(raw json.RawMessage) string {
	var title string
	if json.Unmarshal(raw, &title) == nil && first(raw) == '"' {
		d.task.Title = strings.TrimSpace(title)
		d.headline()
		return ""
	}
	o, ok := asObject(raw)
	if !ok {
		return "is neither an object nor a text"
	}
	return d.merge(o)
}

// merge overrides those members of the task that the object has; null clears one.
func (d *draft) merge(o object) string {
	left := maps.Clone(o)
	for _, m := range members {
		for _, key := range o.all(m.names) {
			if m.set(d, o[key]) {
				delete(left, key)
				break
			}
			if m.must {
				return fmt.Sprintf("has a %s that cannot be understood: %s", key, show(string(o[key])))
			}
		}
	}
	d.headline()
	d.keep(left)
	return ""
}

// all returns the members with any of the names, in the order of the names.
func (o object) all(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, o.keys(n)...)
	}
	return out
}

// members says how each member of a task is read. A value that cannot be used is an
// error if the member must be understood, and otherwise kept beside the task.
var members = []struct {
	names []string
	must  bool
	set   func(*draft, json.RawMessage) bool
}{
	{namesID, true, (*draft).setID},
	{namesTitle, false, func(d *draft, v json.RawMessage) bool { return setText(&d.task.Title, v) }},
	{namesDescription, false, func(d *draft, v json.RawMessage) bool { return setText(&d.task.Description, v) }},
	{namesDependencies, true, (*draft).setDependencies},
	{namesPriority, false, (*draft).setPriority},
	{namesCapability, false, func(d *draft, v json.RawMessage) bool { return setText(&d.task.Capability, v) }},
	{namesContext, false, (*draft).setContext},
	{namesTokens, false, func(d *draft, v json.RawMessage) bool { return setAmount(&d.task.EstimatedTokens, v) }},
	{namesSeconds, false, func(d *draft, v json.RawMessage) bool { return setAmount(&d.task.EstimatedSeconds, v) }},
	{namesExtra, false, (*draft).setExtra},
}

func isNull(v json.RawMessage) bool { return strings.TrimSpace(string(v)) == "null" }

func (d *draft) setID(v json.RawMessage) bool {
	s, number, ok := reference(v)
	d.written, d.number = s, number
	return ok
}

// reference reads an id: a text or a whole number. null is an absent id.
func reference(v json.RawMessage) (s string, number, ok bool) {
	if isNull(v) {
		return "", false, true
	}
	if json.Unmarshal(v, &s) == nil {
		return strings.TrimSpace(s), false, true
	}
	var n json.Number
	if json.Unmarshal(v, &n) == nil && wholeNumber.MatchString(n.String()) {
		return n.String(), true, true
	}
	return "", false, false
}

var wholeNumber = regexp.MustCompile(`^[0-9]{1,9}$`)

func setText(to *string, v json.RawMessage) bool {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return false
	}
	*to = strings.TrimSpace(s)
	return true
}

func (d *draft) setDependencies(v json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		var s string
		if json.Unmarshal(v, &s) != nil {
			list = []json.RawMessage{v}
		}
		for part := range strings.SplitSeq(s, ",") {
			if q, err := json.Marshal(part); err == nil && strings.TrimSpace(part) != "" {
				list = append(list, q)
			}
		}
	}
	var out []string
	for _, e := range list {
		if o, ok := asObject(e); ok {
			key, ok := o.find(namesID)
			if !ok {
				return false
			}
			e = o[key]
		}
		s, _, ok := reference(e)
		if !ok {
			return false
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	d.task.Dependencies = out
	return true
}

func (d *draft) setPriority(v json.RawMessage) bool {
	var s string
	if json.Unmarshal(v, &s) == nil && !isNull(v) {
		if rank, ok := ranks[strings.ToLower(strings.TrimSpace(s))]; ok {
			d.task.Priority = rank
			return true
		}
		v = json.RawMessage(strings.TrimSpace(s))
	}
	var n float64
	if json.Unmarshal(v, &n) != nil || math.Abs(n) > math.MaxInt32 {
		return false
	}
	d.task.Priority = int(n)
	return true
}

func (d *draft) setContext(v json.RawMessage) bool {
	if d.task.Context = v; isNull(v) {
		d.task.Context = nil
	}
	return true
}

func setAmount(to *int64, v json.RawMessage) bool {
	var n float64
	if json.Unmarshal(v, &n) != nil || n < 0 || n > math.MaxInt32 {
		return false
	}
	*to = int64(n)
	return true
}

// setExtra restores members that an earlier decoding kept.
func (d *draft) setExtra(v json.RawMessage) bool {
	if isNull(v) {
		d.task.Extra = nil
		return true
	}
	o, ok := asObject(v)
	if ok {
		d.keep(o)
	}
	return ok
}

// keep adds members to those that we do not know.
func (d *draft) keep(o object) {
	if len(o) == 0 {
		return
	}
	have, _ := asObject(d.task.Extra)
	if have == nil {
		have = object{}
	}
	maps.Copy(have, o)
	if raw, err := json.Marshal(have); err == nil { // every member was JSON before
		d.task.Extra = raw
	}
}

// headline sees to it that the title is one line, and that nothing is lost of one
// that is longer.
func (d *draft) headline() {
	t := &d.task
	if t.Title == "" {
		t.Title = line(t.Description)
		return
	}
	short := line(t.Title)
	if short == t.Title {
		return
	}
	switch {
	case t.Description == "":
		t.Description = t.Title
	case !strings.HasPrefix(t.Description, t.Title):
		t.Description = t.Title + "\n\n" + t.Description
	}
	t.Title = short
}

// line returns the first line of a text, cut to the length of a title.
func line(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= MaxTitle {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:MaxTitle-len("...")])) + "..."
}

// name gives every draft its id: the written one, repaired if repair is set, or task_<position>.
func name(drafts []draft, repair bool) {
	taken := map[string]bool{}
	for i := range drafts {
		d := &drafts[i]
		if d.task.ID = d.written; repair {
			d.task.ID = fitID(d.written)
		}
		taken[d.task.ID] = true
	}
	for i := range drafts {
		d := &drafts[i]
		if d.task.ID != "" {
			continue
		}
		d.task.ID = fmt.Sprintf("task_%d", i+1)
		for n := 2; taken[d.task.ID]; n++ {
			d.task.ID = fmt.Sprintf("task_%d_%d", i+1, n)
		}
		taken[d.task.ID] = true
	}
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// fitID makes an id of any text; it is empty if nothing of it can be used.
func fitID(s string) string {
	if validID.MatchString(s) {
		return s
	}
	s = strings.Trim(unfit.ReplaceAllString(s, "_"), "_")
	return s[:min(len(s), 128)]
}

// resolve replaces each dependency with the id that it means: an id, an id as it was written, a
// title, or the number of a task. It leaves an unknown one for Check to report.
func resolve(drafts []draft) {
	byID, byWritten, byTitle := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, d := range slices.Backward(drafts) { // of equal ones the first counts
		byID[d.task.ID] = true
		byWritten[d.written] = d.task.ID
		byTitle[strings.ToLower(d.task.Title)] = d.task.ID
	}
	delete(byWritten, "")
	for i := range drafts {
		t := &drafts[i].task
		var out []string
		for _, s := range t.Dependencies {
			switch {
			case byID[s]:
			case byWritten[s] != "":
				s = byWritten[s]
			case byTitle[strings.ToLower(s)] != "":
				s = byTitle[strings.ToLower(s)]
			case strings.EqualFold(s, "none"):
				continue
			default:
				s = numbered(drafts, s)
			}
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		t.Dependencies = out
	}
}

var numberOf = regexp.MustCompile(`(?i)^(?:task|step)?[ _#-]*([0-9]{1,9})$`)

// numbered returns the id of the task that s gives the number of: the one whose id is
// that number or, if its id was made up, the one at that place.
func numbered(drafts []draft, s string) string {
	m := numberOf.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	for _, d := range drafts {
		if d.number && d.written == m[1] {
			return d.task.ID
		}
	}
	if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(drafts) && drafts[n-1].written == "" {
		return drafts[n-1].task.ID
	}
	return s
}
