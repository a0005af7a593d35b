package conversation

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// maxMarks bounds the ids that a state remembers: those of the last 16,384 messages and effects of commands. A person who
// sends a message each minute needs eleven days for that many.
const maxMarks = 1 << 14

// maxRefusals bounds the refusals whose reasons a state remembers, for senders that repeat a message.
const maxRefusals = 64

// marks is a set of ids, which forgets the oldest ones. It keeps 64 bits of the hash of each: one of 10^15 new ids is taken
// for a known one.
type marks struct {
	list []uint64 // oldest first
	set  map[uint64]bool
}

func markOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

func (m *marks) has(id string) bool { return m.set[markOf(id)] }

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

func (m *marks) encode() []byte {
	var out []byte
	for _, mark := range m.list {
		out = binary.BigEndian.AppendUint64(out, mark)
	}
	return out
}

func decodeMarks(raw []byte) (m marks, err error) {
	if len(raw)%8 != 0 {
		return m, errors.New("its ids are cut")
	}
	for ; len(raw) > 0; raw = raw[8:] {
		m.put(binary.BigEndian.Uint64(raw))
	}
	return m, nil
}

// messageMark is the mark of a message that was received.
func messageMark(messageID string) string { return "message " + messageID }

// refusalMark is the mark of a message that was refused.
func refusalMark(messageID string) string { return "refusal " + messageID }

// heard reports whether the message was received or refused.
func (s *State) heard(messageID string) bool {
	return s.known.has(messageMark(messageID)) || s.known.has(refusalMark(messageID))
}
