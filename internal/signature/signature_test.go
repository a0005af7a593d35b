package signature_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)

func seed(t testing.TB) []byte {
	t.Helper()
	pair, err := nkeys.CreatePair(signature.Prefix)
	require.NoError(t, err)
	s, err := pair.Seed()
	require.NoError(t, err)
	return s
}

// keys returns a signer and a verifier that accepts its key.
func keys(t testing.TB) (*signature.Signer, *signature.Verifier) {
	t.Helper()
	s, err := signature.NewSigner(seed(t), func() time.Time { return now })
	require.NoError(t, err)
	public, err := s.Public()
	require.NoError(t, err)
	v, err := signature.NewVerifier(public)
	require.NoError(t, err)
	return s, v
}

func message() command.Command {
	return command.Command{
		ID: "m1", Request: "r1", Service: command.Pipeline, Verb: command.SendMessage, Tenant: id.DefaultTenant,
		Key: id.EntityFromExternal("s1"), Principal: "alice", Member: "lead", Data: json.RawMessage(`{"content":"a < b & c"}`),
	}
}

// signed returns the command as a service receives it.
func signed(t testing.TB, s *signature.Signer, c command.Command) command.Command {
	t.Helper()
	require.NoError(t, s.Sign(&c))
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	var got command.Command
	require.NoError(t, json.Unmarshal(raw, &got))
	return got
}

func TestASignedCommandIsAccepted(t *testing.T) {
	s, v := keys(t)
	c := signed(t, s, message())
	require.True(t, v.Signed(c))
	own, err := v.Check(c, now.Add(time.Second), now.Add(2*time.Second))
	require.NoError(t, err)
	require.False(t, own)
	require.True(t, v.Proves(c.Tenant, c.Proof()))
	require.True(t, v.Proves(c.Tenant, c.Proof().Short()))
	var none *signature.Verifier
	require.False(t, none.Signed(c), "a service without keys accepts nothing")
	require.False(t, (&signature.Verifier{}).Signed(c))
}

// TestAnyChangeBreaksTheSignature: each covered field counts, in the command and in its proof.
func TestAnyChangeBreaksTheSignature(t *testing.T) {
	s, v := keys(t)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	text := rapid.StringMatching(`[a-z0-9]{1,8}`)
	changes := map[string]func(*rapid.T, *command.Command){
		"id":        func(r *rapid.T, c *command.Command) { c.ID += text.Draw(r, "text") },
		"request":   func(r *rapid.T, c *command.Command) { c.Request += text.Draw(r, "text") },
		"service":   func(_ *rapid.T, c *command.Command) { c.Service = command.Team },
		"verb":      func(_ *rapid.T, c *command.Command) { c.Verb = command.Answer },
		"tenant":    func(_ *rapid.T, c *command.Command) { c.Tenant = other },
		"key":       func(r *rapid.T, c *command.Command) { c.Key = id.EntityFromExternal("s" + text.Draw(r, "text") + "x") },
		"principal": func(r *rapid.T, c *command.Command) { c.Principal += text.Draw(r, "text") },
		"operator":  func(_ *rapid.T, c *command.Command) { c.Operator = !c.Operator },
		"member":    func(r *rapid.T, c *command.Command) { c.Member += text.Draw(r, "text") },
		"time": func(r *rapid.T, c *command.Command) {
			c.Time = c.Time.Add(time.Duration(rapid.IntRange(1, 1e9).Draw(r, "ns")))
		},
		"data": func(r *rapid.T, c *command.Command) {
			c.Data = json.RawMessage(`{"content":"` + text.Draw(r, "text") + `!"}`)
		},
		"no data": func(_ *rapid.T, c *command.Command) { c.Data = nil },
		// The boundary between two neighbours moves.
		"member, principal": func(_ *rapid.T, c *command.Command) {
			c.Member, c.Principal = c.Member+c.Principal[:1], c.Principal[1:]
		},
		"id, request": func(_ *rapid.T, c *command.Command) { c.ID, c.Request = c.ID+c.Request, "" },
		"signature": func(r *rapid.T, c *command.Command) {
			b := []byte(c.Signature)
			i := rapid.IntRange(0, len(b)-2).Draw(r, "byte")
			b[i] = map[bool]byte{true: 'A', false: 'B'}[b[i] != 'A']
			c.Signature = string(b)
		},
		"no signature": func(_ *rapid.T, c *command.Command) { c.Signature = "" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				c := signed(t, s, message())
				change(r, &c)
				if v.Signed(c) {
					r.Fatalf("the command %+v passes", c)
				}
				_, err := v.Check(c, now, now)
				require.ErrorIs(r, err, fault.New(fault.Forbidden))
				if p := c.Proof(); p != nil && (v.Proves(c.Tenant, p) || v.Proves(c.Tenant, p.Short())) {
					r.Fatalf("the proof %+v passes", p)
				}
			})
		})
	}
}

func TestAnOldSignatureIsWorthless(t *testing.T) {
	s, v := keys(t)
	c := signed(t, s, message())
	for _, at := range []time.Time{now.Add(6 * time.Minute), now.Add(-6 * time.Minute), {}} {
		_, err := v.Check(c, at, at)
		require.ErrorIs(t, err, fault.New(fault.Forbidden))
		_, err = v.Check(c, now, at)
		require.NoError(t, err, "the command had to wait")
		_, err = v.Check(c, at, now)
		require.NoError(t, err, "the clock of a server is wrong")
	}
}

// TestKeysAreRotated: both keys count between the steps, and the first no longer after them.
func TestKeysAreRotated(t *testing.T) {
	s, v := keys(t)
	before := signed(t, s, message())
	first, err := s.Public()
	require.NoError(t, err)
	next := seed(t)
	second, err := signature.NewSigner(next, nil)
	require.NoError(t, err)
	both, err := second.Public()
	require.NoError(t, err)
	require.NoError(t, v.Replace(first, both))
	require.True(t, v.Signed(before))
	require.NoError(t, s.Replace(next))
	require.True(t, v.Signed(signed(t, s, message())))
	require.NoError(t, v.Replace(both))
	require.False(t, v.Signed(before))
	require.True(t, v.Signed(signed(t, s, message())))
	require.Error(t, v.Replace("x"))
	require.True(t, v.Signed(signed(t, s, message())), "the keys before an unusable one stay")
}

// TestAKeyForTheBusSignsNothing: neither a seed nor a public key of a NATS user passes for a signing key.
func TestAKeyForTheBusSignsNothing(t *testing.T) {
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	s, err := user.Seed()
	require.NoError(t, err)
	_, err = signature.NewSigner(s, nil)
	require.Error(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	_, err = signature.NewVerifier(public)
	require.Error(t, err)
}

const digest = "d1"

func approval(t testing.TB, s *signature.Signer, change func(*command.Command, *command.AnswerQuestion)) *event.Proof {
	t.Helper()
	c := message()
	c.Verb, c.Member = command.Answer, ""
	d := command.AnswerQuestion{CallID: "call_1", Digest: digest, Approved: true}
	if change != nil {
		change(&c, &d)
	}
	data, err := json.Marshal(d)
	require.NoError(t, err)
	c.Data = data
	return signed(t, s, c).Proof()
}

func TestAnApprovalIsForOneCall(t *testing.T) {
	s, v := keys(t)
	session := id.EntityFromExternal("s1")
	check := func(p *event.Proof) error {
		return signature.Approval(v, p, id.DefaultTenant, id.KindSession, session, "call_1", digest)
	}
	good := approval(t, s, nil)
	require.NoError(t, check(good))
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	require.Error(t, signature.Approval(v, good, other, id.KindSession, session, "call_1", digest))
	require.Error(t, signature.Approval(v, good, id.DefaultTenant, id.KindSession, id.EntityFromExternal("s2"), "call_1", digest))
	require.Error(t, signature.Approval(v, good, id.DefaultTenant, id.KindMember, session, "call_1", digest))
	require.Error(t, signature.Approval(v, good, id.DefaultTenant, id.KindSession, session, "call_2", digest))
	require.Error(t, signature.Approval(v, good, id.DefaultTenant, id.KindSession, session, "call_1", "d2"))
	require.Error(t, signature.Approval(nil, good, id.DefaultTenant, id.KindSession, session, "call_1", digest))
	require.Error(t, check(nil))
	require.Error(t, check(&event.Proof{}))
	require.Error(t, check(good.Short()), "a proof without the decision")
	require.Error(t, check(approval(t, s, func(_ *command.Command, d *command.AnswerQuestion) { d.Approved = false })))
	require.Error(t, check(approval(t, s, func(_ *command.Command, d *command.AnswerQuestion) { d.Digest = "" })))
	require.Error(t, check(approval(t, s, func(_ *command.Command, d *command.AnswerQuestion) { d.CallID = "" })))
	require.Error(t, check(approval(t, s, func(c *command.Command, _ *command.AnswerQuestion) { c.Verb = command.SendMessage })))
}

// TestAProofSurvivesItsEvent, byte for byte, whatever people write.
func TestAProofSurvivesItsEvent(t *testing.T) {
	s, v := keys(t)
	session := id.EntityFromExternal("s1")
	p := approval(t, s, func(_ *command.Command, d *command.AnswerQuestion) {
		d.Feedback = "a < b && c > d \u2028 é \x00 \xff \"q\" \\ 😀"
	})
	e, err := event.New(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: session}, "e1", "test", now, event.InputAnsweredData{Proof: p})
	require.NoError(t, err)
	for range 2 { // stored, and stored again as part of another event
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		e = event.Event{}
		require.NoError(t, json.Unmarshal(raw, &e))
	}
	d, err := event.As[event.InputAnsweredData](e)
	require.NoError(t, err)
	require.NoError(t, signature.Approval(v, d.Proof, id.DefaultTenant, id.KindSession, session, "call_1", digest))
}

// FuzzApproval: a proof that no gateway has signed approves nothing, whatever it holds.
func FuzzApproval(f *testing.F) {
	s, v := keys(f)
	other, _ := keys(f)
	session := id.EntityFromExternal("s1")
	for _, signer := range []*signature.Signer{s, other} {
		raw, err := json.Marshal(approval(f, signer, nil))
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte(`{"data":{"approved":true,"call_id":"call_1","digest":"d1"},"sha256":"00"}`))
	genuine := approval(f, s, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p event.Proof
		if json.Unmarshal(raw, &p) != nil {
			return
		}
		err := signature.Approval(v, &p, id.DefaultTenant, id.KindSession, session, "call_1", digest)
		if err == nil && (p.CommandID != genuine.CommandID || p.Principal != genuine.Principal || string(p.Data) != string(genuine.Data)) {
			t.Fatalf("%s approves", raw)
		}
	})
}

func TestAnApprovalReachesMembersThroughTheirTeam(t *testing.T) {
	s, v := keys(t)
	team := id.EntityFromExternal("t1")
	nested, err := id.MemberTeam(team, "lib")
	require.NoError(t, err)
	member, err := id.MemberAgent(nested, "Reader")
	require.NoError(t, err)
	p := approval(t, s, func(c *command.Command, _ *command.AnswerQuestion) { c.Service, c.Key = command.Team, team })
	require.NoError(t, signature.Approval(v, p, id.DefaultTenant, id.KindMember, member, "call_1", digest))
	stranger, err := id.MemberAgent(id.EntityFromExternal("t2"), "Reader")
	require.NoError(t, err)
	require.Error(t, signature.Approval(v, p, id.DefaultTenant, id.KindMember, stranger, "call_1", digest))
	require.Error(t, signature.Approval(v, p, id.DefaultTenant, id.KindMember, team, "call_1", digest))
}

func TestAnImportIsSigned(t *testing.T) {
	s, v := keys(t)
	in := command.ImportRequest{Tenant: id.DefaultTenant, Principal: "alice", Signed: json.RawMessage(`{ "x": "<" }`)}
	require.Error(t, v.Import(in, now))
	require.NoError(t, s.Import(&in))
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &in))
	require.NoError(t, v.Import(in, now))
	in.Principal = "bob"
	require.Error(t, v.Import(in, now))
}

func BenchmarkSign(b *testing.B) {
	s, _ := keys(b)
	c := message()
	for b.Loop() {
		require.NoError(b, s.Sign(&c))
	}
}

func BenchmarkVerify(b *testing.B) {
	s, v := keys(b)
	c := signed(b, s, message())
	for b.Loop() {
		if !v.Signed(c) {
			b.Fatal("refused")
		}
	}
}

// TestARequestToRunATool: the proof holds for one call of one tenant, and for a short time.
func TestARequestToRunATool(t *testing.T) {
	s, v := keys(t)
	in := command.ToolRequest{CallID: "c1", Kind: "mcp", Server: "bank", Tool: "pay", Arguments: json.RawMessage(`{"amount":5}`)}
	digest := signature.DirectDigest(in.Kind, in.Server, in.Tool, in.Arguments)
	p, err := s.Call(id.DefaultTenant, "alice", in)
	require.NoError(t, err)
	require.NoError(t, signature.Called(v, p, id.DefaultTenant, "c1", digest, now.Add(signature.MaxCallAge)))
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	_, stranger := keys(t)
	for name, err := range map[string]error{
		"late":           signature.Called(v, p, id.DefaultTenant, "c1", digest, now.Add(signature.MaxCallAge+time.Second)),
		"early":          signature.Called(v, p, id.DefaultTenant, "c1", digest, now.Add(-signature.MaxCallAge-time.Second)),
		"another tenant": signature.Called(v, p, other, "c1", digest, now),
		"another call":   signature.Called(v, p, id.DefaultTenant, "c2", digest, now),
		"another server": signature.Called(v, p, id.DefaultTenant, "c1", signature.DirectDigest("mcp", "bank2", "pay", in.Arguments), now),
		"nothing":        signature.Called(v, nil, id.DefaultTenant, "c1", digest, now),
		"another key":    signature.Called(stranger, p, id.DefaultTenant, "c1", digest, now),
		"no key":         signature.Called(nil, p, id.DefaultTenant, "c1", digest, now),
		"as an approval": signature.Approval(v, p, id.DefaultTenant, id.KindSession, id.EntityFromExternal("c1"), "c1", digest),
	} {
		require.Error(t, err, name)
	}
	stored := in
	stored.Arguments, stored.ArgumentsRef = nil, &event.ObjectRef{}
	p, err = s.Call(id.DefaultTenant, "alice", stored)
	require.NoError(t, err)
	require.Nil(t, p)
}
