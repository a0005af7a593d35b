// Package backup copies all streams and buckets of a running installation into a folder, and restores them into an empty
// one. It uses the snapshots of JetStream: each stream is copied as of one moment, with sequences, headers and times.
//
// It does not interpret messages and does not copy consumers: services create theirs anew, and JetStream delivers unfinished
// work again.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/wake"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Manifest describes the contents of a backup. Save writes it last: a folder without one is an interrupted backup.
type Manifest struct {
	Format   int       `json:"format"`
	Version  string    `json:"waggle_version"`
	Server   string    `json:"nats_version"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Streams  []Stream  `json:"streams"` // in the order of their start
	// Grown holds the subjects of logs that grew after the copy of the commands began and whose later state is in the
	// backup: commands that followed from the growth may be missing.
	Grown []string `json:"grown,omitempty"`
}

// Progress receives each finished stream. Save calls it from one goroutine at a time.
type Progress func(Stream)

// phases returns the streams in the order of copying; the streams of one phase are copied at the same time. Commands, timers
// and acknowledgements come before the logs: work that waited then is delivered again and skipped if the logs show that it
// is done, and no acknowledgement exceeds the end of a log. Objects come after the logs, so that a backup has all objects
// that the logs name; dead letters and the audit log come last: they describe the others.
func phases(n subject.Partitions) [][]string {
	bucket := func(name string) string { return "KV_" + name }
	buckets := []string{bucket(subject.BucketAcks), bucket(subject.BucketRegistry), bucket(subject.BucketFolds), bucket(subject.BucketDirectory)}
	for _, name := range subject.QuotaBuckets() {
		buckets = append(buckets, bucket(name))
	}
	logs := make([]string, 0, n)
	for _, p := range n.All() {
		logs = append(logs, p.EventStream())
	}
	return [][]string{
		append([]string{subject.StreamCommands}, subject.TimerStreams()...),
		append(buckets, subject.StreamIndex), // before the logs: what it lacks is read from these
		logs,
		{subject.StreamPayloads},
		{subject.StreamDead, subject.StreamAudit},
	}
}

// Names returns all streams that a backup of an installation with n partitions holds.
func Names(n subject.Partitions) []string {
	var out []string
	for _, p := range phases(n) {
		out = append(out, p...)
	}
	return out
}

// Save copies everything into the folder, which it creates or which must be empty. It has no time limit but ctx, and stops
// no writer. After an error the folder holds no manifest.
func Save(ctx context.Context, c *bus.Conn, dir, version string, done Progress) (*Manifest, error) {
	if err := emptyFolder(dir); err != nil {
		return nil, err
	}
	m := &Manifest{Format: formatVersion, Version: version, Server: c.NATS().ConnectedServerVersion(), Started: time.Now().UTC()}
	before, err := ends(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, names := range phases(c.Partitions()) {
		streams, err := savePhase(ctx, c, dir, names)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			done(s)
		}
		m.Streams = append(m.Streams, streams...)
	}
	if m.Grown, err = grown(ctx, c, before, m.Streams); err != nil {
		return nil, err
	}
	m.Finished = time.Now().UTC()
	return m, m.write(dir)
}

func savePhase(ctx context.Context, c *bus.Conn, dir string, names []string) ([]Stream, error) {
	out := make([]Stream, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, name := range names {
		g.Go(func() (err error) {
			if out[i], err = save(ctx, c, dir, name); err != nil {
				return fmt.Errorf("back up the stream %s: %w", name, err)
			}
			return nil
		})
	}
	return out, g.Wait()
}

// Load reads the manifest of a backup and checks every file against it.
func Load(dir string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName)) //nolint:gosec // the folder is the operator's word
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: it is not a backup, or an incomplete one", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if m.Format != formatVersion {
		return nil, fmt.Errorf("the backup has format %d; this version reads format %d", m.Format, formatVersion)
	}
	for _, s := range m.Streams {
		if err := s.check(dir); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

// check compares a file with its entry in the manifest.
func (s Stream) check(dir string) error {
	if s.File != filepath.Base(s.File) {
		return fmt.Errorf("the manifest names the file %q outside of the backup", s.File)
	}
	f, err := os.Open(filepath.Join(dir, s.File)) //nolint:gosec // a name without folders, in the operator's folder
	if err != nil {
		return fmt.Errorf("the backup is not complete: %w", err)
	}
	defer func() { _ = f.Close() }()
	h := newHash()
	n, err := io.Copy(h, f)
	switch {
	case err != nil:
		return err
	case n != s.Bytes || h.String() != s.SHA256:
		return fmt.Errorf("%s is damaged: its checksum differs from the manifest", s.File)
	}
	return nil
}

func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, manifestName)
	if err := os.WriteFile(name+".tmp", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// emptyFolder creates the folder, readable for its owner only: it will hold conversations.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: choose an empty folder for the backup", dir)
	}
	return nil
}

// ErrNotEmpty is wrapped by the error of a restore into an installation that has streams.
var ErrNotEmpty = errors.New("the installation is not empty")

// RestoreOptions control a restore.
type RestoreOptions struct {
	Topology bus.Topology // sets copies and limits, in place of those in the backup
	Force    bool         // deletes existing streams first
	Done     Progress
}

// Restore restores the backup in the folder, repairs streams that differ from the topology, and wakes the logs that grew
// during the backup, so that services continue them once they start. Before it changes anything it checks the whole backup,
// and that none of the streams exists. After an error some streams may exist; Restore with Force can run again.
func Restore(ctx context.Context, c *bus.Conn, dir string, o RestoreOptions) (*Manifest, error) {
	m, err := Load(dir)
	if err != nil {
		return nil, err
	}
	if n := m.partitions(); n != c.Partitions() {
		return nil, fmt.Errorf("%w: the backup has %d, and nats.partitions is %d; set nats.partitions to %d", bus.ErrPartitions, n, c.Partitions(), n)
	}
	if err := makeRoom(ctx, c, m, o.Force); err != nil {
		return nil, err
	}
	for _, s := range m.Streams {
		if err := restore(ctx, c, dir, s, o.Topology.Replicas); err != nil {
			return nil, fmt.Errorf("restore the stream %s: %w", s.Name, err)
		}
		o.Done(s)
	}
	if err := bus.Bootstrap(ctx, c, o.Topology); err != nil {
		return nil, fmt.Errorf("mend the restored streams: %w", err)
	}
	if err := bus.Replace(ctx, c); err != nil {
		return nil, fmt.Errorf("replace the streams of an earlier version: %w", err)
	}
	if err := wakeGrown(ctx, c, m); err != nil {
		return nil, fmt.Errorf("restored, but open work does not continue until its next message: %w", err)
	}
	return m, nil
}

// partitions returns the number of partitions of the installation that the backup is of.
func (m *Manifest) partitions() (n subject.Partitions) {
	for _, s := range m.Streams {
		if slices.ContainsFunc(subject.MostPartitions.All(), func(p subject.Partition) bool { return p.EventStream() == s.Name }) {
			n++
		}
	}
	return n
}

// makeRoom refuses an installation that has streams, or deletes them if force is set.
func makeRoom(ctx context.Context, c *bus.Conn, m *Manifest, force bool) error {
	names := slices.Concat(Names(c.Partitions()), subject.RetiredStreams())
	for _, s := range m.Streams {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	for _, name := range names {
		have, err := c.JS().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the stream %s: %w", name, err)
		}
		if !force {
			return fmt.Errorf("%w: the stream %s exists, with %d messages", ErrNotEmpty, name, have.CachedInfo().State.Msgs)
		}
		if err := c.JS().DeleteStream(ctx, name); err != nil {
			return fmt.Errorf("delete the stream %s: %w", name, err)
		}
	}
	return nil
}

// wakeGrown sends wakers for the logs that grew during the backup.
func wakeGrown(ctx context.Context, c *bus.Conn, m *Manifest) error {
	sender := command.NewSender(c)
	for _, subj := range m.Grown {
		log, err := c.Partitions().ParseEvent(subj)
		if err != nil {
			return fmt.Errorf("the manifest names a log that cannot be: %w", err)
		}
		if err := wake.Log(ctx, sender, log, fmt.Sprintf("restore-%d", m.Finished.UnixNano())); err != nil {
			return err
		}
	}
	return nil
}
