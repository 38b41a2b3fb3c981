package preflight

import (
	"context"
	"io/fs"
	"os"
	"slices"
)

// user tells of what somebody else than root cannot see.
func user(_ context.Context, o *Options) []Finding {
	if o.UserID != 0 {
		return list(warn("run sudo opensource-agent check", "you are not root: what only root may read is missing below"))
	}
	return list(ok("root"))
}

// settings tells every setting and where it came from, and every mistake.
func settings(_ context.Context, o *Options) []Finding {
	var found []Finding
	for _, s := range o.Settings {
		if s.Elsewhere == nil || o.Root != "" { // which the timer's passes know nothing of
			found = append(found, ok("%s is %s, from %s", s.Name, s.Value, s.From))
			continue
		}
		found = append(found, warn("write it into /etc/opensource-agent/agent.env, or take it away here",
			"%s is %s here, from %s; the timer's passes have %s", s.Name, s.Value, s.From, *s.Elsewhere))
	}
	for _, mistake := range o.Mistakes {
		found = append(found, fail("correct it in "+o.Root+"/etc/opensource-agent/agent.env", "%v", mistake))
	}
	return found
}

// keyFiles tells of keys that every user of the host can read.
func keyFiles(_ context.Context, o *Options) []Finding {
	var found []Finding
	for _, path := range slices.Compact(slices.Sorted(slices.Values(o.KeyFiles))) {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			found = append(found, warn("run as root", "%v", err))
		case info.Mode()&0o007 != 0:
			found = append(found, openKeyFile(path, info.Mode()))
		default:
			found = append(found, ok("%s has mode %04o", path, info.Mode().Perm()))
		}
	}
	return found
}

func openKeyFile(path string, mode fs.FileMode) Finding {
	fix := "chmod 640 " + path
	if path == "/etc/environment" { // which all users need
		fix = "move API_KEY to /etc/opensource-agent/agent.env"
	}
	return warn(fix+"; then make a new key, since this one was open", "every user of this host may read the key in %s (mode %04o)", path, mode.Perm())
}
