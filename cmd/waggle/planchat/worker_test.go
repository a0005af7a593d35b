package planchat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

// Notices about workers name no run; each client that waits for a worker shows them.
func TestATalkTellsThatNoWorkerIsAvailable(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		p.Create()
		in := p.Read()
		p.Send(myagent.Frame{Event: myagent.UserMessage, Seq: 2, Metadata: myagent.EchoMeta{Context: ofRun, MessageID: in.Metadata.MessageID}})
		p.Send(myagent.Frame{Event: myagent.SystemNotice, Metadata: myagent.NoticeMeta{Action: myagent.ActionNoWorker}, ShowContent: "No worker is available"})
		finish(p, 3, "Forty-two", "success")
	})
	out, remarks, err := talkTo(t, url, "q?", "", false, nil)
	require.NoError(t, err)
	require.Equal(t, "Forty-two\n", out)
	require.Contains(t, remarks, "No worker is available")
}
