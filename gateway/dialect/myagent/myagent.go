// Package myagent translates between the MyAgent session protocol and the canonical
// commands and events of a session.
//
// One canonical event gives exactly one frame, so that the seq of the frames is as
// dense as the log. What the protocol has no word for is a system.notice.
package myagent

import (
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// paramLanguage is the query parameter that chooses the language of texts for people
// until a session says its own.
const paramLanguage = "language"

// The languages that texts for people exist in.
const (
	chinese = "zh_CN" // the protocol's own
	english = "en_US"
)

// Settings are what frames say of the server. All gateways of an installation have the
// same, or one event would not give the same frame everywhere.
type Settings struct {
	ServerVersion      string
	SessionTTL         time.Duration // how long a session lives after its last event
	Heartbeat          time.Duration // between two heartbeats
	MaxConcurrentTasks int           // tasks of a run that are solved at once
}

// Dialect returns the MyAgent dialect. Its codecs implement dialect.Sessions.
func Dialect(s Settings) dialect.Dialect {
	all := allFrames()
	zh := &codec{name: "myagent", words: &inChinese, settings: s, frames: all}
	en := &codec{name: "myagent+en", words: &inEnglish, settings: s, frames: all, zh: zh}
	en.en, zh.zh, zh.en = en, zh, en
	return myagent{zh}
}

type myagent struct{ codec *codec }

// Name implements dialect.Dialect.
func (myagent) Name() string { return "myagent" }

// Bind implements dialect.Dialect. The query's language is zh_CN, which is the default,
// or en_US.
func (m myagent) Bind(query url.Values) (dialect.Codec, error) {
	switch query.Get(paramLanguage) {
	case "", chinese:
		return m.codec, nil
	case english:
		return m.codec.en, nil
	}
	return nil, fault.Newf(fault.InvalidField, "language is %s or %s.", chinese, english).At(paramLanguage)
}

// codec is one variant of the dialect: the language of its texts for people.
type codec struct {
	name     string
	words    *words
	settings Settings
	frames   frames
	zh, en   *codec // both variants, this one included
}

var _ dialect.Sessions = (*codec)(nil)

// Name implements dialect.Codec.
func (c *codec) Name() string { return c.name }

// In implements dialect.Sessions.
func (c *codec) In(language string) dialect.Sessions {
	if language == english {
		return c.en
	}
	return c.zh
}
