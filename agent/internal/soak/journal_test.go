package soak

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// journal keeps what a program writes, with the time of each line, as
// systemd's does.
type journal struct {
	writer *os.File // for the program

	mutex  sync.Mutex // of what follows
	lines  []journalLine
	synced map[string]chan struct{}
}

type journalLine struct {
	at   time.Time
	text string
}

func newJournal() (*journal, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	j := &journal{writer: writer, synced: map[string]chan struct{}{}}
	go func() {
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			j.take(lines.Text())
		}
	}()
	return j, nil
}

func (j *journal) take(text string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if reached := j.synced[text]; reached != nil {
		close(reached)
		delete(j.synced, text)
		return
	}
	_, message, _ := strings.Cut(text, ": ") // without the program's name
	j.lines = append(j.lines, journalLine{time.Now(), message})
}

// sync returns when all that was written before is kept.
func (j *journal) sync() error {
	reached := make(chan struct{})
	j.mutex.Lock()
	mark := fmt.Sprintf("sync %p", reached)
	j.synced[mark] = reached
	j.mutex.Unlock()
	if _, err := fmt.Fprintln(j.writer, mark); err != nil {
		return err
	}
	<-reached
	return nil
}

func (j *journal) since(from time.Time) []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	var texts []string
	for _, line := range j.lines {
		if !line.at.Before(from) {
			texts = append(texts, line.text)
		}
	}
	return texts
}

func (j *journal) clear() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = nil
}

// serveJournal answers what the tool journalctl asks for: ?unit=UNIT&since=@SECONDS.
func (m *machine) serveJournal(response http.ResponseWriter, request *http.Request) {
	unit := m.units[request.FormValue("unit")]
	seconds, err := strconv.ParseFloat(strings.TrimPrefix(request.FormValue("since"), "@"), 64)
	if unit == nil || err != nil {
		http.Error(response, "odd question", http.StatusBadRequest)
		m.missing("journalctl " + request.URL.RawQuery)
		return
	}
	if err := unit.log.sync(); err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	// A double has no place for microseconds of today's dates and a little to spare.
	from := time.UnixMicro(int64(seconds * 1e6)).Add(-time.Microsecond)
	for _, line := range unit.log.since(from) {
		fmt.Fprintln(response, line)
	}
}
