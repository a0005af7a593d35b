package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// artifact is what an activity says of a file.
type artifact struct {
	ArtifactID, Path, URL string
	Size                  int
}

// artifacts are the files that the activities of a stream tell of, in each version.
func artifacts(t *testing.T, frames []aguiFrame) (out []artifact) {
	t.Helper()
	at := map[string]json.RawMessage{}
	for _, f := range frames {
		var a struct {
			MessageID, ActivityType string
			Content                 json.RawMessage
			Patch                   []struct {
				Op, Path string
				Value    json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal([]byte(f.data), &a))
		if a.ActivityType != wire.ActivityArtifact {
			continue
		}
		content := map[string]json.RawMessage{}
		if f.Type == wire.ActivityDelta {
			require.NoError(t, json.Unmarshal(at[a.MessageID], &content))
			for _, p := range a.Patch {
				content[strings.TrimPrefix(p.Path, "/")] = p.Value
			}
			raw, err := json.Marshal(content)
			require.NoError(t, err)
			a.Content = raw
		}
		at[a.MessageID] = a.Content
		var one artifact
		require.NoError(t, json.Unmarshal(a.Content, &one))
		out = append(out, one)
	}
	return out
}

// fetched is an answer about a file.
type fetched struct {
	status int
	header http.Header
	body   string
}

func fetch(t *testing.T, method, addr, path, key string) fetched {
	t.Helper()
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, nil)
	require.NoError(t, err)
	r.Header.Set("X-API-Key", key)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return fetched{resp.StatusCode, resp.Header, string(body)}
}
