package dialecttest

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"
)

// echo marks the schema of what the server sends of a type that goes both ways.
const echo = ".echo"

// read returns what a frame says that may not fit its schema.
func (c *checker) read(frame []byte) (reading, error) {
	sum := maphash.Bytes(c.readings.seed, frame)
	if r, known := c.readings.of[sum]; known {
		return r, nil
	}
	v, err := read(frame)
	if err != nil {
		return reading{}, err
	}
	r := c.reading(v)
	c.readings.of[sum] = r
	return r, nil
}

// frame requires that a frame for the client is of a known type and fits its schema. It
// returns what the frame says.
func (c *checker) frame(t require.TestingT, frame []byte) reading {
	sum := maphash.Bytes(c.readings.seed, frame)
	if r := c.readings.of[sum]; r.fits {
		return r
	}
	v, err := read(frame)
	if err != nil {
		require.NoError(t, err, "%s", frame)
	}
	r := c.reading(v)
	if !slices.Contains(c.Outbound, r.kind) {
		require.Contains(t, c.Outbound, r.kind, "%s", frame)
	}
	name := r.kind
	if c.schemas[name+echo] != nil {
		name += echo
	}
	if err := c.schemas.fits(name, v); err != nil {
		require.NoError(t, err, "%s", frame)
	}
	r.fits = true
	c.readings.of[sum] = r
	return r
}

// frames requires the same of all frames of an event.
func (c *checker) frames(t require.TestingT, frames [][]byte) []reading {
	said := make([]reading, 0, len(frames))
	for _, f := range frames {
		said = append(said, c.frame(t, f))
	}
	return said
}

// reading returns what a parsed frame says.
func (c *checker) reading(v any) reading {
	r := reading{
		id: TextAt(v, "id"), session: TextAt(v, "session_id"), eventID: TextAt(v, "event_id"), seq: numberAt(v, "seq"),
		watched: numberAt(v, "watched", "seq"),
		place:   max(numberAt(v, "sequence"), numberAt(v, "payload", "team_stream_event_envelope", "sequence")),
	}
	if c.Name != nil {
		r.kind = c.Name(v)
	} else {
		r.kind = TextAt(v, c.Kind)
	}
	return r
}

// numberAt returns the number at a path of members, 0 without one.
func numberAt(v any, path ...string) uint64 {
	n, _ := at(v, path...).(json.Number)
	u, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil {
		return 0
	}
	return u
}
