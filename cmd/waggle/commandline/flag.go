package commandline

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// flag adds a flag to the command.
func (n *node) flag(f reflect.StructField, v reflect.Value) {
	name, short := nameOf(f), f.Tag.Get("short")
	help := strings.ReplaceAll(f.Tag.Get("help"), "${env}", f.Tag.Get("env"))
	standard := f.Tag.Get("default")
	switch p := v.Addr().Interface().(type) {
	case *string:
		n.flags.StringVarP(p, name, short, standard, help)
	case *uint:
		n.flags.UintVarP(p, name, short, 0, help)
	case *[]string:
		n.flags.StringSliceVarP(p, name, short, nil, help)
	case *time.Duration:
		n.flags.DurationVarP(p, name, short, duration(standard), help)
	case *bool:
		n.flags.BoolVarP(p, name, short, standard == "true", help)
	case **string, **bool:
		n.flags.VarP(pointer{v}, name, short, help)
		if v.Type().Elem().Kind() == reflect.Bool {
			n.flags.Lookup(name).NoOptDefVal = "true"
		}
		if alone := f.Tag.Get("optional"); alone != "" { // the value of the flag alone
			n.flags.Lookup(name).NoOptDefVal = alone
		}
	default:
		panic(fmt.Sprintf("commandline: a flag of type %s", f.Type))
	}
	added := n.flags.Lookup(name)
	if label := f.Tag.Get("placeholder"); label != "" {
		added.Value = labelled{added.Value, label}
	}
	if v.IsZero() {
		added.DefValue = ""
	}
	if has(f, "required") {
		_ = n.MarkFlagRequired(name) // it exists
	}
	if has(f, "negatable") {
		n.flags.Var(opposite{v}, "no-"+name, "The opposite of --"+name+".")
		n.flags.Lookup("no-" + name).NoOptDefVal = "true"
	}
	if env := f.Tag.Get("env"); env != "" {
		n.variables = append(n.variables, variable{flag: name, name: env})
	}
}

// duration parses the default of a flag.
func duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// environment sets the flags that were not given to the values of their variables.
func (n *node) environment(lookup func(string) (string, bool)) error {
	for _, v := range n.variables {
		text, ok := lookup(v.name)
		if !ok || n.flags.Changed(v.flag) {
			continue
		}
		if err := n.flags.Set(v.flag, text); err != nil {
			return fmt.Errorf("environment variable %s: %w", v.name, err)
		}
	}
	return nil
}

// labelled is a flag that help shows with a label in place of its type.
type labelled struct {
	pflag.Value
	label string
}

// Type implements pflag.Value.
func (l labelled) Type() string { return l.label }

// pointer is a flag that is nil until it is given: *string or *bool.
type pointer struct{ reflect.Value }

// Set implements pflag.Value.
func (p pointer) Set(text string) error {
	given := reflect.New(p.Value.Type().Elem())
	if p.Value.Type().Elem().Kind() == reflect.Bool {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return err
		}
		given.Elem().SetBool(on)
	} else {
		given.Elem().SetString(text)
	}
	p.Value.Set(given)
	return nil
}

// Type implements pflag.Value.
func (p pointer) Type() string { return p.Value.Type().Elem().Kind().String() }

// String implements pflag.Value.
func (p pointer) String() string {
	if !p.IsValid() || p.IsNil() {
		return ""
	}
	return fmt.Sprint(p.Elem().Interface())
}

// opposite is the flag that turns another one off.
type opposite struct{ reflect.Value }

// Set implements pflag.Value.
func (o opposite) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err == nil {
		o.SetBool(!on)
	}
	return err
}

// Type implements pflag.Value.
func (o opposite) Type() string { return "bool" }

// String implements pflag.Value.
func (o opposite) String() string { return "" }
