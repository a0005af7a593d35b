// Package report writes the verdicts on faults as a table.
package report
