package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a source that tells what it is given.
type scripted struct {
	next  chan []change
	hints chan struct{}
	known bool
	away  atomic.Bool
}

func (s *scripted) forget() { s.known = false }

func (s *scripted) listen(ctx context.Context, heard func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hints:
			heard()
		}
	}
}

func (s *scripted) changes(context.Context) ([]change, error) {
	if s.away.Load() {
		return nil, errors.New("database is away")
	}
	if !s.known {
		s.known = true
		return nil, nil
	}
	select {
	case c := <-s.next:
		return c, nil
	default:
		return nil, nil
	}
}

// inBubble runs a test with a hub in a bubble of its own time.
func inBubble(t *testing.T, test func(t *testing.T, h *Hub, s *scripted)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{next: make(chan []change, 2000), hints: make(chan struct{})}
		h := newHub(s, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.Run(ctx) }()
		test(t, h, s)
		stop()
		<-done
	})
}

func listen(t *testing.T, h *Hub, lastID string) *Client {
	t.Helper()
	c, err := h.Listen(lastID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// heard returns what a client has got so far, as "kind data".
func heard(c *Client) (texts []string, lastID string) {
	synctest.Wait()
	events := c.Missed
	c.Missed = nil
	for {
		select {
		case e, open := <-c.Events:
			if open {
				events = append(events, e)
				continue
			}
			events = append(events, Event{Kind: "closed"})
		default:
		}
		break
	}
	for _, e := range events {
		texts, lastID = append(texts, strings.TrimSpace(e.Kind+" "+string(e.Data))), e.ID
	}
	return texts, lastID
}

func expect(t *testing.T, c *Client, want ...string) (lastID string) {
	t.Helper()
	got, lastID := heard(c)
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("heard %q, want %q", got, want)
	}
	return lastID
}

func TestEverybodyHearsAfterAReset(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		one := listen(t, h, "")
		expect(t, one, "reset {}")
		two := listen(t, h, "")
		expect(t, two, "reset {}")
		s.next <- []change{{Site, siteData{ID: 1}}, {Agent, agentData{2, 1}}}
		time.Sleep(pollInterval)
		for _, c := range []*Client{one, two} {
			expect(t, c, `site {"id":1,"etag":null}`, `agent {"id":2,"siteId":1}`)
		}
	})
}

// What is heard of is looked at before it is time to, but not without a pause.
func TestHintsMakeItSooner(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		expect(t, c, "reset {}")
		for id := range int64(3) {
			s.next <- []change{{Site, siteData{ID: id}}}
		}
		s.hints <- struct{}{}
		s.hints <- struct{}{}
		expect(t, c)
		time.Sleep(pollGap)
		expect(t, c, `site {"id":0,"etag":null}`)
		s.hints <- struct{}{}
		time.Sleep(pollGap)
		expect(t, c, `site {"id":1,"etag":null}`)
		time.Sleep(pollGap)
		expect(t, c)
		time.Sleep(pollInterval - 3*pollGap)
		expect(t, c, `site {"id":2,"etag":null}`)
	})
}

func TestWhoeverComesBackGetsTheRestOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		s.next <- []change{{Agent, agentData{1, 1}}}
		time.Sleep(pollInterval)
		id := expect(t, c, "reset {}", `agent {"id":1,"siteId":1}`)
		c.Leave()
		s.next <- []change{{Agent, agentData{2, 1}}, {Agent, agentData{3, 1}}}
		time.Sleep(linger / 2)
		back := listen(t, h, id)
		id = expect(t, back, `agent {"id":2,"siteId":1}`, `agent {"id":3,"siteId":1}`)
		back.Leave()
		expect(t, listen(t, h, id))
	})
}

func TestWhatCannotBeToldIsAReset(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		first := expect(t, c, "reset {}")
		for range recentEvents + 1 {
			s.next <- []change{{Agent, agentData{1, 1}}}
		}
		for range recentEvents + 1 {
			time.Sleep(pollInterval)
			heard(c)
		}
		for _, id := range []string{first, "other-1", h.id(h.last + 1), "junk", h.run + "--1"} {
			expect(t, listen(t, h, id), "reset {}")
		}
	})
}

func TestNobodyListensForLong(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		id := expect(t, c, "reset {}")
		c.Leave()
		time.Sleep(linger + pollInterval)
		synctest.Wait()
		if s.known {
			t.Error("changes are still looked for")
		}
		expect(t, listen(t, h, id), "reset {}")
	})
}

func TestSlowClientsAreLetGoAndComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		slow, fast := listen(t, h, ""), listen(t, h, "")
		id := expect(t, slow, "reset {}")
		expect(t, fast, "reset {}")
		for n := range queueLength + 10 {
			s.next <- []change{{Agent, agentData{int64(n), 1}}}
			time.Sleep(pollInterval)
			if got, _ := heard(fast); len(got) != 1 || got[0] != fmt.Sprintf(`agent {"id":%d,"siteId":1}`, n) {
				t.Fatalf("the fast one heard %q", got)
			}
		}
		got, _ := heard(slow)
		if len(got) != queueLength+1 || got[queueLength] != "closed" {
			t.Errorf("the slow one heard %d: %q", len(got), got[len(got)-1])
		}
		if back := listen(t, h, id); len(back.Missed) != queueLength+10 {
			t.Errorf("the slow one missed %d", len(back.Missed))
		}
	})
}

// Nobody can take more at once than fits in a queue. All are told to read
// everything anew then, and stay.
func TestMuchAtOnceIsAReset(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		expect(t, c, "reset {}")
		for _, sites := range []int{queueLength, queueLength + 1} {
			var many []change
			for id := range int64(sites) {
				many = append(many, change{Site, siteData{ID: id}})
			}
			s.next <- many
			time.Sleep(pollInterval)
			if sites == queueLength {
				if got, _ := heard(c); len(got) != sites || got[sites-1] == "closed" {
					t.Errorf("of %d heard %q", sites, got)
				}
				continue
			}
			expect(t, c, "reset {}")
		}
		s.next <- []change{{Agent, agentData{1, 1}}}
		time.Sleep(pollInterval)
		expect(t, c, `agent {"id":1,"siteId":1}`)
	})
}

func TestFaultsPass(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, s *scripted) {
		c := listen(t, h, "")
		expect(t, c, "reset {}")
		s.away.Store(true)
		time.Sleep(10 * pollInterval)
		expect(t, c)
		s.away.Store(false)
		s.next <- []change{{Site, siteData{ID: 1}}}
		time.Sleep(pollInterval)
		expect(t, c, `site {"id":1,"etag":null}`)
	})
}

func TestBoundsAndTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, h *Hub, _ *scripted) {
		var clients []*Client
		for range maxClients {
			clients = append(clients, listen(t, h, ""))
		}
		if _, err := h.Listen(""); !errors.Is(err, ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		clients[0].Leave()
		clients[0].Leave()
		listen(t, h, "")
		synctest.Wait() // the first look has been made
		h.Close()
		expect(t, clients[1], "reset {}", "closed")
		if _, err := h.Listen(""); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}
