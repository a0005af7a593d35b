package index

import "time"

// ReadSingly makes pages ask for each summary alone, as those of large tenants do.
func (x *Index) ReadSingly() { x.newest.Large.Dear = -1 }

// Announced is the number of announcements that wait for a Follower at most.
const Announced = announced

// MarkersLive sets how long markers stand for removed entries.
func (x *Index) MarkersLive(d time.Duration) { x.markerLife = d }
