package gateway_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// readLimit is that of the gateways under test.
const readLimit = 128 << 10

// protocolCase is what a peer sends and what has to come back. The categories are
// those of the Autobahn suite, which runs against echo servers; the echo here is
// that the gateway names an unknown message type.
type protocolCase struct {
	name  string
	send  []byte
	pongs []string // payloads of the pongs that have to come
	said  []string // error codes that have to come, or "echo <type>"
	code  int      // of the close frame; 0 = the socket stays open
}

// kind returns a message of a type that is unknown; it is answered with its name.
func kind(name string) string { return fmt.Sprintf(`{"type":%q}`, name) }

// padded returns a message of exactly n bytes of an unknown type.
func padded(n int) string {
	s := `{"type":"pad","x":"`
	return s + strings.Repeat("*", n-len(s)-2) + `"}`
}

func closeWith(code int, reason string) []byte {
	return frame(fin|opClose, append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...))
}

func join(frames ...[]byte) []byte { return slices.Concat(frames...) }

// fragments returns a message in pieces of n bytes.
func fragments(op byte, payload []byte, n int) []byte {
	var out []byte
	for first := true; first || len(payload) > 0; first = false {
		piece := payload[:min(n, len(payload))]
		payload = payload[len(piece):]
		b := byte(opContinuation)
		if first {
			b = op
		}
		if len(payload) == 0 {
			b |= fin
		}
		out = append(out, frame(b, piece)...)
	}
	return out
}

func protocolCases() []protocolCase {
	return slices.Concat(framing(), pings(), reservedBits(), opcodes(), fragmentation(), utf8Cases(), closing(), limits())
}

func framing() []protocolCase {
	var out []protocolCase
	for _, n := range []int{30, 124, 125, 126, 127, 128, 129, 1000, 4095, 4096, 4097, 65535, 65536, 65537} {
		out = append(out,
			protocolCase{name: fmt.Sprintf("1.1/text of %d bytes", n), send: text(padded(n)), said: []string{"echo pad"}})
	}
	for _, n := range []int{0, 1, 125, 126, 127, 128, 65535, 65536} {
		out = append(out, protocolCase{name: fmt.Sprintf("1.2/binary of %d bytes", n), send: frame(fin|opBinary, make([]byte, n)), code: 1003})
	}
	masked := func(mask [4]byte) []byte {
		p := []byte(kind("mask"))
		b := append([]byte{fin | opText, 0x80 | byte(len(p))}, mask[:]...)
		for i, x := range p {
			b = append(b, x^mask[i%4])
		}
		return b
	}
	return append(out,
		protocolCase{name: "1.1/empty text", send: text(""), said: []string{"BAD_JSON"}},
		protocolCase{name: "1.1/two in one write", send: join(text(kind("a")), text(kind("b"))), said: []string{"echo a", "echo b"}},
		protocolCase{name: "1.1/text then binary", send: join(text(kind("a")), frame(fin|opBinary, []byte("x"))), said: []string{"echo a"}, code: 1003},
		protocolCase{name: "1.3/mask of zeros", send: masked([4]byte{}), said: []string{"echo mask"}},
		protocolCase{name: "1.3/mask of ones", send: masked([4]byte{255, 255, 255, 255}), said: []string{"echo mask"}},
		protocolCase{name: "1.3/text without mask", send: append([]byte{fin | opText, 2}, "{}"...), code: 1002},
		protocolCase{name: "1.3/ping without mask", send: []byte{fin | opPing, 0}, code: 1002},
		protocolCase{name: "1.3/close without mask", send: []byte{fin | opClose, 2, 3, 232}, code: 1002},
		protocolCase{name: "1.3/binary without mask", send: []byte{fin | opBinary, 0}, code: 1002},
	)
}

func pings() []protocolCase {
	ping := func(s string) []byte { return frame(fin|opPing, []byte(s)) }
	full := strings.Repeat("\xfe", 125)
	many, answers := []byte(nil), []string(nil)
	for i := range 10 {
		many = append(many, ping(fmt.Sprint(i))...)
		answers = append(answers, fmt.Sprint(i))
	}
	pong := func(s string) []byte { return frame(fin|opPong, []byte(s)) }
	return []protocolCase{
		{name: "2.1/empty ping", send: ping(""), pongs: []string{""}},
		{name: "2.2/ping with text", send: ping("Hello, world!"), pongs: []string{"Hello, world!"}},
		{name: "2.3/ping with bytes", send: ping("\x00\xff\xfe\xfd"), pongs: []string{"\x00\xff\xfe\xfd"}},
		{name: "2.4/ping of 125 bytes", send: ping(full), pongs: []string{full}},
		{name: "2.5/ping of 126 bytes", send: ping(full + "x"), code: 1002},
		{name: "2.5/ping of 65536 bytes", send: frame(fin|opPing, make([]byte, 65536)), code: 1002},
		{name: "2.6/ping announced with a long length", send: []byte{fin | opPing, 0x80 | 126, 0, 200, 0, 0, 0, 0}, code: 1002},
		{name: "2.7/pong unasked", send: pong("")},
		{name: "2.8/pong with text unasked", send: pong("unsolicited")},
		{name: "2.9/pong unasked, then ping", send: join(pong("unsolicited"), ping("x")), pongs: []string{"x"}},
		{name: "2.9/pong of 126 bytes", send: pong(full + "x"), code: 1002},
		{name: "2.10/ten pings", send: many, pongs: answers},
		{name: "2.11/ping, text, ping", send: join(ping("a"), text(kind("t")), ping("b")), pongs: []string{"a", "b"}, said: []string{"echo t"}},
	}
}

func reservedBits() []protocolCase {
	var out []protocolCase
	for rsv := byte(1); rsv <= 7; rsv++ {
		for name, op := range map[string]byte{"text": opText, "binary": opBinary, "ping": opPing, "pong": opPong, "close": opClose} {
			out = append(out, protocolCase{name: fmt.Sprintf("3/rsv %d on %s", rsv, name), send: frame(fin|rsv<<4|op, []byte{3, 232}), code: 1002})
		}
		out = append(out,
			protocolCase{
				name: fmt.Sprintf("3/rsv %d on the second message", rsv),
				send: join(text(kind("ok")), frame(fin|rsv<<4|opText, []byte(kind("bad"))), text(kind("late"))), said: []string{"echo ok"}, code: 1002,
			},
			protocolCase{
				name: fmt.Sprintf("3/rsv %d on a continuation", rsv),
				send: join(frame(opText, []byte(`{"type"`)), frame(fin|rsv<<4|opContinuation, []byte(`:"x"}`))), code: 1002,
			})
	}
	return out
}

func opcodes() []protocolCase {
	var out []protocolCase
	for _, op := range []byte{3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF} {
		out = append(out,
			protocolCase{name: fmt.Sprintf("4/opcode %x, empty", op), send: frame(fin|op, nil), code: 1002},
			protocolCase{name: fmt.Sprintf("4/opcode %x with data", op), send: frame(fin|op, []byte("reserved")), code: 1002},
			protocolCase{
				name: fmt.Sprintf("4/opcode %x between messages", op),
				send: join(text(kind("ok")), frame(fin|op, nil), text(kind("late"))), said: []string{"echo ok"}, code: 1002,
			},
			protocolCase{
				name: fmt.Sprintf("4/opcode %x within a message", op),
				send: join(frame(opText, []byte(`{"type"`)), frame(fin|op, nil)), code: 1002,
			})
	}
	return out
}

func fragmentation() []protocolCase {
	head, tail := frame(opText, []byte(`{"type":`)), frame(fin|opContinuation, []byte(`"whole"}`))
	whole := []string{"echo whole"}
	ping := frame(fin|opPing, []byte("p"))
	empty := frame(opContinuation, nil)
	return []protocolCase{
		{name: "5.1/ping in two", send: join(frame(opPing, []byte("a")), frame(fin|opContinuation, []byte("b"))), code: 1002},
		{name: "5.2/pong in two", send: join(frame(opPong, []byte("a")), frame(fin|opContinuation, []byte("b"))), code: 1002},
		{name: "5.2/close in two", send: join(frame(opClose, []byte{3}), frame(fin|opContinuation, []byte{232})), code: 1002},
		{name: "5.3/text in two", send: join(head, tail), said: whole},
		{name: "5.4/text byte by byte", send: fragments(opText, []byte(kind("whole")), 1), said: whole},
		{name: "5.5/text in a thousand", send: fragments(opText, []byte(padded(1000)), 1), said: []string{"echo pad"}},
		{name: "5.5/text in thousands", send: fragments(opText, []byte(padded(5000)), 1), code: 1009},
		{name: "5.5/empty fragments without end", send: join(frame(opText, nil), bytes.Repeat(empty, 5000)), code: 1009},
		{name: "5.6/ping between", send: join(head, ping, tail), said: whole, pongs: []string{"p"}},
		{name: "5.7/pong between", send: join(head, frame(fin|opPong, []byte("p")), tail), said: whole},
		{name: "5.8/three pings between", send: join(head, ping, empty, ping, empty, ping, tail), said: whole, pongs: []string{"p", "p", "p"}},
		{name: "5.9/continuation without start, final", send: frame(fin|opContinuation, []byte("x")), code: 1002},
		{name: "5.10/continuation without start", send: frame(opContinuation, []byte("x")), code: 1002},
		{name: "5.11/empty continuation without start", send: frame(fin|opContinuation, nil), code: 1002},
		{name: "5.12/continuation after a message", send: join(head, tail, tail), said: whole, code: 1002},
		{name: "5.13/text within text", send: join(head, text(kind("inner")), tail), code: 1002},
		{name: "5.14/binary within text", send: join(head, frame(fin|opBinary, []byte("x"))), code: 1002},
		{name: "5.15/unfinished text within text", send: join(head, head), code: 1002},
		{name: "5.16/empty fragments", send: join(frame(opText, nil), empty, empty, frame(fin|opContinuation, nil)), said: []string{"BAD_JSON"}},
		{name: "5.17/empty fragments around", send: join(frame(opText, nil), empty, frame(opContinuation, []byte(kind("whole"))), empty, frame(fin|opContinuation, nil)), said: whole},
		{name: "5.18/close within text", send: join(head, closeWith(1000, "")), code: 1000},
		{name: "5.19/binary in two", send: join(frame(opBinary, []byte("a")), frame(fin|opContinuation, []byte("b"))), code: 1003},
		{name: "5.20/two messages in pieces", send: join(head, tail, head, tail), said: []string{"echo whole", "echo whole"}},
	}
}

func utf8Cases() []protocolCase {
	var out []protocolCase
	inside := func(s string) string { return `{"type":"u","x":"` + s + `"}` }
	for _, good := range []string{
		"\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffd", "\ufffe", "\uffff",
		"\U00010000", "\U0010ffff", "\U0001ffff", "κόσμε", "日本語", "😀", "e\u0301", "\u202e", "\ufdd0",
	} {
		for _, n := range []int{1, 1 << 20} {
			out = append(out, protocolCase{
				name: fmt.Sprintf("6.2/valid %x in pieces of %d", good, n), send: fragments(opText, []byte(inside(good)), n), said: []string{"echo u"},
			})
		}
	}
	for _, bad := range []string{
		"\x80", "\xbf", "\x80\xbf\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf",
		"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff", "\xfe\xfe\xff\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc3\x28", "κ\xce",
	} {
		out = append(out,
			protocolCase{name: fmt.Sprintf("6.3/invalid %x", bad), send: text(inside(bad)), code: 1007},
			protocolCase{name: fmt.Sprintf("6.4/invalid %x byte by byte", bad), send: fragments(opText, []byte(inside(bad)), 1), code: 1007},
			protocolCase{name: fmt.Sprintf("6.5/invalid %x after a message", bad), send: join(text(kind("ok")), text(bad)), said: []string{"echo ok"}, code: 1007})
	}
	return out
}

func closing() []protocolCase {
	var out []protocolCase
	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		out = append(out, protocolCase{name: fmt.Sprintf("7.7/close with %d", code), send: closeWith(code, ""), code: code})
	}
	for _, code := range []int{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		out = append(out, protocolCase{name: fmt.Sprintf("7.9/close with %d", code), send: closeWith(code, ""), code: 1002})
	}
	return append(out,
		protocolCase{name: "7.1/message, then close", send: join(text(kind("ok")), closeWith(1000, "")), code: 1000},
		protocolCase{name: "7.1/two closes", send: join(closeWith(1000, ""), closeWith(1001, "")), code: 1000},
		protocolCase{name: "7.1/ping after close", send: join(closeWith(1000, ""), frame(fin|opPing, nil)), code: 1000},
		protocolCase{name: "7.1/text after close", send: join(closeWith(1000, ""), text(kind("late"))), code: 1000},
		protocolCase{name: "7.1/half a message, then close", send: join(frame(opText, []byte("{")), closeWith(1000, "")), code: 1000},
		protocolCase{name: "7.3/close without payload", send: frame(fin|opClose, nil), code: 1005},
		protocolCase{name: "7.3/close of one byte", send: frame(fin|opClose, []byte{3}), code: 1002},
		protocolCase{name: "7.3/close with a reason", send: closeWith(1000, "bye"), code: 1000},
		protocolCase{name: "7.3/close with the longest reason", send: closeWith(1000, strings.Repeat("*", 123)), code: 1000},
		protocolCase{name: "7.3/close with a reason too long", send: closeWith(1000, strings.Repeat("*", 124)), code: 1002},
		protocolCase{name: "7.5/close with a reason that is no text", send: closeWith(1000, "\xff\xfe"), code: 1007},
	)
}

func limits() []protocolCase {
	announced := func(n uint64) []byte {
		b := binary.BigEndian.AppendUint64([]byte{fin | opText, 0x80 | 127}, n)
		return append(b, 1, 2, 3, 4)
	}
	return []protocolCase{
		{name: "9.1/as large as allowed", send: text(padded(readLimit)), said: []string{"echo pad"}},
		{name: "9.1/one less", send: text(padded(readLimit - 1)), said: []string{"echo pad"}},
		{name: "9.1/one more", send: text(padded(readLimit + 1)), code: 1009},
		{name: "9.1/much more", send: text(padded(1 << 20)), code: 1009},
		{name: "9.3/as large as allowed, in pieces", send: fragments(opText, []byte(padded(readLimit)), 1000), said: []string{"echo pad"}},
		{name: "9.3/one more, in pieces", send: fragments(opText, []byte(padded(readLimit+1)), 1000), code: 1009},
		{name: "9.3/much more, in pieces", send: fragments(opText, []byte(padded(1<<20)), 4096), code: 1009},
		{name: "9.5/length with the highest bit", send: announced(1 << 63), code: 1002},
		{name: "9.5/the largest length", send: append(announced(1<<63-1), make([]byte, readLimit+1)...), code: 1009},
		{name: "9.5/4 GiB announced", send: append(announced(1<<32), make([]byte, readLimit+1)...), code: 1009},
	}
}

func TestProtocol(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.ReadLimit, c.MessageRate, c.MessageBurst = readLimit, 1e6, 1e6
	})
	query := "session=" + r.session("default").Entity.String()
	check := r.bystander()
	settled := r.settled()
	cases := protocolCases()
	require.Greater(t, len(cases), 200)
	for i, p := range cases {
		for _, how := range []string{"whole", "chopped"} {
			c := r.dial(query)
			c.ready()
			if how == "chopped" {
				c.chop = rand.New(rand.NewPCG(uint64(i), 7))
			}
			if err := play(c, p, i); err != nil {
				t.Errorf("%s (%s): %v", p.name, how, err)
			}
			_ = c.Conn.Close()
		}
		if i%50 == 0 {
			check()
		}
	}
	check()
	settled()
	t.Logf("%d cases, each whole and chopped", len(cases))
}

// play sends what the case says and compares all that comes back.
func play(c *client, p protocolCase, n int) error {
	probe := fmt.Sprintf("probe-%d", n)
	go func() { // the gateway need not have read it all before it answers
		if c.try(p.send) == nil && p.code == 0 {
			_ = c.try(text(kind(probe)))
		}
	}()
	if err := c.SetReadDeadline(time.Now().Add(maxWait)); err != nil {
		return err
	}
	var pongs, said []string
	for {
		op, payload, err := c.read()
		var closed closedError
		switch {
		case errors.As(err, &closed):
			if closed.code != p.code {
				return fmt.Errorf("%w, expected %d", closed, p.code)
			}
			return same(p, pongs, said)
		case err != nil:
			return err
		case op == opPong:
			pongs = append(pongs, string(payload))
		case op == opText:
			s := answer(payload)
			if s == "echo "+probe {
				if p.code != 0 {
					return fmt.Errorf("the socket stays open, expected close code %d", p.code)
				}
				return same(p, pongs, said)
			}
			said = append(said, s)
		}
	}
}

// answer returns the code of an error frame, or the message type that it names.
func answer(payload []byte) string {
	const before, after = `The message type \"`, `\" is unknown`
	if i := bytes.Index(payload, []byte(before)); i >= 0 {
		rest := payload[i+len(before):]
		if j := bytes.Index(rest, []byte(after)); j >= 0 {
			return "echo " + string(rest[:j])
		}
	}
	const code = `"code":"`
	if i := bytes.Index(payload, []byte(code)); i >= 0 {
		rest := payload[i+len(code):]
		return string(rest[:bytes.IndexByte(rest, '"')])
	}
	return string(payload)
}

// same compares what came back. A peer that closes at once may be spared what was
// still to be said.
func same(p protocolCase, pongs, said []string) error {
	if !slices.Equal(pongs, p.pongs) {
		return fmt.Errorf("pongs %q, expected %q", pongs, p.pongs)
	}
	if !slices.Equal(said, p.said) && !strings.HasPrefix(p.name, "7.1/message") {
		return fmt.Errorf("answers %q, expected %q", said, p.said)
	}
	return nil
}
