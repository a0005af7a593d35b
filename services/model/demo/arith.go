package demo

import (
	"math/big"
	"regexp"
	"strings"
	"text/scanner"
)

const (
	maxDecimals = 30 // shown digits of an exact decimal fraction
	decimals    = 12 // shown digits of any other fraction
)

var (
	// calculation bounds the characters and the length, and with them the time and the size of the result: some hundred
	// digits.
	calculation = regexp.MustCompile(`^[0-9.+*/() -]{1,200}$`)
	padded      = regexp.MustCompile(`(?:^|[^0-9.])0[0-9]`) // octal to the scanner
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

// evaluate returns the exact value of an expression of +, -, *, / and parentheses; nil if it has no value.
func evaluate(s string) *big.Rat {
	if !calculation.MatchString(s) || padded.MatchString(s) {
		return nil
	}
	var e expressionReader
	e.tokens.Init(strings.NewReader(spaced.Replace(s))) // spaces keep two operators from forming another one or a comment
	e.tokens.Mode = scanner.ScanInts | scanner.ScanFloats
	e.tokens.Error = func(*scanner.Scanner, string) {} // number refuses the same texts
	e.next()
	v := e.sum()
	if e.token != scanner.EOF {
		return nil
	}
	return v
}

// expressionReader reads an expression by recursive descent. Its methods return nil for a part without a value.
type expressionReader struct {
	tokens scanner.Scanner
	token  rune
}

func (e *expressionReader) next() { e.token = e.tokens.Scan() }

func (e *expressionReader) sum() *big.Rat {
	x := e.product()
	for x != nil && (e.token == '+' || e.token == '-') {
		minus := e.token == '-'
		e.next()
		y := e.product()
		switch {
		case y == nil:
			return nil
		case minus:
			x.Sub(x, y)
		default:
			x.Add(x, y)
		}
	}
	return x
}

func (e *expressionReader) product() *big.Rat {
	x := e.signed()
	for x != nil && (e.token == '*' || e.token == '/') {
		divides := e.token == '/'
		e.next()
		y := e.signed()
		switch {
		case y == nil || divides && y.Sign() == 0:
			return nil
		case divides:
			x.Quo(x, y)
		default:
			x.Mul(x, y)
		}
	}
	return x
}

func (e *expressionReader) signed() *big.Rat {
	switch e.token {
	case '+':
		e.next()
		return e.signed()
	case '-':
		e.next()
		if x := e.signed(); x != nil {
			return x.Neg(x)
		}
	case '(':
		e.next()
		if x := e.sum(); e.token == ')' {
			e.next()
			return x
		}
	case scanner.Int, scanner.Float:
		return e.number()
	}
	return nil
}

func (e *expressionReader) number() *big.Rat {
	x, ok := new(big.Rat).SetString(e.tokens.TokenText())
	e.next()
	if !ok {
		return nil
	}
	return x
}

// format returns "= ..." for a whole number or a decimal fraction, and "≈ ..." for other fractions.
func format(r *big.Rat) string {
	if n, exact := r.FloatPrec(); exact && n <= maxDecimals {
		return "= " + r.FloatString(n)
	}
	return "≈ " + r.FloatString(decimals)
}
