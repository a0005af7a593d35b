// Package verify reads logs past the code under test, and checks that clients have seen them whole, once and in order.
// Its transcripts are stable between runs.
package verify
