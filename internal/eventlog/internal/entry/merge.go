package entry

import (
	"github.com/go-json-experiment/json"
	v1 "github.com/go-json-experiment/json/v1"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxMergedText bounds the text of a merged delta in bytes. 32 KiB is the size of one coalesced socket write; a
// longer text would only make a frame that is harder to queue.
const maxMergedText = 32 << 10

// Merge merges each run of consecutive deltas of one text, of a message or of its reasoning, into one entry. The entries must
// follow each other in a log; the slice is not modified. From is the first sequence of the run; Sequence, Stream, ID and Time
// are those of the last entry; the text is the concatenation. Single entries are returned unchanged. Deltas with members that
// event.MessageDeltaData does not know are never merged, nor is the one that begins a text.
func Merge(in []*Entry) []*Entry {
	out := make([]*Entry, 0, len(in))
	for len(in) > 0 {
		n, text, first := deltaRun(in)
		if n < 2 {
			out, in = append(out, in[0]), in[1:]
			continue
		}
		if m := mergedEntry(in[:n], first, text); m != nil {
			out = append(out, m)
		} else {
			out = append(out, in[:n]...)
		}
		in = in[n:]
	}
	return out
}

// deltaRun returns the number of mergeable entries at the head of in, their whole text and the data of the first.
func deltaRun(in []*Entry) (n int, text []byte, first event.MessageDeltaData) {
	for _, e := range in {
		d, ok := deltaData(e)
		if !ok || len(text)+len(d.Text) > maxMergedText {
			break
		}
		if n > 0 && (e.Type != in[0].Type || !sameMessage(first, d)) {
			break
		}
		if n == 0 {
			first = d
		}
		text = append(text, d.Text...)
		n++
	}
	return n, text, first
}

// deltaData returns the data of a delta, false for all other events. The data of a delta of reasoning have the members of a
// message's delta, but for Begins.
func deltaData(e *Entry) (event.MessageDeltaData, bool) {
	var d event.MessageDeltaData
	if e.Type != event.MessageDelta && e.Type != event.ReasoningDelta {
		return d, false
	}
	err := json.Unmarshal(e.Data, &d, json.RejectUnknownMembers(true))
	return d, err == nil
}

func sameMessage(a, b event.MessageDeltaData) bool {
	if a.Begins || b.Begins {
		return false // all viewers see a text begin at the same position
	}
	a.Text, b.Text = "", ""
	return a == b
}

// mergedEntry builds the entry that replaces run, or returns nil if it cannot be encoded.
func mergedEntry(run []*Entry, d event.MessageDeltaData, text []byte) *Entry {
	last := run[len(run)-1]
	d.Text = string(text)
	data, err := json.Marshal(d, v1.OmitEmptyWithLegacySemantics(true))
	if err != nil {
		return nil
	}
	m := &Entry{Event: last.Event}
	m.From = run[0].From
	m.Data = data
	if m.Raw, err = Encode(m.Event); err != nil {
		return nil
	}
	return m
}
