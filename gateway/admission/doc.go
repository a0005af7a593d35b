// Package admission decides which requests may open a connection, and counts the
// connections of an address and of a principal. It knows no transport and no dialect.
//
// The checks go from cheap to dear: the names of the gateway and of pages (Names), the
// limits of an address (Pass.Address), and the principal, with its own limits and quota
// (Pass.Authenticate). A connection without credentials in its request is counted under
// its address alone, until it authenticates.
package admission
