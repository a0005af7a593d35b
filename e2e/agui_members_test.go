//go:build nightly

package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/auth"
)

// TestAGUIFilesOfMembers: each version of a file that a member made has an address, which gives what the member wrote, at any
// gateway, for those who see the team, also once the file has changed or is gone.
func TestAGUIFilesOfMembers(t *testing.T) {
	f := newFleet(t, models.Team{
		"Boss: write": {
			writesFile("out/häuschen.txt", "first <b>"), writesFile("out/häuschen.txt", "second"),
			models.Calls("workspace_write_file", object{"path": "out/häuschen.txt", "content": " line", "append": true}), models.Says("It is written."),
		},
	}.Script())
	f.configure(fmt.Sprintf("auth:\n  api_keys:\n    - {id: red, sha256: %s, tenant: red, roles: [user]}\n    - {id: blue, sha256: %s, tenant: blue, roles: [user]}\n    - {id: eye, sha256: %s, tenant: red, roles: [viewer]}\n",
		auth.HashKey(redKey), auth.HashKey(blueKey), auth.HashKey(redKey+"-viewer")))
	f.serve("session,pipeline,task,team,worker")
	tools := f.serve("tools")
	_, addr := f.gateway()
	_, other := f.gateway()
	available(t, addr, redKey, "teams")
	found := post(t, "http://"+addr+"/api/v1/teams", redKey, `{"name":"writers","coordinator":"Boss","members":[{"name":"Boss","auto_execute_tools":true,"tools":["workspace/write_file"]}]}`)
	var team struct {
		TeamID string `json:"team_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(found[strings.Index(found, "{"):]), &team), found)
	c := aguiClient{t: t, addr: addr, key: redKey}
	frames := c.runAt("/teams/"+team.TeamID, "t", newRun(), "write", nil)
	require.Equal(t, "It is written.", speech(frames))
	files := artifacts(t, frames)
	require.Len(t, files, 3, "%v", files)
	require.Equal(t, files[2:], artifacts(t, aguiClient{t: t, addr: other, key: redKey}.get("/teams/"+team.TeamID+"/threads/t")), "who joins gets the newest one")

	tools.Kill()
	kept := filepath.Join(f.workspace+".tenants", "red", "out", "häuschen.txt")
	require.FileExists(t, kept)
	require.NoError(t, os.Remove(kept))
	for i, want := range []string{"first <b>", "second", "second line"} {
		require.Equal(t, len(want), files[i].Size)
		for _, key := range []string{redKey, redKey + "-viewer"} {
			got := fetch(t, http.MethodGet, other, files[i].URL, key)
			require.Equal(t, want, got.body)
			require.Equal(t, http.StatusOK, got.status)
			require.Equal(t, "application/octet-stream", got.header.Get("Content-Type"))
			require.Equal(t, "attachment; filename*=utf-8''h%C3%A4uschen.txt", got.header.Get("Content-Disposition"))
			require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
			require.Contains(t, got.header.Get("Content-Security-Policy"), "sandbox")
			sum := sha256.Sum256([]byte(want))
			require.Equal(t, "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":", got.header.Get("Repr-Digest"))
			require.Equal(t, "private, max-age=86400, immutable", got.header.Get("Cache-Control"))
		}
	}
	path, version, _ := strings.Cut(files[0].URL, "?")
	head := fetch(t, http.MethodHead, addr, files[0].URL, redKey)
	require.Equal(t, http.StatusOK, head.status)
	require.Equal(t, "9", head.header.Get("Content-Length"))
	id := path[strings.LastIndex(path, "/")+1:]
	ofTeam := "/api/v1/artifacts/team/" + team.TeamID + "/" + id
	for _, path := range []string{path, ofTeam} {
		newest := fetch(t, http.MethodGet, other, path, redKey)
		require.Equal(t, "second line", newest.body)
		require.Equal(t, "private, no-cache", newest.header.Get("Cache-Control"))
	}
	require.Equal(t, "first <b>", fetch(t, http.MethodGet, other, ofTeam+"?"+version, redKey).body)
	refusedFiles(t, addr, files[0].URL, ofTeam)
}

// refusedFiles checks requests for what the principal does not see, or what is not there.
func refusedFiles(t *testing.T, addr, url, ofTeam string) {
	t.Helper()
	path, version, _ := strings.Cut(url, "?")
	at := strings.Split(path, "/") // "", api, v1, artifacts, member, ID, ARTIFACT
	for _, p := range []string{url, path, ofTeam, ofTeam + "?" + version} {
		team := strings.Split(ofTeam, "/")[5]
		foreign := fetch(t, http.MethodGet, addr, p, blueKey)
		unknown := fetch(t, http.MethodGet, addr, strings.NewReplacer(at[5], "team_0123456789abcdef-a0", team, "team_0123456789abcdef").Replace(p), blueKey)
		require.Equal(t, http.StatusNotFound, foreign.status, foreign.body)
		require.Equal(t, unknown.without(), foreign.without(), p)
	}
	digest := strings.TrimPrefix(version, "version=")
	for _, p := range []string{
		path + "?version=" + strings.Repeat("0a", 32), path + "?version=x", path + "?version=..%2F..", path + "?version=*", path + "?version=%3E",
		strings.Join(at[:6], "/") + "/artifact_0123456789abcdef", strings.Join(at[:6], "/") + "/artifact_0123456789abcdef?" + version,
		strings.Join(at[:6], "/") + "/..%2F..%2Fetc%2Fpasswd", "/api/v1/artifacts/member/*/" + at[6], "/api/v1/artifacts/inbox/" + at[5] + "/" + at[6],
		"/api/v1/artifacts/session/" + at[5] + "/" + at[6] + "?" + version, "/api/v1/sessions/" + at[5] + "/files/" + digest,
	} {
		got := fetch(t, http.MethodGet, addr, p, redKey)
		require.Equal(t, http.StatusNotFound, got.status, "%s: %s", p, got.body)
		require.Contains(t, got.header.Get("Content-Type"), "problem+json")
	}
	require.Equal(t, http.StatusUnauthorized, fetch(t, http.MethodGet, addr, url, "").status)
}

// without returns the answer as it is for any other id.
func (f fetched) without(ids ...string) string {
	text := f.body
	for _, id := range ids {
		text = strings.ReplaceAll(text, id, "ID")
	}
	return fmt.Sprint(f.status, " ", passing.ReplaceAllString(text, "MOVES"))
}

const redKey, blueKey = process.Canary + "-key-of-red", process.Canary + "-key-of-blue"
