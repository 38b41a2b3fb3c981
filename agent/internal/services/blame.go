package services

import (
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"opensource.internal/agent/internal/apply"
)

// blame makes a fault of a validator's verdict: it gives the candidate the name
// of the live file, and finds the place that the verdict speaks of. Any other
// error is no verdict, and comes back as it is.
func blame(err error, candidate, live string) error {
	var said *verdict
	if !errors.As(err, &said) {
		return err
	}
	words := strings.ReplaceAll(said.words, candidate, live)
	fault := &apply.Fault{Words: words, Verdict: words}
	for line := range strings.Lines(fault.Words) {
		if !strings.Contains(line, "[warn]") && !strings.HasPrefix(line, "nginx: configuration file ") {
			fault.Verdict = strings.TrimSpace(line) // the last message is the one that ended the test
		}
	}
	place, found := placeIn(fault.Verdict)
	switch {
	case !found:
	case place.File == live:
		fault.Places = []apply.Place{place}
	default:
		fault.Elsewhere = place.File
	}
	return fault
}

// placeForm is the end of a message that names a place.
type placeForm struct {
	*regexp.Regexp
	file, line int // the groups
}

// placeForms are that of nginx and those of dnsmasq, for files and for what
// it reads beside them. The last two are those of dnsmasq in other languages,
// which it speaks in its log: "in Zeile 3 von FILE", "w pliku FILE, w linii 3".
var placeForms = sync.OnceValue(func() []placeForm {
	return []placeForm{
		{regexp.MustCompile(` in (/.+):(\d+)$`), 1, 2},
		{regexp.MustCompile(` at line (\d+) of (/.+)$`), 2, 1},
		{regexp.MustCompile(` at (/.+) line (\d+)$`), 1, 2},
		{regexp.MustCompile(` \S+ \S+ (\d+) \S+ (/.+)$`), 2, 1},
		{regexp.MustCompile(`(?: \pL)? \S+ (/\S+?),?(?: \S+){1,2} (\d+)$`), 1, 2},
	}
})

// placeIn finds the place that a message names. The place itself is left out of
// the words: it is one in a candidate that nobody will see.
func placeIn(message string) (apply.Place, bool) {
	for _, form := range placeForms() {
		match := form.FindStringSubmatch(message)
		if match == nil {
			continue
		}
		if line, err := strconv.Atoi(match[form.line]); err == nil {
			words := strings.TrimSuffix(message, match[0])
			return apply.Place{File: match[form.file], Lines: []int{line}, Words: words}, true
		}
	}
	return apply.Place{}, false
}

// placesIn finds the places that messages name, each once.
func placesIn(messages []string) []apply.Place {
	var places []apply.Place
	seen := map[string]bool{}
	for _, message := range messages {
		if place, found := placeIn(message); found && !seen[message] {
			places = append(places, place)
		}
		seen[message] = true
	}
	return places
}

// portFault is what nginx says of a port that it cannot listen on.
var portFault = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`bind\(\) to (\S+):(\d+) failed \(.*\)`)
})

// blamePorts adds to an error the lines of the main file that have nginx listen
// on the ports it could not bind: of those it names none. tested is where the
// content of the live file lies that nginx has read.
func blamePorts(err error, live, tested string) error {
	if err == nil || !strings.Contains(err.Error(), "bind()") {
		return err
	}
	content, errRead := os.ReadFile(tested)
	if errRead != nil {
		return err // it only explains the other
	}
	fault := &apply.Fault{Words: err.Error()}
	errors.As(err, &fault)
	known := map[string]bool{}
	for _, match := range portFault().FindAllStringSubmatch(fault.Words, -1) {
		host, port := match[1], match[2]
		if lines := listening(content, host, port); len(lines) > 0 && !known[port] {
			fault.Places = append(fault.Places, apply.Place{File: live, Lines: lines, Words: match[0]})
		}
		known[port] = true
	}
	if len(fault.Places) == 0 {
		return err
	}
	return fault
}

// listening returns the lines of an nginx configuration that listen on the port.
// Of TCP and UDP, it leaves out the one that the port is free for at the host,
// which is "[::]" or "0.0.0.0" for most.
func listening(content []byte, host, port string) []int {
	directive := regexp.MustCompile(`\blisten\s+(?:\S*:)?` + port + `\b([^;#]*)`)
	var tcp, udp []int
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		match := directive.FindStringSubmatch(line)
		switch {
		case match == nil || strings.HasPrefix(strings.TrimSpace(line), "#"):
		case strings.Contains(match[1], " udp") || strings.Contains(match[1], " quic"):
			udp = append(udp, number)
		default:
			tcp = append(tcp, number)
		}
	}
	if len(tcp) > 0 && len(udp) > 0 {
		if isFree("tcp", host, port) {
			return udp
		}
		if isFree("udp", host, port) {
			return tcp
		}
	}
	return append(tcp, udp...)
}

// isFree reports whether a server could listen there. As for nginx, "[::]" does
// not stand for IPv4 too.
func isFree(protocol, host, port string) bool {
	network := protocol + "4"
	if strings.HasPrefix(host, "[") {
		network = protocol + "6"
	}
	var socket io.Closer
	var err error
	if protocol == "udp" {
		socket, err = net.ListenPacket(network, host+":"+port)
	} else {
		socket, err = net.Listen(network, host+":"+port)
	}
	if err != nil {
		return false
	}
	_ = socket.Close()
	return true
}
