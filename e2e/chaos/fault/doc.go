// Package fault breaks parts of an installation, one fault at a time, and keeps the evidence. An Injector carries out
// the faults of Matrix; each of them fails if its effect cannot be shown.
package fault
