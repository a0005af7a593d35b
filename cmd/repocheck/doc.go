// Package repocheck holds the tests that keep the repository itself true: who
// imports whom, where subjects are built, that the README's commands exist and
// that the build's own tools count right. It has no code of its own.
package repocheck
