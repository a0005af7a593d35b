package dialecttest

import (
	"encoding/json"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// seedStride thins out the hostile documents for the seed corpus: Exercise tries many more of
// them, and a fuzzer finds its way from a few of each kind. It has no factor in common with
// the numbers of values and of members, so that each of them has its seed.
const seedStride = 101

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
			_ = c.decode(t, codec, doc) // a refusal is an answer, too
		}
	})
}

// FuzzEncode feeds every codec events of every type: with arbitrary Texts where
// data is well formed, and with arbitrary bytes as data. The seed corpus has every type
// and every text.
func FuzzEncode(f *testing.F, s Suite) {
	c := load(f, s)
	types := c.types()
	for i, info := range types {
		f.Add(uint8(i), Texts[i%len(Texts)], []byte(fill(f, info, "x", `{}`, i)), uint64(i))
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
		c.encodeAll(t, e)
	})
}
