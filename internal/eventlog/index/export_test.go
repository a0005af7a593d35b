package index

// ReadSingly makes pages ask for each summary alone, as those of large tenants do.
func (x *Index) ReadSingly() { x.newest.Large.Dear = -1 }

// Announced is the number of announcements that wait for a Follower at most.
const Announced = announced
