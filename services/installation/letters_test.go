package installation_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/command"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestOperatorsReadDeadLetters: those of their tenant, page by page. No other role does, and no operator those of another tenant.
func TestOperatorsReadDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	empty := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters")
	require.Equal(t, wire.DeadLetterList{DeadLetters: []wire.DeadLetter{}}, empty)
	r.die(order("default", "a"), order("other", "b"), order("default", "c"), order("default", "d"))

	page := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters?limit=2")
	require.Len(t, page.DeadLetters, 2)
	require.True(t, page.More)
	require.Equal(t, 3, page.Total)
	first := page.DeadLetters[0]
	require.Equal(t, "worker do_job d the disk is full 1", fmt.Sprint(first.Service, " ", first.Verb, " ", first.CommandID, " ", first.Reason, " ", first.Deliveries))
	require.WithinDuration(t, time.Now(), first.Time, maxWait)
	rest := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters?limit=2&before="+page.Next)
	require.Len(t, rest.DeadLetters, 1)
	require.Equal(t, "a", rest.DeadLetters[0].CommandID)
	require.False(t, rest.More)

	theirs := get[wire.DeadLetterList](r, 200, "otto", "GET", "/dead-letters").DeadLetters
	require.Len(t, theirs, 1)
	path := fmt.Sprintf("/dead-letters/%d", first.Seq)
	one := get[wire.DeadLetterDetail](r, 200, "olga", "GET", path)
	require.Equal(t, first, one.DeadLetter)
	var c cmd.Command
	require.NoError(t, json.Unmarshal(one.Command, &c))
	require.JSONEq(t, `{"run_id":"d"}`, string(c.Data))

	foreign := get[wire.Problem](r, 404, "otto", "GET", path)
	require.Equal(t, get[wire.Problem](r, 404, "otto", "GET", "/dead-letters/999"), foreign)
	for method, path := range map[string]string{"POST": path + "/resend", "DELETE": path} {
		require.Equal(t, string(fault.NotFound), get[wire.Problem](r, 404, "otto", method, path).Title)
		for _, who := range []string{"alice", "vera"} {
			require.Equal(t, string(fault.Forbidden), get[wire.Problem](r, 403, who, method, path).Title)
		}
	}
	for _, who := range []string{"alice", "vera"} {
		get[wire.Problem](r, 403, who, "GET", "/dead-letters")
		get[wire.Problem](r, 403, who, "GET", path)
	}
	for _, bad := range []string{"/dead-letters?limit=0", "/dead-letters?limit=101", "/dead-letters?before=x"} {
		get[wire.Problem](r, 422, "olga", "GET", bad)
	}
	get[wire.Problem](r, 404, "olga", "GET", "/dead-letters/0")
	get[wire.Problem](r, 404, "olga", "GET", "/dead-letters/one")
	require.Equal(t, 3, get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").Total)
}

// TestADeadLetterIsSentAgainOnce, however many ask for it at the same time, and while the letter is still there.
func TestADeadLetterIsSentAgainOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.die(order("default", "a"))
	l := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters[0]

	// A service returns the command as often as it is asked to, before the letter is gone.
	in := cmd.LetterRequest{Tenant: order("default", "a").Tenant, Sequence: l.Seq}
	require.Equal(t, "a", resend(r, in).CommandID)
	require.Equal(t, "a", resend(r, in).CommandID)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			a := r.web.Ask("olga", "POST", fmt.Sprintf("/api/v1/dead-letters/%d/resend", l.Seq), "", nil)
			require.Contains(t, []int{202, 404}, a.Status, a.Body)
		})
	}
	all.Wait()
	require.NoError(t, r.Send.Send(r.Ctx, order("default", "after")))
	require.Equal(t, "a", next(r, r.handled).ID)
	require.Equal(t, "after", next(r, r.handled).ID)
	require.Empty(t, get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters)
	get[wire.Problem](r, 404, "olga", "POST", fmt.Sprintf("/dead-letters/%d/resend", l.Seq))
	require.Empty(t, r.handled)
}

// TestALetterThatDiesAgainIsAnother: its command is given up once more, and can be sent again at once.
func TestALetterThatDiesAgainIsAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.die(order("default", "a"))
	for range 3 {
		l := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters
		require.Len(t, l, 1)
		r.broken.Store(true)
		out := get[wire.Accepted](r, 202, "olga", "POST", fmt.Sprintf("/dead-letters/%d/resend", l[0].Seq))
		require.Equal(t, wire.Accepted{Accepted: true, CommandID: "a"}, out)
		require.Equal(t, "a", next(r, r.dead).ID)
	}
	r.broken.Store(false)
	l := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters
	get[wire.Accepted](r, 202, "olga", "POST", fmt.Sprintf("/dead-letters/%d/resend", l[0].Seq))
	require.Equal(t, "a", next(r, r.handled).ID)
}

// TestCommandsOfPeopleAreSignedAnew: an old signature counts for nothing, and one that no gateway has made gets no new one.
func TestCommandsOfPeopleAreSignedAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.clock.Move(-time.Hour)
	mine, forged := message("alice", "mine"), message("alice", "forged")
	require.NoError(t, r.signer.Sign(&mine))
	require.NoError(t, r.signer.Sign(&forged))
	forged.Data = json.RawMessage(`{"run_id":"another"}`)
	r.clock.Move(time.Hour)
	r.die(mine, forged)
	l := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters
	require.Equal(t, "forged alice mine alice", fmt.Sprint(l[0].CommandID, " ", l[0].Principal, " ", l[1].CommandID, " ", l[1].Principal))
	detail := get[wire.DeadLetterDetail](r, 200, "olga", "GET", fmt.Sprintf("/dead-letters/%d", l[1].Seq))
	require.NotContains(t, string(detail.Command), "signature")

	require.Equal(t, string(fault.Forbidden), get[wire.Problem](r, 403, "olga", "POST", fmt.Sprintf("/dead-letters/%d/resend", l[0].Seq)).Title)
	get[wire.Accepted](r, 202, "olga", "POST", fmt.Sprintf("/dead-letters/%d/resend", l[1].Seq))
	got := next(r, r.handled)
	require.Equal(t, "mine alice", got.ID+" "+got.Principal)
	require.Len(t, get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters, 1)
}

// TestDiscardedLettersAreGone, and those of other commands stay. A letter without a command can only be discarded.
func TestDiscardedLettersAreGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.die(order("default", "a"), order("default", "b"))
	raw, err := json.Marshal(command.DeadLetter{Command: json.RawMessage(`"no command"`), Reason: "decode command", Time: time.Now().UTC()})
	require.NoError(t, err)
	_, err = r.Conn.JS().PublishMsg(r.Ctx, &nats.Msg{Subject: order("default", "c").Address().Dead(), Data: raw})
	require.NoError(t, err)
	l := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters
	require.Len(t, l, 3)
	path := fmt.Sprintf("/dead-letters/%d", l[0].Seq)
	require.Empty(t, l[0].CommandID)
	require.JSONEq(t, `"no command"`, string(get[wire.DeadLetterDetail](r, 200, "olga", "GET", path).Command))
	require.Equal(t, "seq", get[wire.Problem](r, 422, "olga", "POST", path+"/resend").Field)
	get[struct{}](r, 204, "olga", "DELETE", path)
	get[wire.Problem](r, 404, "olga", "DELETE", path)
	get[struct{}](r, 204, "olga", "DELETE", fmt.Sprintf("/dead-letters/%d", l[1].Seq))
	left := get[wire.DeadLetterList](r, 200, "olga", "GET", "/dead-letters").DeadLetters
	require.Len(t, left, 1)
	require.Equal(t, "a", left[0].CommandID)
	s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamDead)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.CachedInfo().State.Msgs)
}
