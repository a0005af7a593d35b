package bus_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
)

// authority issues certificates for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "test"},
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name.key; without an authority the certificate signs itself.
func (a *authority) issue(t *testing.T, name string, tmpl *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl.SerialNumber = big.NewInt(time.Now().UnixNano())
	tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	a.write(t, name+".pem", "CERTIFICATE", der)
	a.write(t, name+".key", "EC PRIVATE KEY", raw)
	return cert, key
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) {
	require.NoError(t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// secure starts a server that requires a client certificate and an nkey.
func secure(t *testing.T, a *authority, user string) string {
	a.issue(t, "server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	a.issue(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	pair, err := tls.LoadX509KeyPair(a.file("server.pem"), a.file("server.key"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, Nkeys: []*server.NkeyUser{{Nkey: user}},
		TLS: true, TLSVerify: true, TLSTimeout: 10, AuthTimeout: 20,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			MinVersion: tls.VersionTLS12,
		},
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { end(srv) })
	require.True(t, srv.ReadyForConnections(time.Minute))
	return srv.ClientURL()
}

func TestConnectWithTLSAndNKey(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.file("user.seed"), seed, 0o600))
	stranger, err := nkeys.CreateUser()
	require.NoError(t, err)
	strange, err := stranger.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.file("stranger.seed"), strange, 0o600))
	good := bus.Config{
		URL: secure(t, a, public), TLSCA: a.file("ca.pem"), TLSCert: a.file("client.pem"), TLSKey: a.file("client.key"),
		NKeySeedFile: a.file("user.seed"),
	}
	c, err := bus.Connect(maxWait(t), good)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.NATS().FlushWithContext(maxWait(t)))

	bad := good
	bad.NKeySeedFile = a.file("stranger.seed")
	_, err = bus.Connect(maxWait(t), bad)
	require.ErrorIs(t, err, nats.ErrAuthorization, "it does not try again for ever")
	bad = good
	bad.TLSCert, bad.TLSKey = "", ""
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = bus.Connect(short, bad)
	require.Error(t, err)
}
