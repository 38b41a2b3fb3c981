// Package auth decides who is asking and what they may do: API keys of
// programs, sessions of people, and the trust a fresh manager has in its own
// host. Everything is refused that is not allowed here.
package auth
