// Package entry holds stored events of one log in order: their form in the stream, positions, merged deltas, the splice
// of live and read entries, and the ring of the newest ones. It is pure: it knows no bus and no clock.
package entry
