package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/waggle-dev/waggle/internal/strictjson"
)

// maxExponent bounds numbers: validation calculates exactly, and 1e999999999 written out has a gigabyte. Every float64 is
// below.
const maxExponent = 400

// The limits of what is decoded. A schema nests twice as deep as its arguments; a result is a table of a database rather
// than a frame, and its server has a limit in bytes.
var (
	ofArguments = strictjson.Default
	ofSchemas   = strictjson.Limits{Depth: 2 * ofArguments.Depth, Tokens: ofArguments.Tokens, NumberDigits: ofArguments.NumberDigits}
	ofResults   = strictjson.Limits{Depth: 2 * ofArguments.Depth, Tokens: 20 * ofArguments.Tokens, NumberDigits: ofArguments.NumberDigits}
)

// decode reads JSON with numbers of bounded size.
func decode(raw json.RawMessage, l strictjson.Limits) (any, error) {
	if err := l.Check(raw); err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return v, checkNumbers(v)
}

func checkNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		return checkNumber(string(v))
	case []any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNumber(s string) error {
	if exp := exponent(s); exp > maxExponent {
		return fmt.Errorf("the exponent of a number is beyond %d", maxExponent)
	}
	return nil
}

// exponent returns the size of a number's exponent, or maxExponent+1 for any larger one.
func exponent(s string) int {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return 0
	}
	n := 0
	for _, digit := range strings.TrimLeft(s[i+1:], "+-") {
		if n = 10*n + int(digit-'0'); n > maxExponent {
			return maxExponent + 1
		}
	}
	return n
}
