package asp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// TestStatusesOfTheDocument: with the setting document status has the word of the
// description, and a request in the words of the SDKs still has its answer in them.
func TestStatusesOfTheDocument(t *testing.T) {
	s := settings
	s.Statuses = command.VocabularyDocument
	client := asp.Client(s)
	for filters, want := range map[string][]string{
		`{}`:                       {"active", "online"},
		`{"status":"busy"}`:        {"active", "online"},
		`{"status":"maintenance"}`: {"active", "online"},
		`{"status":"online"}`:      {"online", "active"},
		`{"status":"OFFLINE"}`:     {"online", "active"},
	} {
		orders, _, err := client.Orders([]byte(`{"id":"1","type":"client.agent.list.request","content":{"filters":`+filters+`}}`),
			asp.Inbound{Participant: registered(command.ParticipantClient), Now: dialecttest.Now})
		require.NoError(t, err)
		require.Len(t, orders, 1)
		frames := client.Answer(dialecttest.Link, orders[0], json.RawMessage(`{"peers":[{"id":"a","name":"A","status":"active","online":true}]}`))
		require.Len(t, frames, 1)
		var f struct {
			Content struct {
				Agents []struct{ Status, State string }
			}
		}
		require.NoError(t, json.Unmarshal(frames[0], &f))
		require.Equal(t, want, []string{f.Content.Agents[0].Status, f.Content.Agents[0].State}, filters)
	}
}
