package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Stamp differs if the names or contents of configuration files differ, in whichever way the files were replaced: the mount
// of a Kubernetes Secret is a link that moves to another folder. The zero Stamp stands for no file.
type Stamp [sha256.Size]byte

// Stamp returns the stamp of the files at the time of loading or earlier: files that have changed since, or during the read,
// have another stamp.
func (l *Loaded) Stamp() Stamp { return l.stamp }

// StampNow returns the stamp of the current files.
func (l *Loaded) StampNow() (Stamp, error) {
	names, err := files(l.in.File)
	if err != nil {
		return Stamp{}, err
	}
	return stampOf(names)
}

// Again loads the configuration again from the same sources. Like Load, it does not validate the values.
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
		_, _ = fmt.Fprintf(h, "%q %d\n", name, len(text)) // a hash never fails
		_, _ = h.Write(text)
	}
	return Stamp(h.Sum(nil)), nil
}
