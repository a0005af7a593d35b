package dialecttest

import (
	"encoding/json"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// seedStride thins out the hostile documents for the seed corpus: Exercise runs them
// all, and a fuzzer finds its way from a few of each kind.
const seedStride = 11

// textStride thins out the texts in the same way: every type gets some of them.
const textStride = 8

// FuzzDecode feeds arbitrary frames to every codec. The seed corpus is a sample of the
// hostile documents, and the protocol's examples.
func FuzzDecode(f *testing.F, s Suite) {
	c := load(f, s)
	for i, doc := range hostileDocuments(c.Kind, s.Inbound) {
		if i%seedStride == 0 {
			f.Add([]byte(doc))
		}
	}
	for _, doc := range c.accepted(f) {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, codec := range c.bound {
			c.decode(t, codec, doc)
		}
	})
}

// FuzzEncode feeds every codec events of every type: with arbitrary texts where
// data is well formed, and with arbitrary bytes as data.
func FuzzEncode(f *testing.F, s Suite) {
	c := load(f, s)
	types := c.types()
	for i, info := range types {
		for j, text := range texts {
			if (i+j)%textStride != 0 {
				continue
			}
			f.Add(uint8(i), text, []byte(fill(f, info, text, `{}`, i)), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, text string, raw []byte, seq uint64) {
		info := types[int(kind)%len(types)]
		e := event.Event{Type: info.Type, Subject: c.Log.Name(), Time: Now, Sequence: max(seq, 1)}
		e.Data = raw
		c.encodeDamaged(t, e)
		arguments := "{}"
		if json.Valid(raw) {
			arguments = string(raw)
		}
		e.Data = fill(t, info, text, arguments, int(seq%3))
		for _, codec := range c.bound {
			c.encode(t, codec, e)
		}
	})
}
