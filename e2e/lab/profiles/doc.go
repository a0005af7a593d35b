// Profiles takes CPU profiles of the four busiest paths, of this checkout and of an earlier one, and writes a page that shows
// which parts the processor time goes to. It needs a machine that does nothing else.
package main
