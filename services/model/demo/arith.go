package demo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"regexp"
	"strings"
)

const (
	maxDecimals = 30 // shown digits of an exact decimal fraction
	decimals    = 12 // shown digits of any other fraction
)

var (
	// calculation bounds the characters and the length, and with them the time and the size of the result: some hundred
	// digits.
	calculation = regexp.MustCompile(`^[0-9.+*/() -]{1,200}$`)
	padded      = regexp.MustCompile(`(?:^|[^0-9.])0[0-9]`) // octal to the parser
	spaced      = strings.NewReplacer("+", " + ", "-", " - ", "*", " * ", "/", " / ")
)

// calculate recognises calculations: numbers with an operator.
func calculate(_ *clause, m []string) *action {
	v := evaluate(m[0])
	if v == nil || !strings.ContainsAny(m[0], "+-*/") {
		return nil
	}
	return say(m[0] + " " + format(v))
}

// evaluate returns the exact value of an expression of +, -, *, / and parentheses, which Go's own parser reads; nil if it
// has no value.
func evaluate(s string) *big.Rat {
	if !calculation.MatchString(s) || padded.MatchString(s) {
		return nil
	}
	e, err := parser.ParseExpr(spaced.Replace(s)) // spaces keep two operators from forming another one or a comment
	if err != nil {
		return nil
	}
	return value(e)
}

func value(e ast.Expr) *big.Rat {
	switch e := e.(type) {
	case *ast.BasicLit:
		r, _ := new(big.Rat).SetString(e.Value)
		return r
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.UnaryExpr:
		x := value(e.X)
		if x != nil && e.Op == token.SUB {
			x.Neg(x)
		}
		return x
	case *ast.BinaryExpr:
		x, y := value(e.X), value(e.Y)
		switch {
		case x == nil || y == nil:
			return nil
		case e.Op == token.ADD:
			return x.Add(x, y)
		case e.Op == token.SUB:
			return x.Sub(x, y)
		case e.Op == token.MUL:
			return x.Mul(x, y)
		case e.Op == token.QUO && y.Sign() != 0:
			return x.Quo(x, y)
		}
	}
	return nil
}

// format returns "= ..." for a whole number or a decimal fraction, and "≈ ..." for other fractions.
func format(r *big.Rat) string {
	if n, exact := r.FloatPrec(); exact && n <= maxDecimals {
		return "= " + r.FloatString(n)
	}
	return "≈ " + r.FloatString(decimals)
}
