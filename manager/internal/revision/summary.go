package revision

import (
	"cmp"
	"strings"

	"opensource.internal/manager/internal/prose"
)

// Summary counts changes by resource. A resource without any is not in it.
type Summary map[Resource]Counts

// Counts says of how many records of a resource something happened.
type Counts struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// Summarise counts changes.
func Summarise(changes []Change) Summary {
	summary := Summary{}
	for _, change := range changes {
		counts := summary[change.Resource]
		switch change.Action {
		case Added:
			counts.Added++
		case Changed:
			counts.Changed++
		case Removed:
			counts.Removed++
		}
		summary[change.Resource] = counts
	}
	return summary
}

// String puts a summary into words, such as "2 containers added, 1 HTTP service
// changed".
func (s Summary) String() string {
	var words []string
	for _, kind := range kinds {
		counts := s[kind.resource]
		for _, part := range []struct {
			n      int
			action Action
		}{{counts.Added, Added}, {counts.Changed, Changed}, {counts.Removed, Removed}} {
			switch {
			case part.n == 0:
			case kind.resource == Site && part.action == Changed:
				words = append(words, "settings of the site changed")
			case kind.resource == Site:
				words = append(words, "site "+string(part.action))
			default:
				words = append(words, prose.Counted(part.n, nouns[kind.resource])+" "+string(part.action))
			}
		}
	}
	return cmp.Or(strings.Join(words, ", "), "nothing differs")
}

// Noun is what people call a record of a resource.
func Noun(resource Resource) string { return nouns[resource] }

var nouns = map[Resource]string{
	Site: "site", Node: "node", Container: "container", HTTPService: "HTTP service",
	TransportService: "TCP/UDP service", DNSRecord: "SRV record", Volume: "volume", ExternalDomain: "external domain",
}
