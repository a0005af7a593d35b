package request

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestABodyIsSentAsJSON: a page of another origin may send text/plain and forms without asking the gateway first.
func TestABodyIsSentAsJSON(t *testing.T) {
	t.Parallel()
	for media, fits := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON": true,
		"": false, "text/plain": false, "text/plain; a=application/json": false, "application/x-www-form-urlencoded": false,
		"multipart/form-data; boundary=x": false, "application/jsonl": false, "application/json; ;": false,
	} {
		for _, body := range []string{`{"a":1}`, ""} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body))
			if media != "" {
				r.Header.Set("Content-Type", media)
			}
			var into struct{ A int }
			err := Decode(r, 100, &into, false)
			if fits || body == "" {
				require.NoError(t, err, media)
			} else {
				require.ErrorIs(t, err, fault.New(fault.MediaType), media)
			}
		}
	}
}
