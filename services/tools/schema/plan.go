package schema

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxUnfolded bounds the schemas that apply to one value, references unfolded: a few hundred bytes can ask for any
	// number. Unions of real tools have some hundred.
	maxUnfolded = 10_000
	// maxChain bounds the references and combinations within each other on one value: each visit looks back over them.
	maxChain = 100
)

var (
	errEndless = errors.New("the schema refers to itself at the same place, so that a check of it would never end")
	errUnfolds = fmt.Errorf("the schema applies more than %d schemas to one value, its references unfolded", maxUnfolded)
	errChain   = fmt.Errorf("the schema has more than %d references and combinations within each other at one place", maxChain)
)

// formatSize stands for the instructions of the expression that a format is.
const formatSize = 16

// kinds is a set of JSON types.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBool
	isNumber
	isString
	isArray
	isMap
)

var kindOf = map[string]kinds{
	"null": isNull, "boolean": isBool, "number": isNumber, "integer": isNumber, "string": isString, "array": isArray, "object": isMap,
}

// plan knows what the check of a value against one schema costs, without what the check finds.
type plan struct {
	constant bool // true or false
	types    kinds
	here     []*plan // apply to the same value
	pattern  int     // instructions of the regular expression
	values   []any   // of const and enum
	names    int     // property names that every object is looked up for
	numbers  bool    // compares numbers
	unique   bool
	spread   bool // keeps a list of the members that no schema has seen

	members  map[string]*plan
	patterns []patterned
	others   *plan // of additional properties
	unseen   *plan // of unevaluated properties
	named    *plan // of the names
	first    []*plan
	each     []*plan // of items

	unfolded, chain int // of the schemas that apply to the same value, this one included; 0 = unknown
	open            bool
}

type patterned struct {
	name *expression
	to   *plan
}

// planner makes the plans of a compiled schema.
type planner struct {
	plans  map[*jsonschema.Schema]*plan
	spread bool
}

// planned returns the plan of a schema, or why its checks have no bound.
func planned(s *jsonschema.Schema) (*plan, error) {
	pl := &planner{plans: make(map[*jsonschema.Schema]*plan)}
	top := pl.of(s)
	for _, p := range pl.plans {
		p.spread = pl.spread
		if err := p.unfold(); err != nil {
			return nil, err
		}
	}
	return top, nil
}

// unfold counts the schemas that apply to one value. Each is counted once and its count reused.
func (p *plan) unfold() error {
	if p.unfolded > 0 {
		return nil
	}
	if p.open {
		return errEndless
	}
	p.open = true
	n, chain := 1, 0
	for _, sub := range p.here {
		if err := sub.unfold(); err != nil {
			return err
		}
		chain = max(chain, sub.chain)
		if n += sub.unfolded; n > maxUnfolded {
			return errUnfolds
		}
	}
	if p.open, p.unfolded, p.chain = false, n, chain+1; p.chain > maxChain {
		return errChain
	}
	return nil
}

// of returns the plan of a schema, nil for none.
func (pl *planner) of(s *jsonschema.Schema) *plan {
	if s == nil {
		return nil
	}
	if p := pl.plans[s]; p != nil {
		return p
	}
	p := &plan{constant: s.Bool != nil}
	pl.plans[s] = p
	if p.constant {
		return p
	}
	pl.values(p, s)
	pl.here(p, s)
	pl.objects(p, s)
	pl.arrays(p, s)
	return p
}

func (pl *planner) values(p *plan, s *jsonschema.Schema) {
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			p.types |= kindOf[name]
			p.numbers = p.numbers || name == "integer"
		}
	}
	if s.Const != nil {
		p.values = append(p.values, *s.Const)
	}
	if s.Enum != nil {
		p.values = append(p.values, s.Enum.Values...)
	}
	for _, limit := range []bool{s.Minimum != nil, s.Maximum != nil, s.ExclusiveMinimum != nil, s.ExclusiveMaximum != nil, s.MultipleOf != nil} {
		p.numbers = p.numbers || limit
	}
	if s.Format != nil || s.Pattern != nil {
		p.pattern = formatSize
	}
	if e, ok := s.Pattern.(*expression); ok {
		p.pattern = max(p.pattern, e.size)
	}
}

// here adds the schemas that apply to the same value.
func (pl *planner) here(p *plan, s *jsonschema.Schema) {
	list := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	for _, of := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		list = append(list, of...)
	}
	for _, sub := range s.DependentSchemas {
		list = append(list, sub)
	}
	for _, v := range s.Dependencies {
		switch v := v.(type) {
		case *jsonschema.Schema:
			list = append(list, v)
		case []string:
			p.names += len(v)
		}
	}
	for _, names := range s.DependentRequired {
		p.names += len(names)
	}
	p.names += len(s.Required) + len(s.Dependencies) + len(s.DependentRequired) + len(s.DependentSchemas)
	for _, sub := range list {
		if sub != nil {
			p.here = append(p.here, pl.of(sub))
		}
	}
}

func (pl *planner) objects(p *plan, s *jsonschema.Schema) {
	if len(s.Properties) > 0 {
		p.members = make(map[string]*plan, len(s.Properties))
	}
	for name, sub := range s.Properties {
		p.members[name] = pl.of(sub)
	}
	for re, sub := range s.PatternProperties {
		if e, ok := re.(*expression); ok {
			p.patterns = append(p.patterns, patterned{e, pl.of(sub)})
		}
	}
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		p.others = pl.of(sub)
	}
	p.unseen, p.named = pl.of(s.UnevaluatedProperties), pl.of(s.PropertyNames)
	pl.spread = pl.spread || p.unseen != nil
}

func (pl *planner) arrays(p *plan, s *jsonschema.Schema) {
	p.unique = s.UniqueItems
	for _, sub := range s.PrefixItems {
		p.first = append(p.first, pl.of(sub))
	}
	add := func(v any) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			if v != nil {
				p.each = append(p.each, pl.of(v))
			}
		case []*jsonschema.Schema:
			for _, sub := range v {
				p.first = append(p.first, pl.of(sub))
			}
		}
	}
	add(s.Items)
	add(s.AdditionalItems)
	add(s.Items2020)
	add(s.Contains)
	add(s.UnevaluatedItems)
	pl.spread = pl.spread || s.UnevaluatedItems != nil
}
