package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Parameters of the query. The value that describes one in the document also reads it from requests, with query.

// Bounds of the items of a page: more than a person looks at, and few enough to be encoded within some milliseconds.
const (
	defaultItems = 200
	maxItems     = 1000
)

// before is the parameter of all lists that have pages.
var before = openapi.Parameter{Name: "before", About: "The member next of the previous page.", Type: "string"}

// count is a number from 1 to its maximum.
type count struct {
	openapi.Parameter
	otherwise int // without the parameter
}

// limit is the number of items of a page.
func limit(items string, otherwise, maximum int) count {
	about := fmt.Sprintf("%s of the page; %d by default.", items, otherwise)
	return count{openapi.Parameter{Name: "limit", About: about, Type: "integer", Maximum: maximum}, otherwise}
}

// choice is one of some texts.
type choice struct {
	openapi.Parameter
	known []string
}

func chosen(name, about string, known ...string) choice {
	return choice{openapi.Parameter{Name: name, About: about, Type: "string"}, known}
}

// text is a text that is not long.
type text struct {
	openapi.Parameter
	bytes int // at most
}

func short(name, about string, bytes int) text {
	return text{openapi.Parameter{Name: name, About: about, Type: "string"}, bytes}
}

// moment is a time.
type moment struct{ openapi.Parameter }

// query reads the parameters of a request. Its err is about the first one that is wrong.
type query struct {
	url.Values
	err error
}

func queryOf(r *http.Request) *query { return &query{Values: r.URL.Query()} }

// wrong remembers what is wrong with a parameter.
func (q *query) wrong(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *query) count(of count) int {
	s := q.Get(of.Name)
	if s == "" {
		return of.otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > of.Maximum {
		q.wrong(fault.Newf(fault.InvalidField, "%s must be a number from 1 to %d.", of.Name, of.Maximum).At(of.Name))
	}
	return n
}

func (q *query) choice(of choice) string {
	s := q.Get(of.Name)
	if s != "" {
		q.wrong(oneOf(of.Name, s, of.known))
	}
	return s
}

func (q *query) text(of text) string {
	s := q.Get(of.Name)
	if len(s) > of.bytes {
		q.wrong(fault.Newf(fault.InvalidField, "%s must be at most %d bytes.", of.Name, of.bytes).At(of.Name))
	}
	return s
}

func (q *query) moment(of moment) time.Time {
	s := q.Get(of.Name)
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		q.wrong(fault.Newf(fault.InvalidField, "%s must be a time in RFC 3339.", of.Name).At(of.Name).Wrap(err))
	}
	return at
}

// place reads the place in the index that the parameter before names, 0 for the end.
func (q *query) place() uint64 {
	at, err := index.ParsePlace(q.Get(before.Name))
	q.wrong(err)
	return at
}

// seq reads the position of an event, of at most last. Without the parameter it is otherwise.
func (q *query) seq(name string, otherwise, last uint64) uint64 {
	if !q.Has(name) {
		return otherwise
	}
	at, err := position(q.Get(name), last, name)
	q.wrong(err)
	return at
}

// position reads a seq of at most last.
func position(s string, last uint64, field string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > last {
		return 0, fault.New(fault.CursorInvalid).At(field)
	}
	return n, nil
}

// oneOf returns the fault of a text that is not among the known ones.
func oneOf(name, s string, known []string) error {
	if slices.Contains(known, s) {
		return nil
	}
	return fault.Newf(fault.InvalidField, "%s must be one of %s.", name, strings.Join(known, ", ")).At(name)
}
