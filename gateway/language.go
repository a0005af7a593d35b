package gateway

import (
	"net/http"

	"golang.org/x/text/language"

	"github.com/waggle-dev/waggle/gateway/dialect"
)

// maxLanguages bounds the header that is read: no user knows more languages.
const maxLanguages = 1 << 10

// queryLanguage is the parameter that names the language of texts for people, in every
// dialect that has such texts.
const queryLanguage = "language"

// translated returns the codec for the preferred language of a browser. It returns the given one
// if the query names a language, or if the dialect has no texts in a preferred one.
func translated(codec dialect.Sessions, r *http.Request) dialect.Sessions {
	header := r.Header.Get("Accept-Language")
	if header == "" || len(header) > maxLanguages || r.URL.Query().Get(queryLanguage) != "" {
		return codec
	}
	tags, weights, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return codec
	}
	for i, t := range tags {
		base, confidence := t.Base()
		if weights[i] == 0 || confidence == language.No {
			continue
		}
		if in, ok := codec.In(base.String()); ok {
			return in
		}
	}
	return codec
}
