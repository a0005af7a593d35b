package eventlog

import (
	"container/list"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// recentLogs, recentEntries and recentBytes bound the entries that a Store remembers: the last runs of some hundred
	// chats, or all that a few write between two looks of the index, which has one a second.
	recentLogs    = 512
	recentEntries = 1024
	recentBytes   = 4 << 20
	// entryBytes is the size of an entry besides its stored form.
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
}

type recentLog struct {
	log     subject.Log
	at      *list.Element
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
	r.order.MoveToFront(l.at)
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
// the log has another entry there. The head of the log may have expired, so a reader without an entry gets nothing.
func (r *recent) between(log subject.Log, after uint64, end Cursor) []*Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.logs[log]
	if !ok || after == 0 || end.Seq <= after || end.Stream == 0 {
		return nil
	}
	all := l.entries
	first := all[0].Sequence
	if first > after+1 || end.Seq >= first+uint64(len(all)) || all[end.Seq-first].Stream != end.Stream {
		return nil
	}
	r.order.MoveToFront(l.at)
	return all[after+1-first : end.Seq+1-first : end.Seq+1-first]
}
