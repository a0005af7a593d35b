package swarm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// anyObject is the input schema of tools without a schema.
var anyObject = json.RawMessage(`{"type":"object"}`)

// replica is one connection of a service with its tools. It is immutable.
type replica struct {
	*member
	tools map[string]*offer.Tool // by their own ids
	// others is the number of calls of other processes when the directory reported it: this process knows its own number
	// better.
	others int
	wrong  []error // errors of tools that cannot be offered
}

// compiler compiles a schema, or returns a cached one.
type compiler func(json.RawMessage) (*schema.Schema, error)

// newReplica learns the tools of a member.
func newReplica(m *member, reserved []string, compile compiler) *replica {
	r := &replica{member: m, tools: make(map[string]*offer.Tool)}
	p := &m.participant
	prefix := servicePrefix(p.ID, reserved)
	for _, t := range p.Tools {
		if len(r.tools) >= bound.MaxTools {
			r.wrong = append(r.wrong, fmt.Errorf("more than %d tools", bound.MaxTools))
			break
		}
		if _, twice := r.tools[t.ID]; twice {
			r.wrong = append(r.wrong, fmt.Errorf("tool %s: it is listed twice", bound.Shorten(t.ID, bound.Title)))
			continue
		}
		k, err := learnParticipantTool(prefix, p.ID, t, compile)
		if err != nil {
			r.wrong = append(r.wrong, fmt.Errorf("tool %s: %w", bound.Shorten(t.ID, bound.Title), err))
			continue
		}
		r.tools[t.ID] = k
	}
	return r
}

// rule gives the tools of a replica that is not shared yet their policies. Services give no hints.
func (r *replica) rule(rules func(id, name string) tools.Rules) {
	of := rules(r.participant.ID, r.participant.Name)
	for own, k := range r.tools {
		k.Policy, k.Agents = of.Policy(own, false), of.Agents
	}
}

// learnParticipantTool checks one tool of a service.
func learnParticipantTool(prefix, service string, t command.ParticipantTool, compile compiler) (*offer.Tool, error) {
	if absent(t.InputSchema) || string(bytes.TrimSpace(t.InputSchema)) == "true" {
		t.InputSchema = anyObject
	}
	if b := bytes.TrimSpace(t.InputSchema); b[0] != '{' {
		return nil, errors.New("input schema is not a JSON object")
	}
	k := &offer.Tool{Tool: tools.Tool{
		Name: offer.Name(prefix, t.ID), Server: service, Title: bound.Shorten(t.Name, bound.Title),
		Description: bound.Shorten(t.Description, bound.Description), InputSchema: t.InputSchema,
		Kind: tools.KindService, Own: t.ID, Idempotent: t.Idempotent,
	}}
	var err error
	if k.Arguments, err = compile(t.InputSchema); err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if absent(t.OutputSchema) {
		return k, nil
	}
	if k.Result, err = compile(t.OutputSchema); err != nil {
		return nil, fmt.Errorf("its output schema: %w", err)
	}
	k.OutputSchema = t.OutputSchema
	return k, nil
}

func absent(raw json.RawMessage) bool {
	b := bytes.TrimSpace(raw)
	return len(b) == 0 || string(b) == "null"
}

// takesCalls reports whether the replica accepts a call of the tool.
func (r *replica) takesCalls(tool string) bool {
	return r.participant.Online && r.participant.Status == command.StatusActive && r.tools[tool] != nil
}

// hashed matches the end of a prefix that servicePrefix made.
var hashed = regexp.MustCompile(`-[0-9a-f]{8}$`)

// servicePrefix returns the beginning of the names of a service's tools: its id if that consists of [A-Za-z0-9-], and a
// changed id with a hash if it has other characters, is too long, looks like a changed one, or is the beginning of a
// reserved name (of an MCP server). The prefix has no underscore, so that the first one in an offered name ends it: no
// service can have another's names.
func servicePrefix(service string, reserved []string) string {
	clean := strings.Map(func(r rune) rune {
		if offer.IsNameByte(r) && r != '_' {
			return r
		}
		return '-'
	}, service)
	taken := slices.ContainsFunc(reserved, func(name string) bool { return name == clean || offer.BelongsTo(name, clean) })
	if clean == service && clean != "" && len(clean) <= offer.MaxProvider && !hashed.MatchString(clean) && !taken {
		return clean
	}
	sum := sha256.Sum256([]byte(service))
	tail := "-" + hex.EncodeToString(sum[:])[:offer.HashChars]
	return clean[:min(len(clean), offer.MaxProvider-len(tail))] + tail
}

// candidate is a replica that accepts calls.
type candidate struct {
	id   string
	load int       // known number of its calls
	idle time.Time // start of its wait for a call of this process
}

// choose returns the index of the candidate that gets the next call: the least loaded, of several the one that has been idle
// for longest. It does not depend on the order of the list. It returns -1 for an empty list.
func choose(list []candidate) int {
	best := -1
	for i, c := range list {
		if best < 0 || before(c, list[best]) < 0 {
			best = i
		}
	}
	return best
}

func before(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.load, b.load), a.idle.Compare(b.idle), strings.Compare(a.id, b.id))
}

const (
	// confirmWait is the time in which a gateway has to queue a call for its connection. It usually does so at once; a
	// heartbeat of the bus takes about as long.
	confirmWait = 5 * time.Second
	// lostGrace is the time in which a service's answer may still arrive after the end of its connection: the two take
	// different paths.
	lostGrace = 2 * time.Second
	// newsWaiting and newsBytes bound a service's unread messages: two of the largest messages of the bus.
	newsWaiting = 256
	newsBytes   = 2 << 20
	// maxNote bounds one notification, which logs store and people see.
	maxNote = 64 << 10
	// noteBurst and noteRate bound the notifications of one call. Progress that people can follow is far slower.
	noteBurst = 256
	noteRate  = 20 // a second
)

const (
	// serviceLabel stands for all services in metrics: clients choose their ids.
	serviceLabel = "services"
	// longestServiceCall bounds a call of a service: services may be models or people, and the outcome of a call is
	// remembered for as long.
	longestServiceCall = calls.Remembered
	// returnWait is the time for which a lost call waits for a replica to repeat it: a restarted service reconnects earlier,
	// and its participants do not remember it for much longer.
	returnWait = 10 * time.Second
)
