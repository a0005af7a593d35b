// Package strictjson decides whether the program may read a JSON document from outside, and decodes it.
//
// encoding/json accepts duplicate names (the last wins), names in the wrong case and invalid UTF-8. Two programs that
// read such a document differently defeat every check between them: a document that this package accepts means the
// same to every reader.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Limits bounds a document. Each limit is inclusive.
type Limits struct {
	Depth        int // arrays and objects within each other; a lone {} has depth 1
	Tokens       int // values, names and the delimiters { } [ ]
	NumberDigits int // bytes of one number, sign and exponent included
}

// Default is for frames and requests from outside. No dialect nests deeper than nine levels; 32 leaves room for tool
// arguments. 10,000 tokens is a list of about two thousand small objects, more than any client frame holds, and costs
// a quarter of a millisecond. The longest number that a float64 or a 128-bit integer needs has fewer than 50 digits.
var Default = Limits{Depth: 32, Tokens: 10_000, NumberDigits: 64}

// Check is Default.Check.
func Check(b []byte) error { return Default.Check(b) }

// Check returns nil if b is exactly one JSON value as in RFC 8259, within the limits, in valid UTF-8, without a name
// that occurs twice in one object (escapes resolved) and without an escaped lone surrogate. Any value is legal at the
// top.
//
// The error is a *fault.Fault that names the problem and the byte and quotes nothing: fault.BadUTF8 if any byte of b
// is not UTF-8, otherwise fault.BadJSON. Check does not modify or keep b, and does not allocate for a valid document
// of ordinary size.
func (l Limits) Check(b []byte) error {
	if !utf8.Valid(b) {
		return fault.Newf(fault.BadUTF8, "The text is not valid UTF-8 at byte %d.", firstInvalid(b))
	}
	s := acquire(b)
	defer s.release()
	for tokens := 1; ; tokens++ {
		if err := s.next(l); err != nil {
			return err
		}
		if tokens > l.Tokens {
			return s.refuse("it has too many values")
		}
		if s.dec.StackDepth() == 0 {
			return s.end()
		}
	}
}

// firstInvalid returns the offset of the first byte that is not UTF-8.
func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// scanner is a decoder that reads its document in place.
type scanner struct {
	dec jsontext.Decoder
	src bytes.Buffer
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func acquire(b []byte) *scanner {
	s, ok := scanners.Get().(*scanner)
	if !ok {
		s = new(scanner)
	}
	s.src = *bytes.NewBuffer(b)
	s.dec.Reset(&s.src)
	return s
}

// release drops the document, which belongs to the caller.
func (s *scanner) release() {
	s.src = bytes.Buffer{}
	s.dec.Reset(&s.src)
	scanners.Put(s)
}

// next reads one token.
func (s *scanner) next(l Limits) error {
	switch kind := s.dec.PeekKind(); kind {
	case '"', '0':
		v, err := s.dec.ReadValue()
		if err != nil {
			return s.explain(err)
		}
		if kind == '0' && len(v) > l.NumberDigits {
			return s.refuse("a number is too long")
		}
		return nil
	default:
		if _, err := s.dec.ReadToken(); err != nil {
			return s.explain(err)
		}
		if s.dec.StackDepth() > l.Depth {
			return s.refuse("it is nested too deeply")
		}
		return nil
	}
}

// end checks that only white space follows.
func (s *scanner) end() error {
	_, err := s.dec.ReadToken()
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return s.refuse("something follows the first value")
}

func (s *scanner) refuse(reason string) error {
	return badJSON(reason, s.dec.InputOffset())
}

// explain turns an error of the decoder into a fault that does not quote the document.
func (s *scanner) explain(err error) error {
	at := s.dec.InputOffset()
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if ok {
		at = syntax.ByteOffset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badJSON("a name occurs twice in one object", at)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badJSON("it ends too early", at)
	case errors.Is(err, io.EOF):
		return badJSON("it is empty", at)
	default:
		return badJSON("syntax error", at)
	}
}

func badJSON(reason string, at int64) error {
	return fault.Newf(fault.BadJSON, "The message is not valid JSON: %s (byte %d).", reason, at)
}
