// Package site runs the pages of docs/site as a reader follows them: each page in an empty folder of its own, with its own server,
// word for word.
//
// Titles of fences and comments before them are instructions, which docs/site/README.md lists.
package site
