package fold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestInlineFilesComeWithTheMessage: texts and images are handed to the model, others are kept and named.
func TestInlineFilesComeWithTheMessage(t *testing.T) {
	m, err := folded(nil).Means(request(t, `{"messages":[{"id":"x","role":"user","content":[
		{"type":"text","text":"read"},
		{"type":"document","source":{"type":"data","mimeType":"text/markdown; charset=utf-8","value":"bcO8"}},
		{"type":"document","source":{"type":"data","mimeType":"application/json","value":"e30="},"metadata":{"filename":"a\nb.json"}},
		{"type":"image","source":{"type":"data","mimeType":"image/png","value":"AAAA"}},
		{"type":"binary","mimeType":"image/gif","data":"AAAA","filename":"old.gif"},
		{"type":"audio","source":{"type":"data","mimeType":"audio/wav","value":"AAAA"}},
		{"type":"audio","source":{"type":"file","value":"file-7"}}]}]}`))
	require.NoError(t, err)
	d, ok := m.Intents[0].Data.(dialect.SendMessage)
	require.True(t, ok)
	require.Equal(t, "read", d.Content)
	require.Len(t, d.Facts, 2)
	require.Equal(t, "mü", d.Facts[0].Value)
	require.Contains(t, d.Facts[1].Description, "ab.json (application/json)")
	require.Equal(t, []string{"audio", "audio"}, m.Skipped)
	require.True(t, m.Edited, "the client gets addresses for what it has sent")
	var kinds []string
	for _, f := range d.Files {
		kinds = append(kinds, f.Kind+" "+f.Name)
		require.NotEmpty(t, f.Contents)
	}
	require.Equal(t, []string{"document ", "document ab.json", "image ", "image old.gif", "audio "}, kinds)
	require.Equal(t, `"AAAA"`, string(d.Files[2].Contents))
}

// stored is a file as the log has it.
func stored(kind, media, name string) event.File {
	return event.File{Kind: kind, MediaType: media, Name: name, Size: 3, Object: event.ObjectRef{Log: "session.s1", Digest: "d1", Size: 6}}
}

// TestStoredFilesHaveAddresses, in messages and in results of the client's tools.
func TestStoredFilesHaveAddresses(t *testing.T) {
	data := begun()
	data[1] = event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "look", RunSpec: event.RunSpec{
		Files: []event.File{stored("image", "image/png", ""), stored("document", "text/plain", "a.txt")},
	}}
	data = append(data,
		event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "shoot"},
		event.JobSuspendedData{RunID: "r1", Inputs: []string{"q1"}},
		event.InputAnsweredData{
			InputID: "q1", RunID: "r1", CommandID: "x", Decision: event.DecisionApprove, Scope: event.ScopeClientTool, CallID: "c1", Result: "a shot",
			Files: []event.File{stored("image", "image/png", "")},
		})
	image := `{"type":"image","source":{"type":"url","value":"/api/v1/sessions/s1/files/d1","mimeType":"image/png"}}`
	all := strings.Join(framesOf(fold.V1, logOf(t, data...)), "\n")
	require.Contains(t, all, `{"type":"text","text":"look"},`+image+`,{"type":"document","source":{"type":"url","value":"/api/v1/sessions/s1/files/d1","mimeType":"text/plain"},"metadata":{"filename":"a.txt"}}`)
	prelude := ""
	for _, f := range folded(logOf(t, data...)).Clone("t").Prelude() {
		prelude += string(f.Data)
	}
	require.Contains(t, prelude, `"content":[{"type":"text","text":"a shot"},`+image+`]`)
	require.Contains(t, prelude, `"content":[{"type":"text","text":"look"},`+image)
}

// TestToolsOfTheClientReturnFiles beside their text.
func TestToolsOfTheClientReturnFiles(t *testing.T) {
	thread := folded(logOf(t, append(begun(),
		event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "shoot", Digest: "d"},
		event.JobSuspendedData{RunID: "r1", Inputs: []string{"q1"}})...))
	const result = `{"messages":[{"id":"t","role":"tool","toolCallId":"c1","content":[{"type":"text","text":"a shot"},
		{"type":"image","source":{"type":"url","value":"https://example.com/a.png"}},
		{"type":"document","source":{"type":"data","mimeType":"text/plain","value":"YQ=="}},
		{"type":"image","source":{"type":"data","mimeType":"image/png","value":"%s"}}]}]}`
	m, err := thread.Means(request(t, fmt.Sprintf(result, "AAAA")))
	require.NoError(t, err)
	d, ok := m.Intents[0].Data.(dialect.Answer)
	require.True(t, ok)
	require.Equal(t, "a shot\n\nhttps://example.com/a.png\n\na", *d.Result)
	require.Len(t, d.Files, 2)
	require.True(t, m.Edited)
	_, err = thread.Means(request(t, fmt.Sprintf(result, "?")))
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, "messages[0].content[3].source.value", f.Field)
}

// TestAnIncompleteTextSaysSoInTheHistory: its message has the reason that the end of the text has given.
func TestAnIncompleteTextSaysSoInTheHistory(t *testing.T) {
	for reason, want := range map[string]*wire.Metadata{
		event.StopEnd: nil, event.StopStopped: {Waggle: wire.Stop{StopReason: "stopped"}}, event.StopLength: {Waggle: wire.Stop{StopReason: "length"}},
	} {
		data := append(begun(),
			event.MessageStartedData{MessageID: "a1", RunID: "r1"},
			event.MessageDeltaData{MessageID: "a1", RunID: "r1", Text: "I begin. "},
			event.MessageCompletedData{MessageID: "a1", RunID: "r1", Content: "I begin. ", StopReason: reason})
		thread := folded(logOf(t, data...)).Clone("t")
		page, _, ok := thread.Messages("", 1)
		require.True(t, ok)
		require.Len(t, page, 1)
		require.Equal(t, "a1", page[0].ID)
		require.Equal(t, want, page[0].Metadata, reason)
		if want != nil {
			require.Contains(t, string(thread.Snapshot()), `"metadata":{"waggle":{"stopReason":"`+reason+`"}}`)
		}
	}
}
