package auth

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestTokenFromRequest(t *testing.T) {
	sub := func(s string) string { return "waggle.token." + base64.RawURLEncoding.EncodeToString([]byte(s)) }
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, c := range map[string]struct {
		header      http.Header
		token       string
		subprotocol string
		ok          bool
	}{
		"nothing":                    {http.Header{}, "", "", false},
		"bearer":                     {http.Header{"Authorization": {"Bearer t"}}, "t", "", true},
		"bearer in any case":         {http.Header{"Authorization": {"bEARER  t "}}, "t", "", true},
		"bearer without a token":     {http.Header{"Authorization": {"Bearer"}}, "", "", true},
		"password":                   {http.Header{"Authorization": {"Basic dTpw"}}, "p", "", true},
		"password with a colon":      {http.Header{"Authorization": {"basic dTpwOnE="}}, "p:q", "", true},
		"password from an address":   {http.Header{"Authorization": {basic("u:a%2Fb%3D")}}, "a/b=", "", true},
		"plus is no space":           {http.Header{"Authorization": {basic("u:a+b")}}, "a+b", "", true},
		"percent sign":               {http.Header{"Authorization": {basic("u:100%")}}, "100%", "", true},
		"empty password":             {http.Header{"Authorization": {"Basic dTo="}}, "", "", true},
		"user only":                  {http.Header{"Authorization": {"Basic dQ=="}}, "", "", true},
		"bad basic":                  {http.Header{"Authorization": {"Basic *"}}, "", "", true},
		"two passwords":              {http.Header{"Authorization": {"Basic dTpw", "Basic dTpw"}}, "", "", true},
		"bearer before basic":        {http.Header{"Authorization": {"Basic dTpw", "Bearer t"}}, "t", "", true},
		"key before basic":           {http.Header{"Authorization": {"Basic dTpw"}, "X-Api-Key": {"k"}}, "k", "", true},
		"subprotocol before basic":   {http.Header{"Authorization": {"Basic dTpw"}, "Sec-Websocket-Protocol": {sub("t")}}, "t", "", true},
		"basic of a page":            {http.Header{"Authorization": {"Basic dTpw"}, "Origin": {"null"}}, "", "", false},
		"basic of an image":          {http.Header{"Authorization": {"Basic dTpw"}, "Sec-Fetch-Site": {"same-origin"}}, "", "", false},
		"another scheme":             {http.Header{"Authorization": {"Digest u"}}, "", "", false},
		"two bearers":                {http.Header{"Authorization": {"Bearer t", "Bearer u"}}, "", "", true},
		"key":                        {http.Header{"X-Api-Key": {"k"}}, "k", "", true},
		"empty key":                  {http.Header{"X-Api-Key": {""}}, "", "", true},
		"two keys":                   {http.Header{"X-Api-Key": {"k", "k"}}, "", "", true},
		"bearer before key":          {http.Header{"Authorization": {"Bearer t"}, "X-Api-Key": {"k"}}, "t", "", true},
		"subprotocol":                {http.Header{"Sec-Websocket-Protocol": {"waggle, " + sub("t.é")}}, "t.é", "waggle", true},
		"subprotocol in two headers": {http.Header{"Sec-Websocket-Protocol": {sub("t"), "waggle"}}, "t", "waggle", true},
		"subprotocol alone":          {http.Header{"Sec-Websocket-Protocol": {sub("t")}}, "t", "", true},
		"only the spoken one":        {http.Header{"Sec-Websocket-Protocol": {"waggle"}}, "", "waggle", false},
		"foreign ones":               {http.Header{"Sec-Websocket-Protocol": {"chat, mqtt"}}, "", "", false},
		"two tokens":                 {http.Header{"Sec-Websocket-Protocol": {sub("t") + "," + sub("u")}}, "", "", true},
		"bad base64":                 {http.Header{"Sec-Websocket-Protocol": {"waggle,waggle.token.*"}}, "", "waggle", true},
		"padded base64":              {http.Header{"Sec-Websocket-Protocol": {"waggle.token.dA=="}}, "", "", true},
		"loose base64":               {http.Header{"Sec-Websocket-Protocol": {"waggle.token.dB"}}, "", "", true},
		"key with subprotocol":       {http.Header{"X-Api-Key": {"k"}, "Sec-Websocket-Protocol": {"waggle"}}, "k", "waggle", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/ws?token=no&api_key=no&access_token=no", nil)
		r.Header = c.header
		token, subprotocol, ok := TokenFromRequest(r)
		require.Equal(t, c.token, token, name)
		require.Equal(t, c.subprotocol, subprotocol, name)
		require.Equal(t, c.ok, ok, name)
	}
}

func TestAnyTokenTravelsInASubprotocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringN(1, 200, -1).Draw(t, "token")
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Sec-WebSocket-Protocol", "waggle, waggle.token."+base64.RawURLEncoding.EncodeToString([]byte(want)))
		got, subprotocol, ok := TokenFromRequest(r)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, "waggle", subprotocol)
	})
}

func TestAnyTokenIsAPassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "token")
		user := rapid.StringMatching(`[^:]*`).Draw(t, "user")
		// The password of an address, as some libraries send it.
		sent := []string{url.PathEscape(want), strings.ReplaceAll(url.QueryEscape(want), "+", "%20")}
		if !strings.Contains(want, "%") {
			sent = append(sent, want)
		}
		for _, password := range sent {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.SetBasicAuth(user, password)
			got, _, ok := TokenFromRequest(r)
			require.True(t, ok)
			require.Equal(t, want, got)
		}
	})
}

func TestRequireLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:9000", "127.8.9.1:0", "[::1]:9000", "localhost:9000", "LocalHost:1", "[::ffff:127.0.0.1]:1"} {
		require.NoError(t, RequireLoopback(addr), addr)
	}
	for _, addr := range []string{
		":9000", "0.0.0.0:9000", "[::]:9000", "192.168.1.1:9000", "example.com:9000", "localhost.example.com:1", "127.0.0.1.nip.io:1",
		"[::ffff:10.0.0.1]:1", "[fe80::1]:1", "2130706433:1", "0x7f000001:1", "127.1:1",
	} {
		err := RequireLoopback(addr)
		require.ErrorContains(t, err, "auth.api_keys", addr)
		require.ErrorContains(t, err, "auth.jwt", addr)
	}
	for _, addr := range []string{"", "127.0.0.1", "::1"} {
		require.Error(t, RequireLoopback(addr), addr)
	}
}

// Whatever the names, a principal owns the logs of its tenant and no others.
func TestTwoTenantsNeverOwnTheSameLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
		a := Principal{Subject: "same", Tenant: tenant(t, name.Draw(t, "a")), Roles: roles}
		b := Principal{Subject: "same", Tenant: tenant(t, name.Draw(t, "b")), Roles: roles}
		l := subject.Log{
			Tenant: rapid.SampledFrom([]id.Tenant{a.Tenant, b.Tenant, tenant(t, name.Draw(t, "c"))}).Draw(t, "of"),
			Kind:   rapid.SampledFrom([]id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam}).Draw(t, "kind"),
			Entity: id.EntityFromExternal(rapid.String().Draw(t, "entity")),
		}
		require.Equal(t, l.Tenant.String() == a.Tenant.String(), a.Owns(l))
		if a.Tenant != b.Tenant {
			require.False(t, a.Owns(l) && b.Owns(l))
		}
		require.False(t, Principal{Roles: roles}.Owns(l))
		require.False(t, Principal{}.Owns(subject.Log{}), "a log without a tenant has no owner")
		require.False(t, a.Owns(subject.Log{Kind: l.Kind, Entity: l.Entity}))
	})
}
