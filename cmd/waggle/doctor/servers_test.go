package doctor

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

func report(t *testing.T, text string) (r serverReport) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	return r
}

func TestWhatServersSay(t *testing.T) {
	good := func(name string) serverReport {
		return report(t, `{"server":{"name":"`+name+`","ver":"2.15.2"},"data":{"config":{"sync_interval":100000000},"meta_cluster":{"leader":"a","cluster_size":3}}}`)
	}
	all := []serverReport{good("a"), good("b"), good("c")}
	require.Equal(t, OK, judge(all)[0].Level)
	require.Contains(t, judge(all)[0].Is, "the meta leader is a")
	require.Contains(t, judge(all)[0].Is, "b 2.15.2, sync_interval 100ms")
	require.Equal(t, Fail, judge(all[:2])[0].Level, "one does not answer")

	slow := good("c")
	slow.Data.Config.Sync = 2 * time.Minute
	require.Equal(t, Warn, judge([]serverReport{all[0], all[1], slow})[0].Level)
	slow.Data.Config.Always = true
	require.Equal(t, OK, judge([]serverReport{all[0], all[1], slow})[0].Level)
	old := good("c")
	old.Server.Version = "2.12.0"
	require.Contains(t, judge([]serverReport{all[0], all[1], old})[0].Do, "one version")
	full := report(t, `{"server":{"name":"c","ver":"2.15.2"},"data":{"disabled":true,"config":{}}}`)
	require.Equal(t, Fail, judge([]serverReport{all[0], all[1], full})[0].Level)
	require.Contains(t, judge([]serverReport{all[0], all[1], full})[0].Do, "restart c")
	mute := report(t, `{"server":{"name":"c","ver":"2.15.2"},"error":{"code":500,"description":"no"}}`)
	require.Contains(t, judge([]serverReport{all[0], all[1], mute})[0].Is, "c 2.15.2, does not answer for JetStream: no")
	headless := good("a")
	headless.Data.Meta.Leader = ""
	require.Contains(t, judge([]serverReport{headless})[0].Is, "no meta leader")
}

// No user may examine a server without accounts.
func TestAServerWithoutASystemUser(t *testing.T) {
	url, _ := bustest.Server(t)
	conn, err := bus.Connect(t.Context(), bus.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = rollCall(t.Context(), conn)
	require.ErrorIs(t, err, errNotSystem)
}
