// Package admission decides which requests may open a connection, and counts the
// connections of an address and of a principal. It knows no transport and no dialect.
//
// The checks go from cheap to dear: the names of the gateway and of pages (Names), the
// limits of an address (Pass.Address), and the principal, with its own limits and quota
// (Pass.Authenticate). A connection without credentials in its request is counted under
// its address alone, until it authenticates.
//
// Strangers and users take turns (Lane): Go's scheduler has one queue, so a burst of strangers would delay what a user
// waits for. Connections to be accepted, clients whose last request was authenticated, and strangers get turns alternately,
// and a turn of 5 ms is taken back if others wait. Failed logins are delayed instead of refused at once, so that guessing
// costs the guesser.
package admission
