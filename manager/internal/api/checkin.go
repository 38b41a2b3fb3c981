package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// CheckInOptions are what NewCheckIn needs.
type CheckInOptions struct {
	Store     *store.Store
	Snapshots *snapshot.Cache
	// Authorize decides whether a request may check in as somebody, as of the
	// given versions; nil if the database could not be asked. A request without
	// credentials may only if it comes from this host.
	Authorize func(r *http.Request, as auth.CheckIn, versions *store.Versions) error
	Log       *slog.Logger
	// Now is time.Now if nil.
	Now func() time.Time
}

// CheckIn answers POST /api/v1/agents. It is a plain handler and not a typed
// one like the rest of the API: it is the path that every agent takes every
// 30 seconds, and, unlike for people's requests, unknown fields are welcome.
//
// A known agent that says nothing new, and has what it is to run, costs no write
// and no query, only a look at whether the database has changed.
// docs/development/architecture.md draws the way of a check-in.
type CheckIn struct {
	store     *store.Store
	snapshots *snapshot.Cache
	authorize func(*http.Request, auth.CheckIn, *store.Versions) error
	log       *slog.Logger
	now       func() time.Time
	known     knownAgents
	odd       oddReports
}

// NewCheckIn returns the handler of check-ins.
func NewCheckIn(o CheckInOptions) *CheckIn {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &CheckIn{store: o.Store, snapshots: o.Snapshots, authorize: o.Authorize, log: o.Log, now: o.Now}
}

// databaseTimeout bounds the wait for the database of every request. An agent
// waits ten seconds.
const databaseTimeout = 8 * time.Second

// ServeHTTP implements http.Handler.
func (h *CheckIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	versions, broken := h.look(r.Context())
	told, err := h.admit(w, r, versions)
	if err != nil {
		Refuse(w, r, err)
		return
	}
	h.odd.tell(h.log, told)
	current, err := h.take(r, told, versions, broken)
	switch {
	case errors.Is(err, store.ErrNotFound) && !carriesCredentials(r):
		// Only an agent on this host comes so far without credentials: the
		// manager is fresh, and its site will be described soon.
		answerBootstrap(w)
	case errors.Is(err, store.ErrNotFound):
		Refuse(w, r, &Error{Status: http.StatusNotFound, Code: "site_not_found", Message: "there is no site " + strconv.FormatInt(told.siteID, 10) + ": check SITE_ID"})
	case err != nil:
		Refuse(w, r, unavailable(err))
	default:
		answerSnapshot(w, r, told, current)
	}
}

// look asks the database once per check-in what has changed, for credentials
// and snapshot alike. The versions are nil if it does not answer.
func (h *CheckIn) look(ctx context.Context) (*store.Versions, error) {
	versions, err := h.store.Versions(ctx)
	if err != nil {
		return nil, err
	}
	return &versions, nil
}

// admit reads a check-in of somebody who may send it. For which site that is
// only the body says, but a stranger's is not even read.
func (h *CheckIn) admit(w http.ResponseWriter, r *http.Request, versions *store.Versions) (*told, error) {
	if err := h.authorize(r, auth.CheckIn{}, versions); isStranger(err) && !mayBeOwnAgent(r) {
		return nil, err
	}
	told, err := readCheckIn(w, r)
	if err != nil {
		return nil, err
	}
	told.at = h.now().UTC()
	return told, h.authorize(r, auth.CheckIn{SiteID: told.siteID, Hostname: told.hostname}, versions)
}

// isStranger reports whether a refusal does not depend on what a check-in says.
func isStranger(err error) bool {
	var tooMany *auth.TooManyError
	return errors.Is(err, auth.ErrUnauthorized) || errors.As(err, &tooMany)
}

// mayBeOwnAgent reports whether a request without credentials comes from this
// host, whose agent may need none.
func mayBeOwnAgent(r *http.Request) bool {
	return !carriesCredentials(r) && auth.FromThisHost(r)
}

func carriesCredentials(r *http.Request) bool {
	return len(r.Header["Authorization"]) > 0 || len(r.Header["X-Api-Key"]) > 0
}

// take keeps what a check-in tells and returns the snapshot it is answered
// with. What it tells is committed by then.
func (h *CheckIn) take(r *http.Request, told *told, versions *store.Versions, broken error) (*snapshot.Current, error) {
	if versions == nil {
		return h.takeWithoutDatabase(r, told, broken)
	}
	h.known.forgetDeleted(versions.Agents)
	if current := h.snapshots.Held(told.siteID, *versions); current != nil && h.beat(r, told, current) {
		return current, nil
	}
	return h.takeNews(r, told, versions)
}

// takeWithoutDatabase lets an agent that is up to date, and has nothing new to
// tell, know that it is. Everything else has to wait for the database.
func (h *CheckIn) takeWithoutDatabase(r *http.Request, told *told, cause error) (*snapshot.Current, error) {
	current := h.snapshots.Last(told.siteID)
	if current == nil || !upToDate(r, told, current) || !h.beat(r, told, current) {
		return nil, cause
	}
	return current, nil
}

// beat notes the heartbeat of a known agent that says nothing new and has what it
// would be given, in memory.
// It reports whether that was all there was to do.
func (h *CheckIn) beat(r *http.Request, told *told, current *snapshot.Current) bool {
	if results, foreign := newResults(told, current); len(results)+len(foreign) > 0 || h.fetches(r, told, current) != "" {
		return false
	}
	known, same := h.known.saysNothingNew(told.key(), told.report)
	if !same {
		return false
	}
	taken := h.store.Beat(store.Heartbeat{
		AgentID: known.id, At: told.at, PeerAddress: peerOf(r), ClockSkewMS: told.clockSkewMS(), Report: told.report, Told: known.told,
	})
	if !taken {
		h.known.forget(told.key()) // another manager knows better
	}
	return taken
}

// takeNews does what needs the database: build a changed snapshot, find out
// what an agent said before this manager started, record what is new.
func (h *CheckIn) takeNews(r *http.Request, told *told, versions *store.Versions) (*snapshot.Current, error) {
	ctx, cancel := context.WithTimeout(r.Context(), databaseTimeout)
	defer cancel()
	current, err := h.snapshots.At(ctx, told.siteID, *versions)
	if err != nil {
		return nil, err
	}
	results, foreign := newResults(told, current)
	if len(foreign) > 0 {
		h.log.Warn("ignored results for volumes that are not of the agent's site",
			"site", told.siteID, "agent", told.hostname, "volumes", foreign[:min(len(foreign), 20)], "total", len(foreign))
		told.forget(foreign)
	}
	h.recall(ctx, told, versions.Agents)
	if h.beat(r, told, current) {
		return current, nil
	}
	if err := h.record(ctx, r, told, results, h.fetches(r, told, current), versions.Agents); err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return current, nil
	}
	if versions, err = h.look(ctx); err != nil {
		return nil, err
	}
	return h.snapshots.At(ctx, told.siteID, *versions)
}

// recall asks the database what an agent said before this manager started. One
// that is not found is new, and a fault shows when it is recorded.
func (h *CheckIn) recall(ctx context.Context, told *told, deletions uint64) {
	if h.known.has(told.key()) {
		return
	}
	if agent, err := h.store.FindAgent(ctx, told.siteID, told.hostname); err == nil {
		h.known.add(told.key(), deletions, agent, &agent.Report.Request)
	}
}

// record keeps a check-in that says something new, or is given it.
func (h *CheckIn) record(ctx context.Context, r *http.Request, told *told, results map[int64]checkin.VolumeReport, fetched string, deletions uint64) error {
	agent, err := h.store.RecordCheckIn(ctx, store.CheckIn{
		SiteID: told.siteID, Hostname: told.hostname, At: told.at, PeerAddress: peerOf(r),
		ClockSkewMS: told.clockSkewMS(), Report: *told.report, Volumes: results, Fetched: fetched,
	})
	if err != nil {
		return err
	}
	h.known.add(told.key(), deletions, agent, told.report)
	return nil
}

// fetches is the tag of the snapshot that an agent is given with this check-in for
// the first time; empty if there is none.
func (h *CheckIn) fetches(r *http.Request, told *told, current *snapshot.Current) string {
	if has(r, current) || h.known.wasGiven(told.key(), current.ETag) {
		return ""
	}
	return current.ETag
}

// newResults are the volume results that differ from what is known, and the ids
// of those that are not for volumes of the site.
func newResults(told *told, current *snapshot.Current) (results map[int64]checkin.VolumeReport, foreign []int64) {
	for id, report := range told.volumes {
		known, ours := current.Volumes[id]
		switch {
		case current.Moot[id]:
		case !ours:
			foreign = append(foreign, id)
		case known != resultOf(report):
			if results == nil {
				results = map[int64]checkin.VolumeReport{}
			}
			results[id] = report
		}
	}
	return results, foreign
}

func resultOf(report checkin.VolumeReport) snapshot.VolumeResult {
	status := store.VolumeFailed
	if report.Applied {
		status = store.VolumeReady
	}
	return snapshot.VolumeResult{Status: status, Message: report.Message}
}

// peerOf is the address the agent is shown with.
func peerOf(r *http.Request) string {
	var addr netip.Addr
	if addr = auth.RequestOf(r.Context()).Client; !addr.IsValid() {
		addr = auth.Peer(r)
	}
	if !addr.IsValid() {
		return ""
	}
	return addr.String()
}

// upToDate reports whether the agent may be told "not modified". While a
// volume waits for its result nothing may hide behind a 304, unless the agent
// says that it has this very snapshot and holds it back.
func upToDate(r *http.Request, told *told, current *snapshot.Current) bool {
	if guard := told.report.Guard; current.Pending > 0 && (guard == nil || !checkin.SameETag(guard.ETag, current.ETag)) {
		return false
	}
	return has(r, current)
}

// has reports whether the agent says that it has a snapshot.
func has(r *http.Request, current *snapshot.Current) bool {
	for _, tags := range r.Header["If-None-Match"] {
		if checkin.MatchETag(tags, current.ETag) {
			return true
		}
	}
	return false
}

func answerSnapshot(w http.ResponseWriter, r *http.Request, told *told, current *snapshot.Current) {
	header := w.Header()
	header["Etag"] = []string{current.ETag}
	if upToDate(r, told, current) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeJSON(w, current.Body)
}

func answerBootstrap(w http.ResponseWriter) {
	data, etag, err := checkin.Encode(checkin.Bootstrap())
	if err != nil {
		internalError(err).write(w)
		return
	}
	w.Header()["Etag"] = []string{etag}
	writeJSON(w, append(append([]byte(`{"data":`), data...), '}'))
}

func writeJSON(w http.ResponseWriter, body []byte) {
	header := w.Header()
	header["Content-Type"] = []string{"application/json"}
	header["Cache-Control"] = []string{"no-store"}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the client is gone if this fails
}

// unavailable is the answer while the database cannot be used: the agent keeps
// what it runs and comes again.
func unavailable(cause error) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the manager's database cannot be used at the moment",
		Header: http.Header{"Retry-After": {"30"}}, cause: cause,
	}
}
