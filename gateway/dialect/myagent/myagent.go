// Package myagent translates between the MyAgent session protocol and the canonical
// commands and events of a session.
//
// One canonical event gives at most one frame, so that the seq of any frame is a safe
// place to resume. All but parts of texts and details of the work give one: what the protocol
// has no word for is a system.notice.
package myagent

import (
	"net/url"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

//go:generate go test -count=1 -run ^TestWatchingAnyRun$ -update .

// paramLanguage is the query parameter that chooses the language of texts for people
// until a session says its own.
const paramLanguage = "language"

// paramDeltas is the query parameter that chooses how texts are shown while they are
// written.
const paramDeltas = "deltas"

// The values of paramDeltas.
const (
	none   = "none"   // when they are complete
	merged = "merged" // answers in pieces; the work behind them is not shown
	every  = "all"    // everything that is written, as it comes
)

// The languages that texts for people exist in.
const (
	chinese = "zh" // the protocol's own
	english = "en"
)

// Settings are what frames say of the server. All gateways of an installation have the
// same, or one event would not give the same frame everywhere.
type Settings struct {
	ServerVersion      string
	SessionTTL         time.Duration // how long a session lives after its last event
	Heartbeat          time.Duration // between two heartbeats
	MaxConcurrentTasks int           // tasks of a run that are solved at once
	Language           string        // of texts for people where a client says none; empty = the protocol's own
}

// Dialect returns the MyAgent dialect. Its codecs implement dialect.Sessions.
func Dialect(s Settings) dialect.MultiDialect {
	all := allFrames()
	m := myagent{}
	for _, texts := range []string{merged, none, every} {
		zh := &codec{name: "myagent", words: &inChinese, settings: s, frames: all, texts: texts}
		en := &codec{name: "myagent+en", words: &inEnglish, settings: s, frames: all, texts: texts}
		if texts != merged {
			zh.name, en.name = zh.name+"+"+texts, en.name+"+"+texts
		}
		zh.languages = map[string]*codec{chinese: zh, english: en}
		en.languages = zh.languages
		m[texts] = zh.in(s.Language)
	}
	return m
}

// myagent has the variants for each way in which texts are shown, in the language of the
// installation.
type myagent map[string]*codec

// Name implements dialect.Dialect.
func (myagent) Name() string { return "myagent" }

// Bind implements dialect.Dialect.
func (m myagent) Bind(query url.Values) (dialect.Codec, error) { return m.BindSessions(query) }

// BindSessions implements dialect.MultiDialect. The query's language is Chinese or English;
// the values of deltas: none, merged (the default), all.
func (m myagent) BindSessions(query url.Values) (dialect.Sessions, error) {
	c := m[first(query.Get(paramDeltas), merged)]
	if c == nil {
		return nil, fault.Newf(fault.InvalidField, "deltas is %s, %s or %s.", none, merged, every).At(paramDeltas)
	}
	language := query.Get(paramLanguage)
	if language != "" && base(language) != english && base(language) != chinese {
		return nil, fault.Newf(fault.InvalidField, "language is %s_CN or %s_US.", chinese, english).At(paramLanguage)
	}
	return c.in(language), nil
}

// codec is one variant of the dialect: the language of its texts for people, and how
// much of what models write it shows before it is complete.
type codec struct {
	name      string
	words     *words
	settings  Settings
	frames    frames
	texts     string
	languages map[string]*codec // the same in all languages
}

var _ dialect.Sessions = (*codec)(nil)

// Name implements dialect.Codec.
func (c *codec) Name() string { return c.name }

// In implements dialect.Sessions.
func (c *codec) In(language string) (dialect.Sessions, bool) {
	_, ok := c.languages[base(language)]
	return c.in(language), ok
}

func (c *codec) in(language string) *codec {
	if in := c.languages[base(language)]; in != nil {
		return in
	}
	return c
}

// base returns the language in a tag (en_US, zh-Hans-CN) without script and region.
func base(tag string) string {
	language, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return strings.ToLower(language)
}
