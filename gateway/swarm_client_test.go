package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// expectMessages reads messages until the one with the seq and returns their texts.
func (c *client) expectMessages(from, to uint64) (texts []string) {
	c.t.Helper()
	for seq := from; seq <= to; seq++ {
		h := c.expectASP("client.message")
		require.Equal(c.t, seq, h.Seq)
		var text string
		require.NoError(c.t, json.Unmarshal(h.Content.Data, &text))
		texts = append(texts, text)
	}
	return texts
}

// A client is first welcomed, not too early, with its id. It is listed, gets the events of its
// inbox, and can be named.
func TestAClientIsWelcomed(t *testing.T) {
	s := startSwarm(t)
	begin := time.Now()
	c, hello := s.join(pathClient, "")
	require.GreaterOrEqual(t, time.Since(begin), 15*time.Millisecond, "the SDK would lose it")
	clientID := hello.Content.ClientID
	require.NotEmpty(t, clientID)
	require.NotEmpty(t, hello.Content.ResumeToken)
	p := s.onlyEntry(wirecmd.ParticipantClient, clientID)
	require.Equal(t, []string{"active", ""}, []string{p.Status, p.Name})

	l := clientLog("default", clientID)
	s.writeInbox(l, "one", "two")
	require.Equal(t, []string{"one", "two"}, c.expectMessages(2, 3))
	c.sendASP("client.register", "r", map[string]any{"clientName": "Ada", "clientId": "somebody"})
	require.Equal(t, clientID, c.expectASP("client.register.response").Content.ClientID)
	s.until(wirecmd.ParticipantClient, clientID, "named", func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Name == "Ada" })

	// A direct message is shown to the client if its tenant is the client's.
	no := event.CommandRefusedData{CommandID: "new_r_f", Code: string(fault.TaskNotFound), Message: "no"}
	require.Equal(t, "+", s.deliver(p, taskLog("default", "t"), no))
	require.Equal(t, string(fault.TaskNotFound), c.expectASP("error").Content.Code)
	require.Equal(t, "-", s.deliver(p, taskLog("foreign", "t"), no))
	c.leave()
}

// The next request after a confirmed change sees the change, on any replica of the service and
// however often the participant changes: the directory gets the changes at a bounded rate.
func TestWhatWasConfirmedIsSeen(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	for range 8 {
		c, hello := s.join(pathClient, "")
		for round := range 6 {
			name := fmt.Sprint("name ", round)
			c.sendASP("client.register", "r", map[string]any{"clientName": name})
			c.sendASP("client.list", "l", map[string]any{})
			c.expectASP("client.register.response")
			seen := ""
			for _, p := range c.expectASP("client.list.response").Content.Clients {
				if p.ID == hello.Content.ClientID {
					seen = p.Name
				}
			}
			require.Equal(t, name, seen)
		}
		c.leave()
	}
}

// A client that moves between gateways gets every event of its inbox once and in order,
// wherever it is cut off, while more are written all the time.
func TestAClientResumesElsewhere(t *testing.T) {
	t.Parallel()
	const total, rounds = 300, 12
	s := startSwarm(t)
	at := []*swarm{s, s.another()}
	c, hello := s.join(pathClient, "")
	clientID, token := hello.Content.ClientID, hello.Content.ResumeToken
	l := clientLog("default", clientID)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range total {
			data, _ := json.Marshal(fmt.Sprint(i))
			if err := s.append(l, fmt.Sprintf("m-%d", i), event.InboxMessagedData{MessageID: fmt.Sprint(i), Data: data}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	rnd := rand.New(rand.NewPCG(1, 1))
	last := uint64(1)
	for round := range rounds {
		next := min(last+uint64(rnd.IntN(2*total/rounds)), total+1)
		if round == rounds-1 {
			next = total + 1
		}
		for i, text := range c.expectMessages(last+1, next) {
			require.Equal(t, fmt.Sprint(last-1+uint64(i)), text)
		}
		last = next
		c.cut()
		c, hello = at[rnd.IntN(2)].join(pathClient, fmt.Sprintf("clientId=%s&resumeToken=%s&after=%d", clientID, token, last))
		require.True(t, hello.Content.Resumed)
		require.Equal(t, clientID, hello.Content.ClientID)
	}
	<-written
	s.writeInbox(l, "the end")
	require.Equal(t, []string{"the end"}, c.expectMessages(total+2, total+2))
	s.onlyEntry(wirecmd.ParticipantClient, clientID)
}

// The gateway acknowledges events once a client's pong confirms them, and not before.
func TestPongsAcknowledgeEvents(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.AckInterval, c.PingInterval = 20*time.Millisecond, time.Second
	})
	c, hello := s.join(pathClient, "")
	l := clientLog("default", hello.Content.ClientID)
	s.writeInbox(l, "one", "two", "three")
	c.write(frame(fin|opPong, []byte("has 1000"))) // answers no ping
	// A ping may come between two messages, and the next one comes after its pong.
	texts := 0
	var ping []byte
	for texts < 3 || ping == nil {
		op, payload, err := c.read()
		require.NoError(t, err)
		switch {
		case op == opText:
			texts++
		case op == opPing && len(payload) > 0:
			ping = payload
		}
	}
	require.Empty(t, s.inbox(l.Entity.String()), "nothing is noted before the pong")
	c.write(frame(fin|opPong, ping))
	var seq uint64
	for seq < 4 {
		cmd := s.nextCommand(l.Entity.String())
		require.Equal(t, []string{"ack_inbox", "task"}, []string{cmd.Verb.String(), cmd.Service.String()})
		var acked wirecmd.AckEvents
		require.NoError(t, json.Unmarshal(cmd.Data, &acked))
		require.Greater(t, acked.Seq, seq)
		require.LessOrEqual(t, acked.Seq, uint64(4))
		require.Equal(t, l.Entity.String(), acked.ClientID)
		seq = acked.Seq
		for again := false; seq < 4 && !again; {
			op, payload, err := c.read()
			require.NoError(t, err)
			if again = op == opPing && len(payload) > 0; again {
				c.write(frame(fin|opPong, payload))
			}
		}
	}
	s.tasks.mu.Lock()
	s.tasks.acked[hello.Content.ClientID] = seq
	s.tasks.mu.Unlock()
	c.cut()
	s.writeInbox(l, "four")
	c, _ = s.join(pathClient, fmt.Sprintf("clientId=%s&resumeToken=%s", hello.Content.ClientID, hello.Content.ResumeToken))
	require.Equal(t, []string{"four"}, c.expectMessages(5, 5))
}

// A client also resumes by client.register: its socket shows that inbox from then on.
func TestAClientResumesByRegistering(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	former, hello := s.join(pathClient, "")
	clientID, token := hello.Content.ClientID, hello.Content.ResumeToken
	l := clientLog("default", clientID)
	s.writeInbox(l, "one", "two")
	former.expectMessages(2, 3)
	former.cut()

	c, hello := s.join(pathClient, "")
	passing := hello.Content.ClientID
	c.sendASP("client.register", "bad", map[string]any{"clientId": clientID, "resumeToken": "guess"})
	c.expectError("bad", fault.ClientNotFound)
	s.writeInbox(clientLog("default", passing), "still here")
	require.Equal(t, []string{"still here"}, c.expectMessages(2, 2))
	c.sendASP("client.register", "back", map[string]any{"clientId": clientID, "resumeToken": token, "lastSeq": 2, "clientName": "Ada"})
	var h aspFrame
	seen := uint64(2)
	for h.Type != "client.register.response" {
		b, err := c.text()
		require.NoError(t, err)
		h = aspFrame{}
		require.NoError(t, json.Unmarshal(b, &h))
		if h.Type == "client.message" {
			seen++
			require.Equal(t, seen, h.Seq)
		}
	}
	require.Equal(t, clientID, h.Content.ClientID)
	s.writeInbox(clientLog("default", passing), "lost on nobody")
	s.writeInbox(l, "three")
	c.expectMessages(seen+1, 4)
	p := s.onlyEntry(wirecmd.ParticipantClient, clientID)
	require.Equal(t, "Ada", p.Name)
	s.until(wirecmd.ParticipantClient, passing, "gone", count(0))
	require.Equal(t, clientID, s.tasks.last().ID, "who asks is who came back")
}

// A client is refused if its position is invalid, or while no task service opens its inbox.
func TestClientsThatCannotBeWelcomed(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.ReadyTimeout = 300 * time.Millisecond })
	s.path = pathClient
	for _, query := range []string{"after=1", "clientId=x&resumeToken=y&after=-1", "clientId=x&after=z"} {
		c := s.dial(query)
		require.Equal(t, string(fault.CursorInvalid), c.expectASP("error").Content.Code)
		c.closes(fault.Lookup(fault.CursorInvalid).Close)
	}
	require.NoError(t, s.tasks.lease.Leave(t.Context()))
	s.lists(wirecmd.Task.String(), 0)
	c := s.dial("")
	c.closes(1013)
}

// A message between clients that was stored for too long is not shown any more.
func TestLateMessagesAreNotShown(t *testing.T) {
	s := startSwarm(t)
	c, hello := s.join(pathClient, "")
	l := clientLog("default", hello.Content.ClientID)
	data, err := json.Marshal("late")
	require.NoError(t, err)
	require.NoError(t, s.append(l, "late", event.InboxMessagedData{MessageID: "late", Data: data, ExpiresAt: time.Now().Add(-time.Minute)}))
	s.writeInbox(l, "in time")
	require.Equal(t, []string{"in time"}, c.expectMessages(3, 3))
}
