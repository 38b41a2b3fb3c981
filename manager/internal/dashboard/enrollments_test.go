package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// TestEnrollmentsInABrowser: the list of commands follows, and each of them can be
// told from the others and revoked.
func TestEnrollmentsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/sites/1/enroll")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.fill(t, "hostname", "half-a-na")
	longest := strings.Repeat(strings.Repeat("l", 62)+".", 4) + "l"
	open := enrollment(t, s, store.Enrollment{SiteID: site, Hostname: longest, CreatedBy: strings.Repeat("\u202e<img src=x onerror=alert(1)>", 4)})
	b.reads(t, longest)
	if got := eval[string](t, b, `document.querySelector("[name=hostname]").value`); got != "half-a-na" {
		t.Errorf("what is typed became %q", got)
	}
	enrollment(t, s, store.Enrollment{SiteID: site, CreatedBy: "ada"})
	b.until(t, `document.querySelectorAll("tbody tr").length === 2`)
	if got := eval[int](t, b, `new Set([...document.querySelectorAll("td button")].map((e) => e.getAttribute("aria-label"))).size`); got != 2 {
		t.Errorf("%d names for 2 buttons", got)
	}
	if got := eval[string](t, b, `document.querySelector("td time").textContent`); got != "just now" && !strings.HasSuffix(got, "ago") {
		t.Errorf("it was made %q", got)
	}
	if got := eval[int](t, b, `Math.max(...[...document.querySelectorAll("td button")].map((e) => e.getClientRects()[0].height))`); got > 40 {
		t.Errorf("a button is %d pixels high: its word is broken", got)
	}
	looked(t, b, "enrollments")
	b.press(t, longest)
	b.reads(t, "is known nowhere else")
	looked(t, b, "enrollment-elsewhere")
	b.press(t, "Revoke")
	b.reads(t, "The command was revoked. It does nothing any more.")
	b.until(t, `document.querySelectorAll("tbody tr").length === 1`)
	b.open(t, fmt.Sprintf("/enrollments/%d", open))
	b.reads(t, "The command was revoked.")
	looked(t, b, "enrollment-revoked")
}

// TestAnEnrollmentThatIsOver says why, and leads to another one.
func TestAnEnrollmentThatIsOver(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	b := browse(t, s, signIn(t, s))
	past := time.Now().Add(-time.Hour)
	b.open(t, fmt.Sprintf("/enrollments/%d", enrollment(t, s, store.Enrollment{SiteID: site, CreatedBy: "ada", ExpiresAt: past})))
	b.reads(t, "The command has expired. Nobody has used it.")
	looked(t, b, "enrollment-expired")
	b.press(t, "Make another one")
	b.reads(t, "Show the command")

	host := strings.Repeat("long-host-name.", 16) + "example"
	b.open(t, fmt.Sprintf("/enrollments/%d", enrollment(t, s, store.Enrollment{SiteID: site, CreatedBy: "ada", UsedAt: &past, UsedBy: host})))
	b.reads(t, "The host "+host+" ran the command")
	b.reads(t, "journalctl -u opensource-agent")
	looked(t, b, "enrollment-used")
}

// enrollment stores one that nobody knows the token of, and returns its id.
func enrollment(t *testing.T, s *servertest.Server, row store.Enrollment) int64 {
	t.Helper()
	row.Prefix, row.Hash, row.CreatedAt = t.Name()+time.Now().String(), []byte{1}, time.Now()
	if row.ExpiresAt.IsZero() {
		row.ExpiresAt = time.Now().Add(time.Hour)
	}
	if err := s.Store.CreateEnrollment(t.Context(), &row); err != nil {
		t.Fatal(err)
	}
	return row.ID
}
