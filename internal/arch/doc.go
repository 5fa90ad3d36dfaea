// Package arch holds the tests of the house's architecture: which package may know which, and what none may do. It has
// no code.
package arch
