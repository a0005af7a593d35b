package respond

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
)

// encoded returns the pieces of the JSON of an answer, with a new line. The events of a page are JSON already: json.Marshal
// would check and copy each of them, which takes more of a processor than all else about a page of 4 MiB.
func encoded(answer any) (net.Buffers, error) {
	var events []json.RawMessage
	switch page := answer.(type) {
	case wire.EventPage:
		events, page.Events = page.Events, []json.RawMessage{}
		answer = page
	case wire.LogPage:
		events, page.Events = page.Events, []json.RawMessage{}
		answer = page
	}
	rest, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	if len(events) == 0 {
		return net.Buffers{append(rest, '\n')}, nil
	}
	rest, found := bytes.CutPrefix(rest, []byte(opening))
	if !found {
		return nil, fmt.Errorf("encode the answer: the events of %T are not in front", answer)
	}
	body := append(make(net.Buffers, 0, 2*len(events)+1), []byte(opening))
	for n, e := range events {
		if n > 0 {
			body = append(body, comma)
		}
		body = append(body, e)
	}
	return append(body, append(rest, '\n')), nil
}

// sizeOf returns the number of bytes of all pieces.
func sizeOf(pieces net.Buffers) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

var comma = []byte{','}

// opening is the beginning of a page of events.
const opening = `{"events":[`
