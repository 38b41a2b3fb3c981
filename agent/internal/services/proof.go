package services

// Replaced by render's.
const revisionPath = "/.well-known/opensource-agent/revision"

func sentinel(revision string) string { return revision[:16] + ".opensource.invalid" }
