package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field describes one setting.
type Field struct {
	Path string // as in the file: "gateway.read_limit"; list members as "tools.servers[].name"
	Env  string // the environment variable; empty for members of lists
	Doc  string

	value reflect.Value
}

// Fields returns every setting of c in the order of the file. It describes members of lists once, without a value.
func Fields(c *Config) []Field {
	var out []Field
	walk(reflect.ValueOf(c).Elem(), "", "WAGGLE", &out)
	return out
}

func walk(v reflect.Value, prefix, env string, out *[]Field) {
	t := v.Type()
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		f := Field{Path: prefix + name, Doc: sf.Tag.Get("doc"), value: v.Field(i)}
		f.Env = envName(sf, env, name)
		switch {
		case isSection(sf.Type):
			walk(v.Field(i), f.Path+".", f.Env, out)
		case sf.Type.Kind() == reflect.Slice && sf.Type.Elem().Kind() == reflect.Struct:
			members(sf.Type.Elem(), f.Path+"[].", out)
		default:
			*out = append(*out, f)
		}
	}
}

// members describes the settings of a list's elements.
func members(t reflect.Type, prefix string, out *[]Field) {
	first := len(*out)
	walk(reflect.New(t).Elem(), prefix, "", out)
	for i := range (*out)[first:] {
		f := &(*out)[first+i]
		f.Env, f.value = "", reflect.Value{}
	}
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]()
}

// envName returns WAGGLE_<PATH> unless a tag names another variable or prefix.
func envName(sf reflect.StructField, prefix, name string) string {
	if tag := sf.Tag.Get("env"); tag != "" {
		return tag
	}
	return prefix + "_" + strings.ToUpper(name)
}

// Type returns a readable name of the value's form.
func (f Field) Type() string {
	if !f.value.IsValid() {
		return ""
	}
	switch f.value.Interface().(type) {
	case time.Duration:
		return "duration"
	case []string:
		return "list"
	case Secret, []Secret:
		return "secret"
	}
	if f.value.CanInt() || f.value.CanFloat() {
		return "number"
	}
	return f.value.Kind().String()
}

// Value returns the value as text; a secret is redacted.
func (f Field) Value() string {
	if !f.value.IsValid() {
		return ""
	}
	switch v := f.value.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case []Secret:
		return strings.TrimSuffix(strings.Repeat(redacted+",", len(v)), ",")
	default:
		return fmt.Sprint(v)
	}
}

// set parses text as the field's type. A list is separated by commas.
func (f Field) set(text string) error {
	switch p := f.value.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 30s or 24h", text)
		}
		*p = d
		return nil
	case *[]string:
		*p = splitList(text)
		return nil
	case *[]Secret:
		*p = nil
		for _, part := range splitList(text) {
			*p = append(*p, Secret(part))
		}
		return nil
	}
	return f.setScalar(text)
}

func (f Field) setScalar(text string) error {
	v := f.value
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(n)
	default:
		return fmt.Errorf("cannot be set from text")
	}
	return nil
}

func splitList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
