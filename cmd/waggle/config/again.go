package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Stamp differs if the names or contents of configuration files differ, however they
// were replaced: the mount of a Kubernetes Secret is a link that moves to another folder.
// The zero Stamp is that of no file.
type Stamp [sha256.Size]byte

// Stamp returns that of the files when they were loaded, or before: files that have
// changed since, or while they were read, have another.
func (l *Loaded) Stamp() Stamp { return l.stamp }

// StampNow returns that of the files as they are now.
func (l *Loaded) StampNow() (Stamp, error) {
	names, err := files(l.in.File)
	if err != nil {
		return Stamp{}, err
	}
	return stampOf(names)
}

// Again loads the configuration from the same sources as before, as they are now. As
// with Load, the values are not judged.
func (l *Loaded) Again() (*Loaded, error) { return Load(l.in) }

func stampOf(names []string) (Stamp, error) {
	if len(names) == 0 {
		return Stamp{}, nil
	}
	h := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return Stamp{}, fmt.Errorf("configuration file: %w", err)
		}
		_, _ = fmt.Fprintf(h, "%q %d\n", name, len(text)) // a hash takes everything
		_, _ = h.Write(text)
	}
	return Stamp(h.Sum(nil)), nil
}
