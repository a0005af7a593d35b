package team

// MaxFrames is how many frames an event gives at most. It follows from the form of
// positions; those that give most give six.
const MaxFrames = 15

// A position has the sequence of its event and, in the lowest bits, which frame of the
// event it is. The last frame has all of them set, so that an event's end can be told
// without knowing how many frames it has.
const (
	frameBits = 4
	lastFrame = 1<<frameBits - 1
)

// position returns the position of frame i of n of the event with sequence seq. A direct
// message has none.
func position(seq uint64, i, n int) uint64 {
	if seq == 0 {
		return 0
	}
	if i == n-1 {
		i = lastFrame
	}
	return seq<<frameBits | uint64(i)
}

// Place returns for the position of a frame where to read on: after the event with sequence seq, of whose successor the first skip
// frames are not to be sent again. A position before the first event is the beginning.
func Place(p uint64) (seq uint64, skip int) {
	seq, frame := p>>frameBits, int(p&lastFrame)
	switch {
	case frame == lastFrame:
		return seq, 0
	case seq == 0:
		return 0, 0
	}
	return seq - 1, frame + 1
}
