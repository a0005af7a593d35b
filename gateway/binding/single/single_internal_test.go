package single

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// client is the part of a connection that the tests need.
type client struct {
	binding.Connection
	query string
	acts  bool
}

func (c client) Query() url.Values {
	q, _ := url.ParseQuery(c.query)
	return q
}

func (c client) Client() *edge.Client {
	var who edge.Client
	who.Identify(auth.Principal{Subject: "alice", Tenant: id.DefaultTenant}, c.acts)
	return &who
}

// TestANewSession: a connection without a session gets a new one, if it may act and names no position.
func TestANewSession(t *testing.T) {
	s := New(&binding.Gateway{Edge: &edge.Edge{}}, client{acts: true}, nil, nil)
	after, err := s.resolve()
	require.NoError(t, err)
	require.Zero(t, after.Seq)
	require.NotNil(t, s.unopened)
	require.Equal(t, []any{id.KindSession, id.DefaultTenant}, []any{s.Log.Kind, s.Log.Tenant})
	require.False(t, s.Log.Entity.IsZero())

	for code, c := range map[fault.Code]client{
		fault.CursorInvalid: {query: "after=3", acts: true}, fault.Forbidden: {}, fault.SessionNotFound: {query: "session=no+id", acts: true},
	} {
		_, err := New(&binding.Gateway{Edge: &edge.Edge{}}, c, nil, nil).resolve()
		require.ErrorIs(t, err, fault.New(code))
	}
}
