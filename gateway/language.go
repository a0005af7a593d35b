package gateway

import (
	"net/http"

	"golang.org/x/text/language"

	"github.com/waggle-dev/waggle/gateway/dialect"
)

// maxLanguages bounds what is read of a header: nobody reads more languages.
const maxLanguages = 1 << 10

// speaking returns the codec for the language that a browser is set to, if there are
// texts in it and the query names none.
func speaking(codec dialect.Codec, r *http.Request) dialect.Codec {
	texts, ok := codec.(dialect.Sessions)
	header := r.Header.Get("Accept-Language")
	if !ok || header == "" || len(header) > maxLanguages || r.URL.Query().Get(queryLanguage) != "" {
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
		if in, ok := texts.In(base.String()); ok {
			return in
		}
	}
	return codec
}

// queryLanguage is the parameter that names the language of texts for people, in every
// dialect that has such texts.
const queryLanguage = "language"
