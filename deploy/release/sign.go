package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keyCmd prints a new signing key: an Ed25519 key in PEM, as "openssl genpkey -algorithm ed25519" makes it.
func keyCmd(_ context.Context, c *command, args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return pem.Encode(c.out, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// key parses the arguments of a subcommand that signs, or that names the key, and reads the key.
func (c *command) key(args []string) (ed25519.PrivateKey, error) {
	from := c.String("key", "", "file of the signing key")
	if err := c.Parse(args); err != nil {
		return nil, err
	}
	return readKey(*from)
}

// readKey returns the key of a file.
func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("the signing key is not an Ed25519 key")
	}
	return own, nil
}

func public(key ed25519.PrivateKey) []byte { return key[ed25519.SeedSize:] }

// signCmd signs a file in two formats with one key: for minisign and openssl, and for ssh-keygen, which macOS and most
// distributions have.
func signCmd(_ context.Context, c *command, args []string) error {
	key, err := c.key(args)
	if err != nil {
		return err
	}
	at, err := c.time()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(c.Arg(0))
	if err != nil {
		return err
	}
	comment := fmt.Sprintf("timestamp:%d file:%s", at.Unix(), filepath.Base(c.Arg(0)))
	if err := publish(c.Arg(0)+".minisig", minisign(key, content, comment)); err != nil {
		return err
	}
	return publish(c.Arg(0)+".sig", sshsig(key, content))
}

// minisigned is the identifier of signatures and keys of minisign (https://jedisct1.github.io/minisign), with the number of
// the key.
func minisigned(key ed25519.PrivateKey) []byte {
	id := sha256.Sum256(public(key))
	return append([]byte("Ed"), id[:8]...)
}

// minisignKey returns the public key as minisign writes it.
func minisignKey(key ed25519.PrivateKey) string {
	return base64.StdEncoding.EncodeToString(append(minisigned(key), public(key)...))
}

// publicCmd prints the public key.
func publicCmd(_ context.Context, c *command, args []string) error {
	key, err := c.key(args)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "untrusted comment: key of Waggle's releases\n%s\n", minisignKey(key))
	return err
}

// minisign returns a signature over the content itself: its third line is the signature that openssl verifies.
func minisign(key ed25519.PrivateKey, content []byte, comment string) []byte {
	signature := ed25519.Sign(key, content)
	global := ed25519.Sign(key, append(signature, comment...))
	return fmt.Appendf(nil, "untrusted comment: signature of Waggle's release\n%s\ntrusted comment: %s\n%s\n",
		base64.StdEncoding.EncodeToString(append(minisigned(key), signature...)), comment, base64.StdEncoding.EncodeToString(global))
}

// namespace separates signatures of files from those of other uses of an SSH key.
const namespace = "file"

// sshKey returns the public key as SSH encodes it.
func sshKey(key ed25519.PrivateKey) []byte {
	return append(framed([]byte("ssh-ed25519")), framed(public(key))...)
}

// sshsig returns a signature of the format SSHSIG (PROTOCOL.sshsig of OpenSSH).
func sshsig(key ed25519.PrivateKey, content []byte) []byte {
	hash := sha512.Sum512(content)
	tail := append(framed(nil), framed([]byte("sha512"))...) // reserved; the hash
	signed := append([]byte("SSHSIG"), framed([]byte(namespace))...)
	signed = append(append(signed, tail...), framed(hash[:])...)
	signature := append(framed([]byte("ssh-ed25519")), framed(ed25519.Sign(key, signed))...)

	blob := binary.BigEndian.AppendUint32([]byte("SSHSIG"), 1)
	blob = append(append(blob, framed(sshKey(key))...), framed([]byte(namespace))...)
	blob = append(append(blob, tail...), framed(signature)...)
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob})
}

// framed returns bytes after their length, as SSH does.
func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) //nolint:gosec // a few bytes
}

// installCmd prints install.sh with the version and the public key.
func installCmd(_ context.Context, c *command, args []string) error {
	key, err := c.key(args)
	if err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	script, err := c.read("deploy", "release", "install.sh")
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	_, err = strings.NewReplacer(
		"@VERSION@", version,
		"@SSH_KEY@", base64.StdEncoding.EncodeToString(sshKey(key)),
		"@PEM_KEY@", base64.StdEncoding.EncodeToString(der),
		"@MINISIGN_KEY@", minisignKey(key),
	).WriteString(c.out, string(script))
	return err
}
