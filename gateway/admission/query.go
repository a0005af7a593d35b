package admission

import "net/http"

// queryToken is the parameter in which pages of the original servers send their token.
const queryToken = "token"

// FromQuery moves the token of a request's query into its header, and leaves it nowhere else: addresses end up in logs,
// errors and requests to other cells. It is for addresses on which programs of the original servers connect, which
// cannot send it in another way; credentials in the header come first.
func FromQuery(r *http.Request) *http.Request {
	q := r.URL.Query()
	if !q.Has(queryToken) {
		return r
	}
	tokens := q[queryToken]
	q.Del(queryToken)
	r = r.Clone(r.Context())
	r.URL.RawQuery = q.Encode()
	r.RequestURI = r.URL.RequestURI()
	if CredentialsOf(r).Given {
		return r
	}
	for _, t := range tokens {
		if t != "" {
			r.Header.Add("Authorization", "Bearer "+t)
		}
	}
	return r
}
