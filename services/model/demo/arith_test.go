package demo

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// expression is a random expression with its value by math/big.
type expression struct {
	text  string
	level int // 0 sum, 1 product, 2 signed, 3 atom
	value *big.Rat
	ok    bool // the expression has a value
}

func (e expression) at(level int) string {
	if e.level < level {
		return "(" + e.text + ")"
	}
	return e.text
}

func drawNumber(t *rapid.T) expression {
	s := big.NewInt(int64(rapid.IntRange(0, 2_000_000).Draw(t, "whole"))).String()
	if rapid.Bool().Draw(t, "decimal") {
		s += rapid.StringMatching(`\.[0-9]{1,5}`).Draw(t, "decimals")
	}
	v, ok := new(big.Rat).SetString(s)
	return expression{s, 3, v, ok}
}

func draw(t *rapid.T, depth int) expression {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 || kind == 0 {
		return drawNumber(t)
	}
	a := draw(t, depth-1)
	sp := rapid.SampledFrom([]string{"", " ", "  "}).Draw(t, "space")
	switch kind {
	case 1:
		return expression{"-" + a.at(2), 2, new(big.Rat).Neg(a.value), a.ok}
	case 2:
		return expression{"(" + sp + a.text + sp + ")", 3, a.value, a.ok}
	}
	b := draw(t, depth-1)
	ok := a.ok && b.ok
	switch kind {
	case 3:
		return expression{a.at(0) + sp + "+" + sp + b.at(1), 0, new(big.Rat).Add(a.value, b.value), ok}
	case 4:
		return expression{a.at(0) + sp + "-" + sp + b.at(1), 0, new(big.Rat).Sub(a.value, b.value), ok}
	case 5:
		return expression{a.at(1) + sp + "*" + sp + b.at(2), 1, new(big.Rat).Mul(a.value, b.value), ok}
	}
	if !ok || b.value.Sign() == 0 {
		return expression{a.at(1) + "/" + b.at(2), 1, new(big.Rat), false}
	}
	return expression{a.at(1) + sp + "/" + sp + b.at(2), 1, new(big.Rat).Quo(a.value, b.value), true}
}

func TestArithmeticAgreesWithMathBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := draw(t, 3)
		v := evaluate(e.text)
		switch {
		case len(e.text) > 200 || !e.ok: // too long, or divided by zero
			require.Nil(t, v, e.text)
		default:
			require.NotNil(t, v, e.text)
			require.Zero(t, v.Cmp(e.value), "%s is %s, not %s", e.text, e.value, v)
		}
	})
}

func FuzzArithmetic(f *testing.F) {
	for _, s := range []string{
		"1+1", "((((", "1/(1-1)", "-+-1", "2//3", "2/*3*/4", "2**3", "1..2", ".5+5.", "0x1", "010", "1e9+1", "(1)(2)", "1.(2)",
		strings.Repeat("-", 150) + "1", strings.Repeat("(", 99) + "1" + strings.Repeat(")", 99), strings.Repeat("1/7919*", 28) + "1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := evaluate(s)
		if v == nil {
			return
		}
		require.Regexp(t, `^[=≈] -?[0-9.]{1,600}$`, format(v))
	})
}
