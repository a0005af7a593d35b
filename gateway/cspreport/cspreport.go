// Package cspreport takes the reports of browsers about pages that broke their content security policy.
//
// Anyone can send a report, and a report has texts of whatever page it is about. So nothing of it goes into an answer, a log
// or a metric but the name of a directive that this package knows.
package cspreport

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// maxBody bounds a report: browsers cut the sample of a script to 40 characters, and addresses may be long.
	maxBody = 16 << 10
	// maxReports bounds the reports of one body.
	maxReports = 100
	// rate and burst bound the bodies of an address in a second: a page that breaks its policy reports every element.
	rate, burst = 1, 30
	// quiet is the time between two lines of the log.
	quiet = time.Minute
	// Other is the directive of reports about directives that the policy of the console does not have.
	Other = "other"
)

// Directives are those that a report may be about.
var Directives = []string{
	"default-src", "script-src", "script-src-elem", "script-src-attr", "style-src", "style-src-elem", "style-src-attr", "img-src", "connect-src",
	"worker-src", "font-src", "media-src", "object-src", "frame-src", "manifest-src", "form-action", "base-uri", "frame-ancestors",
	"require-trusted-types-for", "trusted-types", Other,
}

// Reports counts reports. It is safe for concurrent use.
type Reports struct {
	log    zerolog.Logger
	count  func(directive string)
	refuse func(http.ResponseWriter, error)
	clock  func() time.Time
	table  *admission.Table

	mu   sync.Mutex
	last time.Time // of the last line
	news int       // reports since then
}

// New returns the handler of reports. It calls count once for each of them with one of Directives, and refuse for requests that it
// does not take.
func New(log zerolog.Logger, clock func() time.Time, count func(directive string), refuse func(http.ResponseWriter, error)) (*Reports, error) {
	table, err := admission.NewTable(admission.Limits{Rate: rate, Burst: burst})
	return &Reports{log: log, clock: clock, count: count, refuse: refuse, table: table}, err
}

// ServeHTTP counts the reports of a request. The answer is empty.
func (c *Reports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, _ := admission.Address(r.RemoteAddr)
	leave, verdict := c.table.Enter(address, c.clock())
	if verdict != admission.Entered {
		c.refuse(w, fault.Newf(fault.RateLimited, "Too many reports. Send fewer per second."))
		return
	}
	defer leave()
	directives, err := read(w, r)
	if err != nil {
		c.refuse(w, err)
		return
	}
	for _, d := range directives {
		c.count(d)
	}
	c.note(directives)
	w.WriteHeader(http.StatusNoContent)
}

// note logs that reports came, unless it did so a short time ago: the next line has the number of all since then.
func (c *Reports) note(directives []string) {
	if len(directives) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news += len(directives)
	now := c.clock()
	if !c.last.IsZero() && now.Sub(c.last) < quiet {
		return
	}
	c.log.Warn().Int("reports", c.news).Str("directive", directives[0]).
		Msg("browser reported violation of the console's security policy")
	c.last, c.news = now, 0
}

// report is what both forms of a report say: that of report-uri, and that of the Reporting API.
type report struct {
	Old struct {
		Effective string `json:"effective-directive"`
		Violated  string `json:"violated-directive"`
	} `json:"csp-report"`
	Type string `json:"type"`
	Body struct {
		Effective string `json:"effectiveDirective"`
	} `json:"body"`
}

// read returns the directives that the reports of a request are about.
func read(w http.ResponseWriter, r *http.Request) ([]string, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{"application/csp-report", "application/reports+json"}, media) {
		return nil, fault.Newf(fault.BadJSON, "A report must have the type application/csp-report or application/reports+json.")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, fault.New(fault.MessageTooBig)
	}
	if err != nil {
		return nil, fault.New(fault.BadJSON).Wrap(err)
	}
	if media == "application/csp-report" {
		var one report
		if err := json.Unmarshal(raw, &one); err != nil || one.directive() == "" {
			return nil, fault.New(fault.BadJSON)
		}
		return []string{known(one.directive())}, nil
	}
	var all []report
	if err := json.Unmarshal(raw, &all); err != nil || len(all) > maxReports {
		return nil, fault.New(fault.BadJSON)
	}
	var out []string
	for _, one := range all {
		if one.Type == "csp-violation" { // the Reporting API has reports of other things, too
			out = append(out, known(one.Body.Effective))
		}
	}
	return out, nil
}

// directive returns the name of the directive of a report of report-uri. Old browsers give its values as well.
func (r report) directive() string {
	if r.Old.Effective != "" {
		return r.Old.Effective
	}
	name, _, _ := strings.Cut(r.Old.Violated, " ")
	return name
}

func known(directive string) string {
	if slices.Contains(Directives, directive) {
		return directive
	}
	return Other
}

var _ http.Handler = (*Reports)(nil)
