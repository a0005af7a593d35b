package gen

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	draft       = "https://json-schema.org/draft/2020-12/schema"
	execPattern = `^exec_\d{8}_\d{6}_\d{6}$`
)

// rule is what a Go type cannot say about a member.
type rule struct {
	pattern string
	enum    []string
	min     *int
}

func atLeast(n int) rule             { return rule{min: &n} }
func oneOf(values ...string) rule    { return rule{enum: values} }
func matching(pattern string) rule   { return rule{pattern: pattern} }
func (r rule) apply(to *schema)      { to.Pattern, to.Enum, to.Minimum = r.pattern, r.enum, r.min }
func ruleKey(owner, m string) string { return owner + "/" + m }

// rules holds the rules by member, or by type/member where a type differs.
var rules = map[string]rule{
	"specversion":  matching(`^1\.0$`),
	"id":           matching(`.`),
	"subject":      matching(`^[A-Za-z0-9_-]{1,64}\.(session|task|agent|team|client)\.[A-Za-z0-9_-]{1,128}$`),
	"sequence":     atLeast(1),
	"traceparent":  matching(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`),
	"execution_id": matching(execPattern),
	"attempt":      atLeast(1),
	"current":      atLeast(1),
	"stage":        oneOf("", event.StagePlanning, event.StageSolving, event.StageAggregation),
	"mode":         oneOf("", event.ModePlan, event.ModeTasks),
	"decision":     oneOf(event.DecisionApprove, event.DecisionModify, event.DecisionReject),
	"on_busy":      oneOf("", event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt),
	"queued":       atLeast(0),
	"duration_ms":  atLeast(0),
	"bytes":        atLeast(0),
	"digest":       matching(`^[0-9a-f]{64}$`),
	"stop_reason":  oneOf("end", "tool_calls", "length", "filtered"),
	"level":        oneOf("info", "warning"),
	"code":         matching(`^[A-Z][A-Z0-9_]*$`),

	// A run that is cancelled while it waits has no execution id yet.
	"run.cancelled/execution_id": matching(`^(exec_\d{8}_\d{6}_\d{6})?$`),
	// Members of teams have roles of their own.
	"message.started/role":   oneOf(event.RoleUser, event.RoleAssistant),
	"message.completed/role": oneOf(event.RoleUser, event.RoleAssistant),
	// Notices have codes of their own.
	"notice/code": matching(`.`),
	// A restored session may have waited for a decision, or for nothing.
	"session.restored/stage": oneOf(event.StagePlanning, "confirmation", event.StageSolving, event.StageAggregation, "idle"),
	// A replan happens in the run that is on, or starts one.
	"notice/mode": oneOf("", "in_run", "restart"),
	// A unit of work can fail before any worker claimed it.
	"turn.failed/attempt": atLeast(0),
	// A run can fail before any worker claimed it.
	"run.failed/attempt": atLeast(0),
	// A task of the swarm is told of, refused and ended before any agent had it.
	"task.created/attempt":  atLeast(0),
	"task.queued/attempt":   atLeast(0),
	"task.messaged/attempt": atLeast(0),
	"task.refused/attempt":  atLeast(0),
	"task.finished/attempt": atLeast(0),
	// What an agent says has the agent's own level.
	"task.notified/level": matching(`.`),
}

// eventSchemas returns the schemas by file name without .json.
func eventSchemas(c *comments) map[string]*schema {
	out := map[string]*schema{"event": envelope(c, "event", "What every event of a log has in common.")}
	for _, info := range event.Catalogue {
		name := string(info.Type)
		s := envelope(c, name, upper(info.Meaning)+".")
		s.Properties.set("type", &schema{Const: name})
		data := object(c, name, reflect.TypeOf(info.Data))
		data.Description = c.about(reflect.TypeOf(info.Data).Name(), name)
		s.Properties.set("data", data)
		out[name] = s
	}
	return out
}

func envelope(c *comments, name, description string) *schema {
	s := object(c, name, reflect.TypeFor[event.Event]())
	s.Dialect, s.ID, s.Title, s.Description = draft, "urn:waggle:event:"+name, name, description
	s.Properties.set("data", &schema{Type: "object"})
	return s
}

// object returns the schema of a struct. Members that it does not name are allowed:
// a later version may add some, and they are carried along.
func object(c *comments, owner string, t reflect.Type) *schema {
	s := &schema{Type: "object", Properties: newProperties()}
	s.members(c, owner, t)
	return s
}

// members adds the members of a struct, and those of the structs that it embeds.
func (s *schema) members(c *comments, owner string, t reflect.Type) {
	for f := range t.Fields() {
		if f.Anonymous {
			s.members(c, owner, f.Type)
			continue
		}
		name, optional := jsonName(f)
		if name == "-" {
			continue
		}
		member := member(c, f.Type)
		member.Description = c.fields[t.Name()+"."+f.Name]
		if r, ok := rules[ruleKey(owner, name)]; ok {
			r.apply(member)
		} else if r, ok := rules[name]; ok {
			r.apply(member)
		}
		s.Properties.set(name, member)
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
}

func member(c *comments, t reflect.Type) *schema {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return &schema{}
	case t == reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Format: "date-time"}
	}
	switch t.Kind() {
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Pointer:
		return member(c, t.Elem())
	case reflect.Struct:
		return nested(c, t)
	case reflect.Slice:
		return &schema{Type: "array", Items: member(c, t.Elem())}
	}
	panic(fmt.Sprintf("gen: no schema for a member of type %s", t))
}

// nested returns the schema of a struct within another. One that holds itself is
// referred to where it comes again.
func nested(c *comments, t reflect.Type) *schema {
	if c.open[t] {
		c.again[t] = true
		return &schema{Ref: "#" + t.Name()}
	}
	c.open[t] = true
	s := object(c, "", t)
	delete(c.open, t)
	if c.again[t] {
		s.Anchor = t.Name()
		delete(c.again, t)
	}
	return s
}

// jsonName returns the name of a struct's field in JSON and whether it may be absent.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, options == "omitempty" || options == "omitzero"
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
