// Package growth measures what an installation costs as it grows: it fills one with sessions and with long logs, and
// prints a line for each size.
package growth
