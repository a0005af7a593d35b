package gen

import (
	"reflect"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const execPattern = `^exec_\d{8}_\d{6}_\d{6}$`

// rule is a constraint on a member that a Go type cannot express.
type rule struct {
	pattern string
	enum    []string
	min     *int
}

func atLeast(n int) rule             { return rule{min: &n} }
func oneOf(values ...string) rule    { return rule{enum: values} }
func matching(pattern string) rule   { return rule{pattern: pattern} }
func ruleKey(owner, m string) string { return owner + "/" + m }

func (r rule) apply(to node) node {
	switch {
	case r.pattern != "":
		to["pattern"] = r.pattern
	case r.enum != nil:
		to["enum"] = r.enum
	case r.min != nil:
		to["minimum"] = *r.min
	}
	return to
}

// rules holds the rules by member, or by type/member where a type differs.
var rules = map[string]rule{
	"specversion":  matching(`^1\.0$`),
	"id":           matching(`.`),
	"subject":      matching(`^[A-Za-z0-9_-]{1,64}\.(session|task|member|team|inbox|call)\.[A-Za-z0-9_-]{1,128}$`),
	"sequence":     atLeast(1),
	"traceparent":  matching(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`),
	"execution_id": matching(execPattern),
	"attempt":      atLeast(1),
	"current":      atLeast(1),
	"stage":        oneOf("", event.StagePlanning, event.StageSolving, event.StageAggregation),
	"mode":         oneOf("", event.ModePlan, event.ModeSteps),
	"decision":     oneOf(event.DecisionApprove, event.DecisionModify, event.DecisionReject),
	"on_busy":      oneOf("", event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt),
	"queued":       atLeast(0),
	"duration_ms":  atLeast(0),
	"bytes":        atLeast(0),
	"digest":       matching(`^[0-9a-f]{64}$`),
	"stop_reason":  oneOf(event.StopReasons...),
	"level":        oneOf("info", "warning"),
	"code":         matching(`^[A-Z][A-Z0-9_]*$`),

	// A run that is cancelled while it waits has no execution id yet.
	"run.cancelled/execution_id": matching(`^(exec_\d{8}_\d{6}_\d{6})?$`),
	// Members of teams have other roles.
	"message.started/role":   oneOf(event.RoleUser, event.RoleAssistant),
	"message.completed/role": oneOf(event.RoleUser, event.RoleAssistant),
	// Notices have other codes.
	"notice/code": matching(`.`),
	// A restored session may have waited for a decision, or may have been idle.
	"session.restored/stage": oneOf(event.StagePlanning, "confirmation", event.StageSolving, event.StageAggregation, "idle"),
	// A replan happens in the active run, or starts one.
	"notice/mode": oneOf("", "in_run", "restart"),
	// A job can fail before any worker claimed it.
	"job.failed/attempt": atLeast(0),
	// A run can fail before any worker claimed it.
	"run.failed/attempt": atLeast(0),
	// A task of the swarm may be reported, refused and ended before any agent had it.
	"task.created/attempt":  atLeast(0),
	"task.queued/attempt":   atLeast(0),
	"task.messaged/attempt": atLeast(0),
	"task.refused/attempt":  atLeast(0),
	"task.finished/attempt": atLeast(0),
	// An agent's notification has the agent's own level.
	"task.notified/level": matching(`.`),
}

// common is the name of the definition that all events of a log share.
const common = "event"

// eventBundle returns the bundle of the canonical events. It allows unknown members: a later version may add some,
// and readers preserve them.
func eventBundle(c *comments) ([]byte, error) {
	d, names := newDefinitions(c), []string{}
	owner := map[reflect.Type]string{reflect.TypeFor[event.Event](): common}
	for _, info := range event.Catalogue {
		owner[reflect.TypeOf(info.Data)] = string(info.Type)
	}
	d.value = func(outer reflect.Type, f reflect.StructField) node {
		name, _ := jsonName(f)
		r, ok := rules[ruleKey(owner[outer], name)]
		if !ok {
			r = rules[name]
		}
		return r.apply(d.of(f.Type))
	}
	d.flat = func(outer, embedded reflect.Type) bool {
		for f := range embedded.Fields() {
			name, _ := jsonName(f)
			if _, ok := rules[ruleKey(owner[outer], name)]; ok {
				return true
			}
		}
		return false
	}
	d.finish = func(t reflect.Type, _ node, own *members) {
		if t == reflect.TypeFor[event.Event]() {
			own.set("data", node{"type": "object"})
			own.set("from", node{ // of an event that a gateway has merged; no log has it
				"type": "integer", "minimum": 1,
				"description": "Of consecutive parts of one text that a slow reader gets as one event: the first sequence that the event stands for.",
			})
		}
	}
	envelope := d.object(reflect.TypeFor[event.Event](), false)
	envelope["description"] = "The common members of all events of a log."
	d.messages.set(common, envelope)
	for _, info := range event.Catalogue {
		name := string(info.Type)
		names = append(names, name)
		d.messages.set(name, node{
			"description": upper(info.Meaning) + ".", "allOf": []node{to(common)},
			"properties": node{"type": node{"const": name}, "data": d.ref(reflect.TypeOf(info.Data))},
		})
	}
	return d.encode("event", "Canonical events", names)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
