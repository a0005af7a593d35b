package demo

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// expression is a random expression with the value that math/big gives it.
type expression struct {
	text  string
	level int // 0 sum, 1 product, 2 signed, 3 power, 4 atom
	value *big.Rat
	ok    bool // it has a value
}

func (e expression) at(level int) string {
	if e.level < level {
		return "(" + e.text + ")"
	}
	return e.text
}

func space(t *rapid.T) string { return rapid.SampledFrom([]string{"", " ", "  "}).Draw(t, "space") }

func drawNumber(t *rapid.T) expression {
	whole := rapid.IntRange(0, 2_000_000).Draw(t, "whole")
	s := big.NewInt(int64(whole)).String()
	plain := s
	if rapid.Bool().Draw(t, "grouped") {
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
	}
	if rapid.Bool().Draw(t, "decimal") {
		d := rapid.StringMatching(`\.[0-9]{1,5}`).Draw(t, "decimals")
		s, plain = s+d, plain+d
	}
	v, ok := new(big.Rat).SetString(plain)
	return expression{s, 4, v, ok}
}

func draw(t *rapid.T, depth int) expression {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 || kind == 0 {
		return drawNumber(t)
	}
	a := draw(t, depth-1)
	switch kind {
	case 1:
		return expression{"-" + a.at(3), 2, new(big.Rat).Neg(a.value), a.ok}
	case 2:
		return expression{"(" + space(t) + a.text + space(t) + ")", 4, a.value, a.ok}
	case 3:
		n := rapid.IntRange(0, 4).Draw(t, "power")
		v := big.NewRat(1, 1)
		for range n {
			v = new(big.Rat).Mul(v, a.value)
		}
		return expression{a.at(4) + "^" + string(rune('0'+n)), 3, v, a.ok}
	}
	b := draw(t, depth-1)
	ok := a.ok && b.ok
	sp := space(t)
	switch kind {
	case 4, 5:
		return expression{a.at(0) + sp + "+" + sp + b.at(1), 0, new(big.Rat).Add(a.value, b.value), ok}
	case 6:
		return expression{a.at(0) + sp + "-" + sp + b.at(1), 0, new(big.Rat).Sub(a.value, b.value), ok}
	case 7:
		op := rapid.SampledFrom([]string{"*", "×", " times "}).Draw(t, "op")
		return expression{a.at(1) + op + b.at(2), 1, new(big.Rat).Mul(a.value, b.value), ok}
	}
	if !ok || b.value.Sign() == 0 {
		return expression{a.at(1) + "/" + b.at(2), 1, new(big.Rat), false}
	}
	op := rapid.SampledFrom([]string{"/", "÷", " divided by "}).Draw(t, "op")
	return expression{a.at(1) + op + b.at(2), 1, new(big.Rat).Quo(a.value, b.value), true}
}

func TestArithmeticAgreesWithMathBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := draw(t, 5)
		v, _, err := evaluate(e.text)
		if !e.ok {
			require.ErrorIs(t, err, errZero, e.text)
			return
		}
		require.NoError(t, err, e.text)
		require.False(t, v.inexact)
		require.Zero(t, v.rat.Cmp(e.value), "%s is %s, not %s", e.text, e.value, v.rat)
	})
}

func TestArithmeticProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNumber(t), drawNumber(t)
		must := func(s string) *big.Rat {
			v, _, err := evaluate(s)
			require.NoError(t, err, s)
			return v.rat
		}
		require.Zero(t, must(a.text+"% of "+b.text).Cmp(must(a.text+"*"+b.text+"/100")))
		require.Zero(t, must(b.text+" + "+a.text+"%").Cmp(must(b.text+"*(1+"+a.text+"/100)")))
		require.Zero(t, must(b.text+" - "+a.text+"%").Cmp(must(b.text+"*(1-"+a.text+"/100)")))
		require.Zero(t, must("sqrt("+a.text+"^2)").Cmp(a.value))
		if b.value.Sign() > 0 {
			rest := must(a.text + " mod " + b.text)
			require.True(t, rest.Sign() >= 0 && rest.Cmp(b.value) < 0, "%s mod %s = %s", a.text, b.text, rest)
			require.True(t, new(big.Rat).Quo(new(big.Rat).Sub(a.value, rest), b.value).IsInt())
		}
	})
}

func FuzzArithmetic(f *testing.F) {
	for _, s := range []string{"1+1", "((((", "2^2^2^2^2^2", "9^9^9", "1/(1-1)", "%", "1%%", "-+-1", "r4", "1 m 0", "0^-1", strings.Repeat("-", 500) + "1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, _, err := evaluate(s)
		if err == nil {
			require.NotEmpty(t, format(v))
			require.Less(t, len(format(v)), 2_000)
		}
	})
}
