package admission_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/admission"
)

func TestFromQuery(t *testing.T) {
	for name, c := range map[string]struct {
		query, header, token, left string
		given                      bool
	}{
		"token":              {"token=CANARY", "", "CANARY", "", true},
		"between others":     {"a=1&token=CANARY&b=2", "", "CANARY", "a=1&b=2", true},
		"escaped":            {"token=CAN%41RY", "", "CANARY", "", true},
		"with a broken part": {"token=CANARY&b=%zz", "", "CANARY", "", true},
		"two":                {"token=CANARY&token=CANARY", "", "", "", true},
		"empty":              {"token=&a=1", "", "", "a=1", false},
		"the header first":   {"token=CANARY", "Bearer h", "h", "", true},
		"none":               {"a=1&b=%zz", "", "", "a=1&b=%zz", false},
		"another name":       {"Token=x", "", "", "Token=x", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/ws?"+c.query, nil)
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			moved := admission.FromQuery(r)
			got := admission.CredentialsOf(moved)
			require.Equal(t, []any{c.token, c.given, c.left}, []any{got.Token, got.Given, moved.URL.RawQuery})
			require.NotContains(t, moved.URL.String()+moved.RequestURI, "CANARY")
		})
	}
}

// TestNoTokenStaysInAnAddress: whatever the query, no token of it is left in the address.
func TestNoTokenStaysInAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := &url.URL{Path: "/ws", RawQuery: rapid.StringMatching(`([ab%;&=]|token=|TOKEN9)*`).Draw(t, "query")}
		r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}, RequestURI: u.RequestURI()}
		require.False(t, admission.FromQuery(r).URL.Query().Has("token"), u.RawQuery)
	})
}
