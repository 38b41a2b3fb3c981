package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

func enrollPath(siteID int64) string { return sitePath(siteID) + "/enroll" }
func enrollmentPath(id int64) string { return fmt.Sprintf("/enrollments/%d", id) }

// tokenCookie keeps the text of a new token in the browser of who made it, for as
// long as it takes to copy it: the manager does not know it any more.
const (
	tokenCookie = "opensource_manager_token"
	tokenShown  = 10 * time.Minute
)

type wantedEnrollment struct{ Hostname, ExpiresIn string }

func enrollmentFields(e *wantedEnrollment) []*field {
	return []*field{
		text("hostname", "Host name", &e.Hostname).hint("The only host that may use the command. If empty, any host may, once"),
		choice("expiresIn", "The command works for", &e.ExpiresIn, option{"1h", "1 hour"}, option{"24h", "1 day"}, option{"168h", "7 days"}),
	}
}

// enrollmentsView is where a site gets its agent.
type enrollmentsView struct {
	Site   store.Site
	Form   *form
	Agents []siteAgent
	Open   []enrollmentRow
}

type enrollmentRow struct {
	ID      int64
	For, By string
	Made    cell
	Expires cell
}

// enrollments makes the command that makes a host the agent of a site, and lists
// those that nobody has used yet.
func (d *dashboard) enrollments(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	view := enrollmentsView{Site: site}
	if view.Open, err = d.openEnrollments(v, site.ID); err != nil {
		return err
	}
	agents, _, err := d.store.ListAgents(v.Request.Context(), store.AgentFilter{SiteID: site.ID}, store.ListOptions{Limit: pageSize})
	if err != nil {
		return err
	}
	if view.Agents, err = d.describeSiteAgents(v, site.ID, agents); err != nil {
		return err
	}
	wanted := wantedEnrollment{ExpiresIn: "1h"}
	view.Form = &form{Fields: enrollmentFields(&wanted), Submit: "Show the command", Cancel: sitePath(site.ID)}
	p := v.page("Connect an agent", "/sites", sitesCrumb, siteCrumb(site))
	if v.Request.Method != http.MethodPost {
		p.Topics, p.Every = siteTopics(site.ID), agentsEvery
		return v.show(http.StatusOK, p, enrollmentsPage(p, view))
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	_ = view.Form.read(typed) // texts can be anything
	row, err := d.enroll(v, site.ID, wanted)
	if status := view.Form.refused(err); status != 0 {
		return v.show(status, p, enrollmentsPage(p, view))
	}
	if err != nil {
		return err
	}
	return v.goTo(enrollmentPath(row.ID), "")
}

// enroll makes a token, and leaves it with the browser.
func (d *dashboard) enroll(v *visit, siteID int64, wanted wantedEnrollment) (store.Enrollment, error) {
	span, err := time.ParseDuration(wanted.ExpiresIn)
	if err != nil {
		return store.Enrollment{}, &auth.FieldError{Field: "expiresIn", Err: errors.New("choose one of the list")}
	}
	token, row, err := auth.CreateEnrollment(v.Request.Context(), d.store, auth.NewEnrollment{
		SiteID: siteID, Hostname: wanted.Hostname, ExpiresIn: span, CreatedBy: v.Who.Name,
	})
	if err != nil {
		return store.Enrollment{}, err
	}
	http.SetCookie(v.Writer, d.cookie(tokenCookie, token, d.prefix+enrollmentPath(row.ID), tokenShown))
	return row, nil
}

func (d *dashboard) openEnrollments(v *visit, siteID int64) ([]enrollmentRow, error) {
	rows, _, err := d.store.ListEnrollments(v.Request.Context(), store.EnrollmentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All, Sort: "-createdAt"})
	if err != nil {
		return nil, err
	}
	var open []enrollmentRow
	for _, e := range rows {
		if e.UsedAt == nil && e.RevokedAt == nil && e.ExpiresAt.After(v.Now) {
			open = append(open, enrollmentRow{e.ID, cmp.Or(e.Hostname, "any host"), e.CreatedBy, v.when(&e.CreatedAt), v.when(&e.ExpiresAt)})
		}
	}
	return open, nil
}

// enrollmentView is one token: the command as long as its browser knows it, and
// how far the host has come.
type enrollmentView struct {
	ID      int64
	Site    store.Site
	Command string
	Warning string // about the address in the command
	For     string // the only host that may use it
	Until   string
	Steps   []milestone
	Over    string // why it cannot be used any more, though nobody did
	Agent   *siteAgent
}

// milestone is one of those on the way to an agent. One that is not done is waited for.
type milestone struct {
	Text string
	Done bool
}

func (d *dashboard) enrollment(v *visit) error {
	site, e, err := d.enrollmentOf(v)
	if err != nil {
		return err
	}
	view := enrollmentView{ID: e.ID, Site: site, For: e.Hostname, Until: e.ExpiresAt.UTC().Format(humanTime)}
	switch {
	case e.UsedAt != nil:
		if view.Agent, err = d.agentSince(v, site.ID, e.UsedBy, *e.UsedAt); err != nil {
			return err
		}
	case e.RevokedAt != nil:
		view.Over = "The command was revoked."
	case !e.ExpiresAt.After(v.Now):
		view.Over = "The command has expired. Nobody has used it."
	default:
		view.Command, view.Warning = d.enrollCommand(v)
	}
	view.Steps = enrollmentSteps(e, view.Agent)
	p := v.page("Connect an agent", "/sites", sitesCrumb, siteCrumb(site))
	p.Topics, p.Every = []string{"agents", fmt.Sprintf("site:%d", site.ID)}, 3*time.Second
	return v.show(http.StatusOK, p, enrollmentPage(p, view))
}

func enrollmentSteps(e store.Enrollment, agent *siteAgent) []milestone {
	steps := []milestone{{"Waiting for the command to be run on the host…", false}, {"Waiting for the first check-in…", false}}
	if e.UsedAt != nil {
		steps[0] = milestone{fmt.Sprintf("The host %s ran the command and has its own key.", e.UsedBy), true}
	}
	if agent != nil {
		steps[1] = milestone{"The agent has checked in.", true}
	}
	return steps
}

// agentSince is the agent on a host, nil before it has checked in after that time:
// the host may have been an agent before.
func (d *dashboard) agentSince(v *visit, siteID int64, host string, enrolled time.Time) (*siteAgent, error) {
	agents, _, err := d.store.ListAgents(v.Request.Context(), store.AgentFilter{SiteID: siteID, Hostname: host}, store.ListOptions{Limit: 1})
	if err != nil || len(agents) == 0 || agents[0].LastSeenAt.Before(enrolled) {
		return nil, err
	}
	shown := describeSiteAgent(v, agents[0])
	return &shown, nil
}

// enrollCommand is the command to be copied, empty if this browser does not know
// the token. Without PUBLIC_URL it names the address that the browser itself uses.
func (d *dashboard) enrollCommand(v *visit) (command, warning string) {
	cookie, err := v.Request.Cookie(tokenCookie)
	if err != nil {
		return "", ""
	}
	address := d.managerURL(v.Request)
	if d.publicURL == nil {
		warning = fmt.Sprintf("PUBLIC_URL is not set, so the command names the address that your browser uses, %s. The host has to reach the manager there.", address)
		if u, err := url.Parse(address); err == nil && isLoopback(u.Hostname()) {
			warning = fmt.Sprintf("PUBLIC_URL is not set, so the command names the address that your browser uses, %s. Only the manager's own host reaches that: set PUBLIC_URL to one that other hosts reach.", address)
		}
	}
	return auth.EnrollCommand(address, cookie.Value), warning
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func (d *dashboard) revokeEnrollment(v *visit) error {
	site, e, err := d.enrollmentOf(v)
	if err != nil {
		return err
	}
	if _, err := d.store.RevokeEnrollment(v.Request.Context(), e.ID); err != nil {
		return err
	}
	return v.goTo(enrollPath(site.ID), "The command was revoked. It does nothing any more.")
}

// enrollmentOf is the enrollment of the address, with its site.
func (d *dashboard) enrollmentOf(v *visit) (site store.Site, e store.Enrollment, err error) {
	id, err := v.id()
	if err != nil {
		return site, e, err
	}
	if e, err = d.store.GetEnrollment(v.Request.Context(), id); err != nil {
		return site, e, err
	}
	site, err = d.store.GetSite(v.Request.Context(), e.SiteID)
	return site, e, err
}
