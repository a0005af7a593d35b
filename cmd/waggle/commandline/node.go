package commandline

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// node is a command while its fields are collected.
type node struct {
	*cobra.Command
	flags     *pflag.FlagSet
	arguments []argument
	variables []variable
}

// join has help list a command below a heading, unless that is empty.
func (n *node) join(c *cobra.Command, heading string) {
	if heading == "" {
		return
	}
	c.GroupID = heading
	if !n.ContainsGroup(heading) {
		n.AddGroup(&cobra.Group{ID: heading, Title: heading})
	}
}

// variable is a flag that an environment variable may set.
type variable struct{ flag, name string }

func has(f reflect.StructField, tag string) bool {
	_, ok := f.Tag.Lookup(tag)
	return ok
}

// nameOf returns the name of a flag, argument or command.
func nameOf(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	for i, r := range f.Name {
		if i > 0 && r >= 'A' && r <= 'Z' && f.Name[i-1] >= 'a' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// labelOf returns what stands for the value of an argument in help.
func labelOf(f reflect.StructField) string {
	if label := f.Tag.Get("placeholder"); label != "" {
		return label
	}
	return strings.ToUpper(nameOf(f))
}

// argument is an argument of a command.
type argument struct {
	value      reflect.Value // a string or []string
	name, help string
	optional   bool
}

func (a argument) many() bool { return a.value.Kind() == reflect.Slice }

// usage returns the arguments as the usage line shows them.
func (n *node) usage() string {
	var b strings.Builder
	for _, a := range n.arguments {
		text := a.name
		if a.many() {
			text += "..."
		}
		if a.optional {
			text = "[" + text + "]"
		}
		b.WriteString(" " + text)
	}
	return b.String()
}

// check returns why the arguments are too few or too many.
func (n *node) check(c *cobra.Command, args []string) error {
	for i, a := range n.arguments {
		if i >= len(args) && !a.optional {
			return fmt.Errorf("missing argument %s; usage: %s%s [flags]", a.name, c.CommandPath(), n.usage())
		}
		if a.many() {
			return nil
		}
	}
	if len(args) <= len(n.arguments) {
		return nil
	}
	if c.HasSubCommands() {
		return unknownCommand(c, args[0])
	}
	return fmt.Errorf("unexpected argument %q", args[len(n.arguments)])
}

func (n *node) assign(args []string) {
	for i, a := range n.arguments {
		switch {
		case i >= len(args):
		case a.many():
			a.value.Set(reflect.ValueOf(args[i:]))
		default:
			a.value.SetString(args[i])
		}
	}
}
