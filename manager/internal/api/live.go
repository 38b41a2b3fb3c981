package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/live"
	"opensource.internal/manager/internal/store"
)

const (
	// liveBeat is how often something is written at least: proxies cut off what
	// is silent for a minute.
	liveBeat = 15 * time.Second
	// liveRecheck is how often the credentials of a stream are looked at again.
	liveRecheck = 3 * time.Second
	// liveWrite bounds one write to a client that does not read.
	liveWrite = 10 * time.Second
)

// live answers with a stream of server-sent events
// (html.spec.whatwg.org/multipage/server-sent-events.html) that ends when the
// client goes, is too slow, may not read any more, or the manager stops.
func (a *API) live(c *gin.Context) {
	client, err := a.hub.Listen(c.GetHeader("Last-Event-ID"))
	if err != nil {
		Refuse(c.Writer, c.Request, liveRefused(err))
		return
	}
	defer client.Leave()
	header := c.Writer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no") // nginx hands on at once what it gets
	stream := &eventStream{w: c.Writer, control: http.NewResponseController(c.Writer)}
	// The server's limits are for requests that end.
	if err := stream.control.SetReadDeadline(time.Time{}); err != nil {
		a.log.ErrorContext(c, "live stream", "err", err)
	}
	if stream.write("retry: 2000\n: connected\n\n") == nil {
		a.stream(c.Request, client, stream)
	}
}

func liveRefused(err error) error {
	if errors.Is(err, live.ErrFull) || errors.Is(err, live.ErrClosed) {
		return &Error{
			Status: http.StatusServiceUnavailable, Code: "no_live_stream", Message: err.Error(),
			Header: http.Header{"Retry-After": {"5"}},
		}
	}
	return err
}

// stream writes events until there is a reason to end.
func (a *API) stream(r *http.Request, client *live.Client, stream *eventStream) {
	for _, event := range client.Missed {
		if stream.event(event) != nil {
			return
		}
	}
	beat, recheck := time.NewTicker(liveBeat), time.NewTicker(liveRecheck)
	defer beat.Stop()
	defer recheck.Stop()
	for {
		var err error
		select {
		case event, open := <-client.Events:
			if !open {
				return
			}
			err = stream.event(event)
		case <-beat.C:
			err = stream.write(": still here\n\n")
		case <-recheck.C:
			err = a.mayStillRead(r)
		case <-r.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// mayStillRead looks at the credentials of a request anew. That the database
// does not answer takes no rights away.
func (a *API) mayStillRead(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), databaseTimeout)
	defer cancel()
	who, err := a.auth.Again(r.WithContext(ctx))
	switch {
	case store.Unavailable(err):
		return nil
	case err == nil && !who.Role.CanRead():
		return auth.ErrForbidden
	}
	return err
}

// eventStream writes and hands on at once.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *eventStream) event(e live.Event) error {
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, e.Data))
}

func (s *eventStream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// describeLive adds the stream to the description. It is no typed handler like
// the others, so its parts are named here.
func describeLive(description *huma.OpenAPI) {
	text := &huma.Schema{Type: huma.TypeString}
	listen := huma.Operation{
		OperationID: "get-live", Method: http.MethodGet, Path: "/live", Tags: []string{"live"},
		Summary: "Listen to changes, as server-sent events",
		Description: "`reset` comes first and means that anything may have changed; `site` has the data " +
			"`{\"id\", \"etag\"}`, `agent` `{\"id\", \"siteId\"}`, `event` `{\"id\", \"siteId\", \"agentId\", \"kind\"}`. Each says that something is different: read it anew. " +
			"A client that comes back with the id of its last event gets what it has missed, or `reset`.",
		Parameters: []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "The id of the last event the client got", Schema: text}},
		Responses: map[string]*huma.Response{
			"200": {Description: "The stream", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: text}}},
		},
	}
	addFaults(&listen, []string{"unauthorized", "forbidden", "too_many_requests", "internal_error", "no_live_stream", "unavailable"})
	description.AddOperation(&listen)
}
