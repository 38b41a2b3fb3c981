// Package live tells those who listen what has changed, as it happens: sites,
// agents and events, whichever process changed them. It says that something is
// different and where, not what: whoever shows it reads it anew.
package live

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The kinds of event.
const (
	// Reset means that anything may have changed. It comes first, and whenever it
	// cannot be told what a listener has missed.
	Reset = "reset"
	Agent = "agent"
	Site  = "site"
	// Happened is an entry in the timeline of events.
	Happened = "event"
)

// Event is one change.
type Event struct {
	ID   string // names its place among all events of this process
	Kind string
	Data []byte // JSON on one line
}

const (
	// maxClients is how many may listen at once; each costs a connection and a
	// few kilobytes.
	maxClients = 1000
	// queueLength is how many events may wait for one client. One that is slower
	// is let go, and comes back for the rest with the id of its last event.
	queueLength = 64
	// recentEvents is how many events are kept for those who come back.
	recentEvents = 1024
	// pollInterval is how often changes are looked for while somebody listens, and
	// pollGap is the least time between two looks, however much is heard of.
	pollInterval = 500 * time.Millisecond
	pollGap      = 100 * time.Millisecond
	// linger is how long changes are looked for after the last client has gone:
	// as a rule it was cut off, and comes back.
	linger = 2 * time.Minute
)

// Errors of Listen.
var (
	ErrFull   = errors.New("too many are listening")
	ErrClosed = errors.New("the manager is stopping")
)

// change is an event before it has a place.
type change struct {
	kind string
	data any
}

// source finds out what has changed since it was asked last. The first call
// only remembers how things stand.
type source interface {
	changes(ctx context.Context) ([]change, error)
	// listen calls heard when it may be worth to ask before it is time to, until
	// the context ends.
	listen(ctx context.Context, heard func())
	forget()
}

// Hub hands events to clients. It is safe for concurrent use.
type Hub struct {
	source source
	log    *slog.Logger
	run    string // of this process: ids of another one mean nothing here
	wake   chan struct{}

	mu      sync.Mutex
	clients map[*Client]struct{}
	last    uint64  // number of the latest event
	recent  []Event // the latest ones, without gaps, up to last
	looking bool    // the source knows how things stand
	quiet   time.Time
	closed  bool
}

// Client is one who listens.
type Client struct {
	hub *Hub
	// Missed are the events since the client was here last.
	Missed []Event
	// Events is closed when the client is let go.
	Events chan Event
}

func newHub(s source, log *slog.Logger) *Hub {
	return &Hub{source: s, log: log, run: rand.Text()[:8], wake: make(chan struct{}, 1), clients: map[*Client]struct{}{}}
}

// Run looks for changes while somebody listens, until the context ends.
func (h *Hub) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			h.look(ctx)
		}
	}
}

// look polls, and does so at once when something is heard, until nobody has
// listened for a while.
func (h *Hub) look(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	heard, stop := h.hear(ctx)
	defer stop()
	faulty := false
	for !h.forsaken(time.Now()) {
		err := h.poll(ctx)
		if err != nil && !faulty && ctx.Err() == nil {
			h.log.Warn("live pages do not see changes", "err", err)
		}
		faulty = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollGap):
		}
		select {
		case <-ctx.Done():
			return
		case <-heard:
		case <-ticker.C:
		}
	}
}

// hear listens to the source in the background until stop has been called.
func (h *Hub) hear(ctx context.Context) (heard <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hints, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		h.source.listen(ctx, func() {
			select {
			case hints <- struct{}{}:
			default: // there will be a look anyway
			}
		})
	}()
	return hints, func() { cancel(); <-done }
}

func (h *Hub) poll(ctx context.Context) error {
	changes, err := h.source.changes(ctx)
	if err != nil {
		return err // what has changed is found the next time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.looking {
		// Only now it is known from when on nothing is missed.
		h.looking = true
		changes = append([]change{{Reset, struct{}{}}}, changes...)
	}
	if len(changes) > queueLength {
		// As many at once would be too much for every client.
		changes = []change{{Reset, struct{}{}}}
	}
	for _, c := range changes {
		h.publish(c)
	}
	return nil
}

// publish hands an event to everybody. h.mu is held.
func (h *Hub) publish(c change) {
	data, err := json.Marshal(c.data)
	if err != nil {
		h.log.Error("tell a change", "kind", c.kind, "err", err)
		return
	}
	h.last++
	event := Event{ID: h.id(h.last), Kind: c.kind, Data: data}
	if h.recent = append(h.recent, event); len(h.recent) > recentEvents {
		h.recent = append(h.recent[:0:0], h.recent[recentEvents/4:]...)
	}
	for client := range h.clients {
		select {
		case client.Events <- event:
		default:
			h.drop(client)
		}
	}
}

// forsaken reports whether nobody listens any more. What is known is forgotten
// then: whoever comes later begins anew.
func (h *Hub) forsaken(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) > 0 || now.Sub(h.quiet) < linger {
		return false
	}
	h.source.forget()
	h.looking, h.recent = false, nil
	return true
}

// Listen adds a client. lastID is the id of the last event it got, or empty.
func (h *Hub) Listen(lastID string) (*Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case len(h.clients) >= maxClients:
		return nil, ErrFull
	}
	c := &Client{hub: h, Events: make(chan Event, queueLength)}
	missed, known := h.since(lastID)
	switch {
	case known:
		c.Missed = missed
	case h.looking:
		c.Missed = []Event{{ID: h.id(h.last), Kind: Reset, Data: []byte("{}")}}
	default: // the first look at the source publishes a Reset
	}
	h.clients[c] = struct{}{}
	select {
	case h.wake <- struct{}{}:
	default: // it is awake, or will be
	}
	return c, nil
}

// since returns the events after one. known is false if it is not told any more
// what came after it.
func (h *Hub) since(id string) (missed []Event, known bool) {
	run, digits, _ := strings.Cut(id, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	first := h.last - uint64(len(h.recent)) // the last event before the recent ones
	if err != nil || run != h.run || !h.looking || number < first || number > h.last {
		return nil, false
	}
	return append([]Event(nil), h.recent[number-first:]...), true
}

func (h *Hub) id(number uint64) string { return h.run + "-" + strconv.FormatUint(number, 10) }

// Close lets all clients go and takes no more.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for client := range h.clients {
		h.drop(client)
	}
}

// Leave is for the client itself.
func (c *Client) Leave() {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.drop(c)
}

// drop lets a client go. h.mu is held.
func (h *Hub) drop(c *Client) {
	if _, here := h.clients[c]; !here {
		return
	}
	delete(h.clients, c)
	close(c.Events)
	h.quiet = time.Now()
}
