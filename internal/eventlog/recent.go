package eventlog

import (
	"container/list"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// recentLogs, recentEntries and recentBytes bound the entries that a Store remembers: the last runs of some hundred
	// chats, or all that a few write between two looks of the index, which has one a second.
	recentLogs    = 512
	recentEntries = 1024
	recentBytes   = 8 << 20
	// recentTime is the time without use after which a log is forgotten: a reader that comes later asks the bus.
	recentTime = 20 * time.Second
	// entryBytes is the size of an entry excluding its stored form.
	entryBytes = 512
)

// recent remembers the last entries of each log that this process has appended, without holes. The services of one process
// write the same log in turns: the next one, and the index, need not read from the bus the events that another one has just
// written.
type recent struct {
	mu    sync.Mutex
	order list.List // of *recentLog, the last used one first
	logs  map[subject.Log]*recentLog
	bytes int
	sweep *time.Timer // while it remembers a log; nil = none
}

type recentLog struct {
	log     subject.Log
	at      *list.Element
	used    time.Time
	entries []*Entry
	bytes   int
}

func sizeOf(e *Entry) int { return len(e.Raw) + entryBytes }

// add remembers an entry. One that does not follow the last one of its log replaces all of that log.
func (r *recent) add(log subject.Log, e *Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.logs[log]
	if !ok {
		if r.logs == nil {
			r.logs = map[subject.Log]*recentLog{}
		}
		l = &recentLog{log: log}
		l.at, r.logs[log] = r.order.PushFront(l), l
	}
	r.use(l)
	if r.sweep == nil {
		r.sweep = time.AfterFunc(recentTime, func() { r.expire(time.Now().Add(-recentTime)) })
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].Sequence+1 != e.Sequence {
		r.drop(l, n)
	}
	l.entries = append(l.entries, e)
	l.bytes, r.bytes = l.bytes+sizeOf(e), r.bytes+sizeOf(e)
	if n := len(l.entries); n > recentEntries {
		r.drop(l, n/2)
	}
	for r.bytes > recentBytes || r.order.Len() > recentLogs {
		if last, ok := r.order.Back().Value.(*recentLog); ok {
			r.remove(last)
		}
	}
}

// use notes that a log is in use. mu is held.
func (r *recent) use(l *recentLog) {
	l.used = time.Now()
	r.order.MoveToFront(l.at)
}

// expire forgets the logs that were used last before a time, and comes again while others are left.
func (r *recent) expire(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := r.order.Back(); at != nil; at = r.order.Back() {
		l, ok := at.Value.(*recentLog)
		if !ok || !l.used.Before(before) {
			break
		}
		r.remove(l)
	}
	switch {
	case r.sweep == nil: // closed
	case len(r.logs) == 0:
		r.sweep = nil
	default:
		r.sweep.Reset(recentTime / 2)
	}
}

// close ends the sweep.
func (r *recent) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sweep != nil {
		r.sweep.Stop()
		r.sweep = nil
	}
}

// drop removes the first n entries of a log.
func (r *recent) drop(l *recentLog, n int) {
	for _, e := range l.entries[:n] {
		l.bytes, r.bytes = l.bytes-sizeOf(e), r.bytes-sizeOf(e)
	}
	l.entries = append([]*Entry(nil), l.entries[n:]...)
}

func (r *recent) remove(l *recentLog) {
	r.order.Remove(l.at)
	r.bytes -= l.bytes
	delete(r.logs, l.log)
}

// forget discards the entries of a deleted log.
func (r *recent) forget(log subject.Log) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.logs[log]; ok {
		r.remove(l)
	}
}

// between returns the entries after a sequence up to a position that the log is known to have, nil if some are missing or if
// the log has another entry there. They may have expired since.
func (r *recent) between(log subject.Log, after uint64, end Cursor) []*Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.logs[log]
	if !ok || end.Seq <= after || end.Stream == 0 {
		return nil
	}
	all := l.entries
	first := all[0].Sequence
	if first > after+1 || end.Seq >= first+uint64(len(all)) || all[end.Seq-first].Stream != end.Stream {
		return nil
	}
	r.use(l)
	return all[after+1-first : end.Seq+1-first : end.Seq+1-first]
}

// since returns the entries after a position, and whether it is known here: the last of the log, which this process has appended, is
// that entry or a later one, and none between them is missing.
func (r *recent) since(log subject.Log, at Cursor) (later []*Entry, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.logs[log]
	if !ok {
		return nil, false
	}
	all := l.entries
	first := all[0].Sequence
	if at.Seq < first || at.Seq >= first+uint64(len(all)) || all[at.Seq-first].Stream != at.Stream {
		return nil, false
	}
	r.use(l)
	return all[at.Seq+1-first : len(all) : len(all)], true
}
