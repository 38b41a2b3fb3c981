// Package notify tells people what is wrong with agents, and that it is over:
// by mail, webhook, chat or push. It reads the events, makes episodes of them,
// and tells each target of each episode once, many in one message. What was
// told is in the database, so that a restart, or another manager that takes
// over, neither forgets nor repeats anything.
package notify
