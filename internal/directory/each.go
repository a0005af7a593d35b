package directory

// Each calls f with every member now, and later with each member that joins, changes or leaves. Heartbeats do not count as
// changes. It makes one call at a time, in the order in which the copy changes, and before those of Watch's functions. f
// must not block, and must not call Each or cancel.
func (d *Directory) Each(f func(Change)) (cancel func()) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.mu.Lock()
	n, now := d.next, make([]Change, 0, len(d.keys))
	d.next++
	for _, k := range d.keys {
		now = append(now, Change{Member: d.entries[k].listed()})
	}
	d.mu.Unlock()
	d.each[n] = f
	for _, c := range now {
		f(c)
	}
	return func() {
		d.telling.Lock()
		defer d.telling.Unlock()
		delete(d.each, n)
	}
}

// tell calls Each's functions. The caller holds telling.
func (d *Directory) tell(changes ...Change) {
	for _, c := range changes {
		for _, f := range d.each {
			f(c)
		}
	}
}

// differences returns the changes that make one copy another. Those that leave come first.
func differences(from, to map[string]entry) (out []Change) {
	for key, e := range from {
		if _, there := to[key]; !there {
			out = append(out, Change{Member: e.listed(), Gone: true})
		}
	}
	for key, e := range to {
		if old, known := from[key]; !known || !same(old, e) {
			out = append(out, Change{Member: e.listed()})
		}
	}
	return out
}
