package demo

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the calculator. They keep one expression from taking the worker's time.
const (
	maxDepth    = 100    // nested parentheses: no person writes more
	maxBits     = 10_000 // of a numerator or denominator: 3,000 digits
	maxExponent = 10_000
	maxLength   = 1_000 // bytes of an expression; with maxBits it bounds the time to some 50 ms
	maxDigits   = 1_000 // that are shown of a whole number
	maxDecimals = 30    // that are shown of an exact decimal fraction
	decimals    = 12    // that are shown of an inexact one
)

var (
	errZero   = errors.New("that divides by zero")
	errTooBig = errors.New("the numbers get too large for me")
	errSyntax = errors.New("not a calculation")
	errRoot   = errors.New("there is no real root of a negative number")
	errPower  = errors.New("that power has no whole exponent")
)

var (
	asksValue = regexp.MustCompile(`(?i)^(?:(?:what(?:'s|’s| is| are| do(?:es)?| would)?|how much(?: is| are)?|solve|work out|evaluate|the (?:result|value|answer) of|value of|result of)\s+)+`)
	calculate = regexp.MustCompile(`(?i)^(?:calculate|compute|calc)\b\s*:?\s*`)
	endsValue = regexp.MustCompile(`(?i)\s*(?:=+\s*\??|make|makes|equals?|give|gives)\s*$`)
)

// spoken maps words to operators. Longer phrases come first.
var spoken = []struct {
	words *regexp.Regexp
	op    string
}{
	{regexp.MustCompile(`(?i)\b(?:multiplied by|times)\b`), "*"},
	{regexp.MustCompile(`(?i)\b(?:divided by|over)\b`), "/"},
	{regexp.MustCompile(`(?i)\b(?:raised )?to the power(?: of)?\b`), "^"},
	{regexp.MustCompile(`(?i)\bplus\b`), "+"},
	{regexp.MustCompile(`(?i)\bminus\b`), "-"},
	{regexp.MustCompile(`(?i)\bsquared\b`), "^2"},
	{regexp.MustCompile(`(?i)\bcubed\b`), "^3"},
	{regexp.MustCompile(`(?i)\bmod(?:ulo|ulus)?\b`), "m"},
	{regexp.MustCompile(`(?i)\b(?:the )?square root of\b|\bsqrt\b`), "r"},
	{regexp.MustCompile(`(?i)\b(?:a )?half of\b`), "0.5*"},
	{regexp.MustCompile(`(?i)\ba quarter of\b`), "0.25*"},
	{regexp.MustCompile(`(?i)\btwice\b`), "2*"},
	{regexp.MustCompile(`(?i)\s*\b(?:percent|per cent)\b`), "%"},
	{regexp.MustCompile(`(?i)%\s*of\b`), "%*"},
	{regexp.MustCompile(`\*\*`), "^"},
	{regexp.MustCompile(`[×·∙]`), "*"},
	{regexp.MustCompile(`÷`), "/"},
	{regexp.MustCompile(`[−–]`), "-"},
	{regexp.MustCompile(`(\d|\)|\s)\s*[xX]\s*(\d|\(|\.)`), "$1*$2"},
}

// combined matches "the sum of 3, 4 and 5" and its kin.
var (
	combined   = regexp.MustCompile(`(?i)^(?:the )?(sum|product|difference|quotient) (?:of|between) (.+)$`)
	combinedBy = map[string]string{"sum": "+", "product": "*", "difference": "-", "quotient": "/"}
)

var digitWords = map[string]string{
	"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
	"nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
	"sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30",
	"forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90", "hundred": "100",
	"thousand": "1000", "million": "1000000",
}

var letterRun = regexp.MustCompile(`[A-Za-z]{2,}`)

// parseArithmetic recognises calculations: something that reads as one and has an
// operator, or anything after "calculate".
func parseArithmetic(c *clause) *task {
	s := c.raw
	told := calculate.MatchString(s)
	s = asksValue.ReplaceAllString(calculate.ReplaceAllString(s, ""), "")
	s = strings.TrimSpace(endsValue.ReplaceAllString(s, ""))
	v, operators, err := evaluate(s)
	switch {
	case errors.Is(err, errSyntax) && told:
		return say(fmt.Sprintf("I cannot read %q as a calculation.", s))
	case errors.Is(err, errSyntax), operators == 0 && !told:
		return nil
	case err != nil:
		return say(fmt.Sprintf("I cannot calculate %s: %s.", s, err))
	}
	return say(s + " " + format(v))
}

// value is a number, exact unless a root made it inexact.
type value struct {
	rat     *big.Rat
	inexact bool
}

// evaluate returns the value of an expression and how many operators it has. The
// arithmetic is exact. A percentage that is added or subtracted is one of what
// stands before it, as on a pocket calculator: 200 + 10% = 220.
func evaluate(s string) (value, int, error) {
	if len(s) > maxLength {
		return value{}, 0, errSyntax
	}
	if m := combined.FindStringSubmatch(s); m != nil {
		s = listSeparator.ReplaceAllString(m[2], " "+combinedBy[strings.ToLower(m[1])]+" ")
	}
	for _, w := range spoken {
		s = w.words.ReplaceAllString(s, w.op)
	}
	s = letterRun.ReplaceAllStringFunc(s, func(w string) string {
		if d, ok := digitWords[strings.ToLower(w)]; ok {
			return d
		}
		return w
	})
	p := &calculator{s: s}
	v, err := p.sum(0)
	if err == nil {
		if p.peek() != 0 {
			err = errSyntax
		}
	}
	return v, p.operators, err
}

// calculator is a recursive descent parser that evaluates as it reads:
//
//	sum     = product { ("+" | "-") product }
//	product = signed { ("*" | "/" | "m" | "%") signed }     m: modulo; % before an operand means the same
//	signed  = { "-" | "+" } power
//	power   = percent [ "^" signed ]
//	percent = atom { "%" }                                  % before anything else
//	atom    = number | "(" sum ")" | "r" atom               r: square root
type calculator struct {
	s         string
	i         int
	operators int
}

// peek returns the next character that is no space, or 0 at the end.
func (p *calculator) peek() rune {
	for p.i < len(p.s) {
		r, n := utf8.DecodeRuneInString(p.s[p.i:])
		if !unicode.IsSpace(r) {
			return r
		}
		p.i += n
	}
	return 0
}

func (p *calculator) sum(depth int) (value, error) {
	v, _, err := p.product(depth)
	for err == nil {
		op := p.peek()
		if op != '+' && op != '-' {
			return v, nil
		}
		p.i++
		p.operators++
		w, relative, bad := p.product(depth)
		if bad != nil {
			return v, bad
		}
		if relative {
			w.rat = new(big.Rat).Mul(w.rat, v.rat)
		}
		if op == '-' {
			w.rat = new(big.Rat).Neg(w.rat)
		}
		v, err = bounded(new(big.Rat).Add(v.rat, w.rat), v, w)
	}
	return v, err
}

func (p *calculator) product(depth int) (v value, percent bool, err error) {
	v, percent, err = p.signed(depth)
	for err == nil {
		op := p.peek()
		if op != '*' && op != '/' && op != 'm' && (op != '%' || !p.operandAfterPercent()) {
			return v, percent, nil
		}
		p.i++
		p.operators++
		percent = false
		var w value
		if w, _, err = p.signed(depth); err == nil {
			v, err = multiply(op, v, w)
		}
	}
	return v, false, err
}

func multiply(op rune, v, w value) (value, error) {
	if op == '*' {
		return bounded(new(big.Rat).Mul(v.rat, w.rat), v, w)
	}
	if w.rat.Sign() == 0 {
		return v, errZero
	}
	q := new(big.Rat).Quo(v.rat, w.rat)
	if op == '/' {
		return bounded(q, v, w)
	}
	whole := new(big.Rat).SetInt(floor(q))
	return bounded(new(big.Rat).Sub(v.rat, whole.Mul(whole, w.rat)), v, w)
}

// floor returns the largest whole number that is not above r.
func floor(r *big.Rat) *big.Int {
	q := new(big.Int)
	return q.Div(r.Num(), r.Denom()) // Euclidean; the denominator is positive, so this is the floor
}

// operandAfterPercent tells "10 % 3" from "10%".
func (p *calculator) operandAfterPercent() bool {
	rest := strings.TrimLeftFunc(p.s[p.i+1:], unicode.IsSpace)
	return rest != "" && (rest[0] >= '0' && rest[0] <= '9' || rest[0] == '.' || rest[0] == '(' || rest[0] == 'r')
}

func (p *calculator) signed(depth int) (value, bool, error) {
	negative := false
	for n := 0; ; n++ {
		c := p.peek()
		if c != '-' && c != '+' {
			break
		}
		if n > maxDepth {
			return value{}, false, errSyntax
		}
		negative = negative != (c == '-')
		p.i++
	}
	v, percent, err := p.power(depth)
	if err == nil && negative {
		v.rat = new(big.Rat).Neg(v.rat)
	}
	return v, percent, err
}

func (p *calculator) power(depth int) (value, bool, error) {
	v, percent, err := p.percent(depth)
	if err != nil || p.peek() != '^' {
		return v, percent, err
	}
	p.i++
	p.operators++
	if depth++; depth > maxDepth {
		return v, false, errSyntax
	}
	w, _, err := p.signed(depth)
	if err != nil {
		return v, false, err
	}
	v, err = raise(v, w)
	return v, false, err
}

func raise(v, w value) (value, error) {
	if !w.rat.IsInt() || w.inexact {
		return v, errPower
	}
	if !w.rat.Num().IsInt64() || w.rat.Num().Int64() > maxExponent || w.rat.Num().Int64() < -maxExponent {
		return v, errTooBig
	}
	n := w.rat.Num().Int64()
	base := v.rat
	if n < 0 {
		if base.Sign() == 0 {
			return v, errZero
		}
		base, n = new(big.Rat).Inv(base), -n
	}
	if size := int64(max(base.Num().BitLen(), base.Denom().BitLen())) - 1; size*n > maxBits {
		return v, errTooBig
	}
	e := big.NewInt(n)
	return bounded(new(big.Rat).SetFrac(
		new(big.Int).Exp(base.Num(), e, nil), new(big.Int).Exp(base.Denom(), e, nil)), v, w)
}

func (p *calculator) percent(depth int) (value, bool, error) {
	v, err := p.atom(depth)
	percent := false
	for err == nil && p.peek() == '%' && !p.operandAfterPercent() {
		p.i++
		p.operators++
		percent = true
		v.rat = new(big.Rat).Mul(v.rat, big.NewRat(1, 100))
	}
	return v, percent, err
}

func (p *calculator) atom(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errSyntax
	}
	switch p.peek() {
	case '(':
		p.i++
		v, err := p.sum(depth + 1)
		if err == nil && p.peek() != ')' {
			err = errSyntax
		}
		p.i++
		return v, err
	case 'r':
		p.i++
		p.operators++
		v, err := p.atom(depth + 1)
		if err != nil {
			return v, err
		}
		return root(v)
	}
	return p.number()
}

// number matches digits, with or without groups of three and decimals.
var number = regexp.MustCompile(`^(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?`)

func (p *calculator) number() (value, error) {
	s := number.FindString(p.s[p.i:])
	if s == "" || len(s) > maxDigits {
		return value{}, errSyntax
	}
	p.i += len(s)
	r, ok := new(big.Rat).SetString(strings.ReplaceAll(s, ",", ""))
	if !ok {
		return value{}, errSyntax
	}
	return value{rat: r}, nil
}

// root returns the square root, exact if there is an exact one.
func root(v value) (value, error) {
	if v.rat.Sign() < 0 {
		return v, errRoot
	}
	num, den := new(big.Int).Sqrt(v.rat.Num()), new(big.Int).Sqrt(v.rat.Denom())
	r := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(r, r).Cmp(v.rat) == 0 {
		return value{r, v.inexact}, nil
	}
	const precision = 256 // bits: far more than is shown
	f := new(big.Float).SetPrec(precision).SetRat(v.rat)
	approx, _ := f.Sqrt(f).Rat(nil)
	return value{approx, true}, nil
}

// bounded returns r as a value, inexact if one of its sources is, or errTooBig.
func bounded(r *big.Rat, from ...value) (value, error) {
	out := value{rat: r}
	for _, v := range from {
		out.inexact = out.inexact || v.inexact
	}
	if r.Num().BitLen() > maxBits || r.Denom().BitLen() > maxBits {
		return out, errTooBig
	}
	return out, nil
}

// format returns "= ..." for an exact result, "≈ ..." for a rounded one, and both
// for a fraction that is no decimal.
func format(v value) string {
	r := v.rat
	if r.IsInt() && !v.inexact {
		s := r.Num().String()
		if len(s) > maxDigits {
			return fmt.Sprintf("= %s... (%d digits)", s[:maxDigits], len(strings.TrimPrefix(s, "-")))
		}
		return "= " + s
	}
	if n, exact := r.FloatPrec(); exact && n <= maxDecimals && !v.inexact {
		return "= " + r.FloatString(n)
	}
	rounded := r.FloatString(decimals)
	if strings.Contains(rounded, ".") {
		rounded = strings.TrimRight(strings.TrimRight(rounded, "0"), ".")
	}
	const mostFraction = 20 // characters of a fraction that still say something
	if f := r.RatString(); !v.inexact && len(f) <= mostFraction {
		return fmt.Sprintf("= %s ≈ %s", f, rounded)
	}
	return "≈ " + rounded
}
