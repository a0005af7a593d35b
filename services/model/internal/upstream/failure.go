package upstream

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

const (
	// maxDetail bounds a provider's message in the log.
	maxDetail = 500
	// maxName bounds an error's name and a request's id in the log.
	maxName = 100
)

var (
	errSilent  = errors.New("no data from the model provider")
	errTooLong = errors.New("the response of the model provider is too long")
)

// Failure returns the failure for an error of an answer that was read to its end.
func (c *Client) Failure(err error) error { return c.classify(err) }

// classify maps any error of an attempt to the fault catalogue.
func (c *Client) classify(err error) *model.Failure {
	if s, ok := errors.AsType[*StatusError](err); ok {
		code := s.Class()
		f := c.failure(code, err)
		f.Said.Status, f.Said.Code, f.Said.RequestID = s.Status, c.text(s.Kind, maxName), c.text(s.RequestID, maxName)
		f.Said.Message, f.After = c.text(s.Detail, maxDetail), s.After
		return f
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return c.failure(f.Code, errors.Unwrap(f))
	}
	if _, ok := errors.AsType[*malformedError](err); ok {
		f := c.failure(fault.ModelBadReply, err)
		f.Retry = true
		return f
	}
	switch {
	case errors.Is(err, errSilent):
		return c.failure(fault.ModelTimeout, err)
	case errors.Is(err, errTooLong):
		return c.failure(fault.ModelBadReply, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.failure(fault.ModelCutOff, err)
	}
	return c.failure(fault.ModelFailed, err)
}

func (c *Client) failure(code fault.Code, cause error) *model.Failure {
	f := &model.Failure{Fault: fault.New(code)}
	if cause != nil {
		f.Said.Message = c.text(cause.Error(), maxDetail)
		f.Fault = f.Fault.Wrap(errors.New(f.Said.Message))
	}
	switch code {
	case fault.ModelBusy, fault.ModelRateLimited, fault.ModelFailed, fault.ModelCutOff:
		f.Retry = true
	}
	return f
}

// text returns a provider's text without keys and control characters, in one line of bounded length.
func (c *Client) text(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(c.scrub(s), "?"))
	s = strings.Join(strings.Fields(c.scrub(s)), " ")
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	return s
}

// empty returns what the caller learns of an answer without text and calls: a model that says nothing is worth a second try, one that has spoken its limit
// of tokens or refuses is not.
func (c *Client) empty(e *emptyError) *model.Failure {
	switch e.stop {
	case model.StopFiltered, model.StopRefused:
		return c.failure(fault.ModelContentRefused, e)
	case model.StopLength:
		f := c.failure(fault.ModelNoAnswer, e)
		f.Fault = fault.Newf(fault.ModelNoAnswer, "%s", limitSpent).Wrap(f.Fault.Unwrap())
		return f
	}
	f := c.failure(fault.ModelNoAnswer, e)
	f.Retry, f.Once = true, true
	return f
}

// limitSpent is the problem of a reasoning model whose limit is too low.
const limitSpent = "The model reached the limit of tokens before it gave an answer. Ask for less, or tell the operator to raise the limit."

// BadReply returns the fault of an unintelligible answer; the text is for the log.
func BadReply(format string, args ...any) error {
	return fault.New(fault.ModelBadReply).Wrap(fmt.Errorf(format, args...))
}
