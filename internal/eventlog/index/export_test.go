package index

// ReadSingly makes pages ask for each summary alone, as those of large tenants do.
func (x *Index) ReadSingly() { x.newest.Large.Dear = -1 }
