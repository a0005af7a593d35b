package ws

import (
	"encoding/binary"
	"errors"
)

// maxFragments bounds the frames of one message. Implementations fragment by the kilobyte or not at all; empty fragments cost
// the sender nothing and count against no limit of bytes.
const maxFragments = 1000

// errFragments ends a connection whose message has too many fragments.
var errFragments = errors.New("a message of too many fragments")

// fragments follows the headers of the frames that a peer sends. The library reads the same bytes and checks all rules but
// this one, so that what it would refuse may count wrongly here.
type fragments struct {
	header  [14]byte // RFC 6455, section 5.2: two bytes, the length, the mask
	have    int      // bytes of header
	payload uint64   // bytes until the next header
	count   int      // frames of the unfinished message
}

// take follows the next bytes, and reports whether the message is still within maxFragments.
func (f *fragments) take(p []byte) bool {
	for len(p) > 0 {
		if f.payload > 0 {
			n := min(f.payload, uint64(len(p)))
			f.payload -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.have:f.need()], p)
		f.have += n
		p = p[n:]
		if f.have == f.need() {
			f.begin()
			if f.count > maxFragments {
				return false
			}
		}
	}
	return true
}

// need returns the size of the header, as far as its first bytes tell.
func (f *fragments) need() int {
	if f.have < 2 {
		return 2
	}
	n := 2
	switch f.header[1] & 0x7f {
	case short + 1:
		n += 2
	case short + 2:
		n += 8
	}
	if f.header[1]&0x80 != 0 {
		n += 4
	}
	return n
}

// begin counts the frame whose header is complete.
func (f *fragments) begin() {
	switch f.header[1] & 0x7f {
	case short + 1:
		f.payload = uint64(binary.BigEndian.Uint16(f.header[2:]))
	case short + 2:
		f.payload = binary.BigEndian.Uint64(f.header[2:])
	default:
		f.payload = uint64(f.header[1] & 0x7f)
	}
	f.have = 0
	const final, control = 0x80, 0x8
	switch {
	case f.header[0]&control != 0: // control frames may stand between fragments
	case f.header[0]&final != 0:
		f.count = 0
	default:
		f.count++
	}
}
