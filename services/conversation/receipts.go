package conversation

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxRefusals bounds the refusals whose reasons a state remembers, for senders that repeat a message.
const maxRefusals = 64

// receipts remember which messages the log has had, and which effects of commands.
type receipts struct {
	marks
	refusals []event.MessageRefusedData // the newest ones
}

// messageMark is the mark of a message that was received.
func messageMark(messageID string) string { return "message " + messageID }

// refusalMark is the mark of a message that was refused.
func refusalMark(messageID string) string { return "refusal " + messageID }

// heard reports whether the message was received or refused.
func (r *receipts) heard(messageID string) bool {
	return r.has(messageMark(messageID)) || r.wasRefused(messageID)
}

func (r *receipts) wasRefused(messageID string) bool { return r.has(refusalMark(messageID)) }

func (r *receipts) refuse(d event.MessageRefusedData) {
	r.add(refusalMark(d.MessageID))
	if r.refusals = append(r.refusals, d); len(r.refusals) > maxRefusals {
		r.refusals = slices.Delete(r.refusals, 0, 1)
	}
}

// refusal returns why a message was refused, nil if that is forgotten.
func (r *receipts) refusal(messageID string) *event.MessageRefusedData {
	i := slices.IndexFunc(r.refusals, func(d event.MessageRefusedData) bool { return d.MessageID == messageID })
	if i < 0 {
		return nil
	}
	return &r.refusals[i]
}

// maxMarks bounds the ids that a log remembers: those of the last 16,384 messages and effects of commands. A person who
// sends a message each minute needs eleven days for that many.
const maxMarks = 1 << 14

// marks is a set of the ids that occurred in a log, which forgets the oldest ones. It keeps 64 bits of the hash of each: one of
// 10^15 new ids is taken for a known one. The zero value is empty. It is not safe for concurrent use.
type marks struct {
	list []uint64 // oldest first
	set  map[uint64]bool
}

func markOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

// has reports whether the id was added, and is not forgotten.
func (m *marks) has(id string) bool { return m.set[markOf(id)] }

// add adds an id, and forgets the oldest one beyond maxMarks.
func (m *marks) add(id string) { m.put(markOf(id)) }

func (m *marks) put(mark uint64) {
	if m.set[mark] {
		return
	}
	if m.set == nil {
		m.set = map[uint64]bool{}
	}
	m.set[mark] = true
	m.list = append(m.list, mark)
	if len(m.list) > maxMarks {
		delete(m.set, m.list[0])
		m.list = m.list[1:]
	}
}

// encode returns the set as bytes, eight for each id.
func (m *marks) encode() []byte {
	var out []byte
	for _, mark := range m.list {
		out = binary.BigEndian.AppendUint64(out, mark)
	}
	return out
}

// decodeMarks returns the set that encode has encoded.
func decodeMarks(raw []byte) (m marks, err error) {
	if len(raw)%8 != 0 {
		return m, errors.New("its ids are cut")
	}
	for ; len(raw) > 0; raw = raw[8:] {
		m.put(binary.BigEndian.Uint64(raw))
	}
	return m, nil
}
