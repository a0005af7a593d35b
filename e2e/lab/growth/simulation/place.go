package simulation

import (
	"container/heap"
	"slices"
)

// spread returns the users of each tenant, the largest tenant first.
func spread(l Load) []int {
	shares := Zipf(max(1, l.Tenants), l.Skew, max(l.Largest, 1/float64(max(1, l.Tenants))))
	out := make([]int, len(shares))
	given, sum := 0, 0.0
	for n, share := range shares {
		sum += share
		out[n] = int(sum*float64(l.Users)+0.5) - given
		given += out[n]
	}
	return out
}

// Place returns the cell of each tenant: the one with the fewest users so far, as a directory of tenants would choose.
func Place(sizes []int, cells int) []int {
	order := make([]int, len(sizes))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[b] - sizes[a] })
	out, free := make([]int, len(sizes)), make(fullness, cells)
	for c := range free {
		free[c].cell = c
	}
	for _, n := range order {
		out[n] = free[0].cell
		free[0].users += sizes[n]
		heap.Fix(&free, 0)
	}
	return out
}

// fullness is the users of cells as a heap.
type fullness []struct{ cell, users int }

func (f fullness) Len() int { return len(f) }

func (f fullness) Less(i, j int) bool {
	return f[i].users < f[j].users || f[i].users == f[j].users && f[i].cell < f[j].cell
}

func (f fullness) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

func (f *fullness) Push(any) {}

func (f *fullness) Pop() any { return nil }
