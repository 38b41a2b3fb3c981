package soak

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// line is a connection through nginx that lasts.
type line struct {
	conn  net.Conn
	epoch int // of the nginx that holds it
	pings int
}

// watchLine checks that the connection still stands, if nothing has ended the
// nginx that holds it. There is one as soon as there can be.
func (s *session) watchLine() {
	nginx := s.machine.nginx()
	if s.line != nil && (!nginx.alive() || nginx.epoch() != s.line.epoch) {
		s.line.conn.Close()
		s.line = nil
	}
	if s.line == nil {
		s.line = openLine(nginx)
		return
	}
	if err := s.line.ping(); err != nil {
		s.wrong("an established connection through nginx was dropped: %v", err)
		s.line.conn.Close()
		s.line = nil
	}
}

func openLine(nginx *unit) *line {
	l := &line{epoch: nginx.epoch()}
	var err error
	if l.conn, err = dialPort(portOf(anchor)); err != nil {
		return nil
	}
	if _, err := readLine(l.conn); err != nil || l.ping() != nil {
		l.conn.Close()
		return nil // nobody behind it
	}
	return l
}

// ping has the container at the other end say something.
func (l *line) ping() error {
	l.pings++
	want := fmt.Sprintf("ping %d", l.pings)
	if err := l.conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.conn, want); err != nil {
		return err
	}
	got, err := readLine(l.conn)
	if err == nil && got != want {
		err = fmt.Errorf("heard %q instead of %q", got, want)
	}
	return err
}

// questions are put to dnsmasq all the time. None may be lost but at a restart.
type questions struct {
	end   chan struct{}
	ended sync.WaitGroup

	mutex sync.Mutex
	asked int
	lost  []string
}

func ask(dnsmasq *unit) *questions {
	q := &questions{end: make(chan struct{})}
	q.ended.Go(func() {
		for {
			select {
			case <-q.end:
				return
			case <-time.After(3 * time.Millisecond):
				q.put(dnsmasq)
			}
		}
	})
	return q
}

// put asks once. What happened to it is of no interest if dnsmasq was restarted
// or has ended meanwhile.
func (q *questions) put(dnsmasq *unit) {
	epoch, ran := dnsmasq.epoch(), dnsmasq.alive()
	client := &dns.Client{Timeout: 2 * time.Second}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion("localhost.", dns.TypeA), "127.0.0.1:53")
	if !ran || !dnsmasq.alive() || dnsmasq.epoch() != epoch {
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.asked++
	if err != nil {
		q.lost = append(q.lost, err.Error())
	} else if answer.Rcode != dns.RcodeSuccess {
		q.lost = append(q.lost, dns.RcodeToString[answer.Rcode])
	}
}

// takeLost returns what was lost since the last call.
func (q *questions) takeLost() []string {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	lost := q.lost
	q.lost = nil
	return lost
}

func (q *questions) stop() {
	close(q.end)
	q.ended.Wait()
}
