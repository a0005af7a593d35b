// Package cells tests an installation of two cells and a control cluster, as real processes.
package cells
