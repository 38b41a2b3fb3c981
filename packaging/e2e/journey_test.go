//go:build e2e

package e2e

import (
	"regexp"
	"testing"

	"opensource.internal/e2e/internal/browser"
	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/network"
	"opensource.internal/e2e/internal/wait"
)

// journey is the way of somebody who has never seen the product: whatever is
// done is done on a page, and on hosts only what a page says.
type journey struct {
	site
	page *browser.Page
}

// TestJourney brings a first site online in the browser, breaks it by a domain
// with a slip in its name, finds out from the page what broke and why the rest
// still runs, and repairs it there.
func TestJourney(t *testing.T) {
	t.Parallel()
	j := bootJourney(t)
	for _, stage := range []struct {
		name string
		run  func(*testing.T, *journey)
	}{
		{"the first account", firstAccount},
		{"the first site", firstSite},
		{"its agent", connectAgent},
		{"a service", publishService},
		{"a slip", typeSlip},
		{"what the page tells", readFailure},
		{"the repair", repairInBrowser},
	} {
		if !t.Run(stage.name, func(t *testing.T) { stage.run(t, j) }) {
			t.Fatalf("the journey ends here; the agent's journal:\n%s", j.Journal("opensource-agent.service"))
		}
	}
}

// bootJourney boots a fresh manager, and a host with nothing of ours on it but
// the package in the administrator's folder. Somebody has prepared certificates
// there, and nginx to have a file of options for each domain.
func bootJourney(t *testing.T) *journey {
	wires := network.NewSwitch(t, "journey", "203.0.113.160/27")
	manager := &manager{URL: "http://" + wires.Host(3).String() + ":3000"}
	wires.Plug(t, "way-manager", wires.Host(3), "")
	wires.Plug(t, "way-edge", wires.Host(2), "")
	manager.Machine = machine.Boot(t, "way-manager", machine.Options{Suite: machine.Debian13, Namespace: "way-manager"})
	manager.Install(t, deb(t, "opensource-manager"))
	manager.Write(t, "/etc/opensource-manager/manager.env", "LISTEN=:3000\nPUBLIC_URL="+manager.URL+"\n", 0o640)
	manager.Run(t, "systemctl", "restart", "opensource-manager.service")

	j := &journey{site: site{
		Machine: machine.Boot(t, "way-edge", machine.Options{Suite: machine.Debian13, Namespace: "way-edge"}),
		manager: manager, authority: newAuthority(t), wires: wires, whole: t, webAddress: wires.Host(20),
	}}
	j.Copy(t, deb(t, "opensource-agent"))
	for _, m := range []*machine.Machine{j.Machine, manager.Machine} {
		m.Write(t, "/usr/local/bin/sudo", "#!/bin/sh\nexec \"$@\"\n", 0o755) // root is who runs the commands here
	}
	valid, until := lastMonthToNext()
	for i, domain := range []string{"example.test", "shop.test"} {
		j.putCertificate(t, domain, j.authority.issue(t, domain, int64(5001+i), valid, until))
		j.Write(t, "/etc/nginx/domains/"+domain+".conf", "# none yet\n", 0o644)
	}
	wires.Plug(t, "web-way", j.webAddress, "")
	serveHTTP(t, "web-way", j.webAddress.String()+":8080")
	j.page = browser.Open(t, manager.URL)
	return j
}

var setupCode = regexp.MustCompile(`\b[A-Z0-9]{5}(-[A-Z0-9]{5}){3}\b`)

func firstAccount(t *testing.T, j *journey) {
	j.page.WaitFor(t, "Set up this manager")
	j.page.Picture(t, "journey-01-setup")
	code := setupCode.FindString(j.manager.Run(t, "sh", "-c", j.page.Text(t, "show-code")))
	j.page.Type(t, "code", code)
	j.page.Type(t, "name", "ada")
	j.page.Type(t, "password", password)
	j.page.Type(t, "again", password)
	j.page.Click(t, "", "Create the account")
}

func firstSite(t *testing.T, j *journey) {
	j.page.WaitFor(t, "Create the site")
	j.page.Picture(t, "journey-02-first-site")
	j.page.Type(t, "name", "home")
	j.page.Click(t, "", "Create the site")
	j.page.WaitFor(t, "Connect an agent")
	j.page.Picture(t, "journey-03-connect")
}

// connectAgent runs the commands as the page has them, and looks on.
func connectAgent(t *testing.T, j *journey) {
	j.page.Click(t, "", "Show the command")
	j.page.WaitFor(t, "Waiting for the first check-in…")
	j.page.Picture(t, "journey-04-command")
	install, enroll := j.page.Text(t, "install"), j.page.Text(t, "command")
	j.page.Stays(t, func() {
		j.Run(t, "sh", "-c", "cd /root && "+install+" && "+enroll)
		j.override(t, "nginx/domain.tmpl", "ssl_certificate ", "include /etc/nginx/domains/{{.Name}}.conf;\n        ssl_certificate ")
		j.page.WaitLong(t, passInterval, "The site is connected.")
	})
	j.page.Picture(t, "journey-05-connected")
}

func publishService(t *testing.T, j *journey) {
	j.page.Click(t, "", "Describe the site's containers")
	j.page.Click(t, "", "New container")
	j.page.Click(t, "", "Create the first node")
	j.page.Type(t, "name", "pve1")
	j.page.Click(t, "", "Create the node")
	j.page.Type(t, "hostname", "web")
	j.page.Type(t, "ipv4Address", j.webAddress.String())
	j.page.Click(t, "", "Create the container")
	j.page.WaitFor(t, `The container "web" was created`)
	j.page.Picture(t, "journey-06-container")
	j.page.Click(t, "", "Add a service")
	j.page.Click(t, "", "Create the first domain")
	j.page.Type(t, "name", "example.test")
	j.page.Click(t, "", "Create the domain")
	j.describeService(t, "app", "example.test")
	wait.For(t, passInterval, "the first page", func() error { return j.serves("app.example.test", j.backend(8080)) })
	j.page.Click(t, "", "Agents")
	j.page.WaitFor(t, "in sync")
	j.page.Picture(t, "journey-07-in-sync")
}

func (j *journey) describeService(t *testing.T, host, domain string) {
	t.Helper()
	j.page.Type(t, "externalHostname", host)
	j.page.Type(t, "externalDomainId", domain)
	j.page.Type(t, "internalPort", "8080")
	j.page.Click(t, "", "Add the service")
	j.page.WaitFor(t, "The service was added")
}

// typeSlip types a domain's name twice wrong. Of the first one the form says so;
// the second could be a name, and only nginx knows better.
func typeSlip(t *testing.T, j *journey) {
	j.page.Click(t, "", "Domains")
	j.page.Click(t, "", "New domain")
	j.page.Type(t, "name", "shop,test")
	j.page.Click(t, "", "Create the domain")
	j.page.WaitFor(t, "is not a domain name")
	j.page.Picture(t, "journey-08-not-a-name")
	j.page.Type(t, "name", "shpo.test")
	j.page.Type(t, "defaultSiteId", "home")
	j.page.Click(t, "", "Create the domain")
	j.page.WaitFor(t, "The domain shpo.test was created")
	j.page.Picture(t, "journey-09-domain")
	for _, link := range []string{"Sites", "home", "1 container", "web", "Add a service"} {
		j.page.Click(t, "", link)
	}
	j.describeService(t, "www", "shpo.test")
}

func readFailure(t *testing.T, j *journey) {
	j.page.Click(t, "", "Agents")
	j.page.WaitLong(t, passInterval, "1 left out")
	j.page.Picture(t, "journey-09-agents")
	j.page.Click(t, "", j.Name)
	for _, words := range []string{
		`open() "/etc/nginx/domains/shpo.test.conf" failed (2: No such file or directory)`,
		"include /etc/nginx/domains/shpo.test.conf;",
		"made by a template of the host's own",
	} {
		j.page.WaitFor(t, words)
	}
	j.page.Picture(t, "journey-10-agent")
	if err := j.serves("app.example.test", j.backend(8080)); err != nil {
		t.Errorf("the rest: %v", err)
	}
}

func repairInBrowser(t *testing.T, j *journey) {
	j.page.Click(t, "", "external domain shpo.test")
	j.page.Click(t, "", "Edit")
	j.page.Type(t, "name", "shop.test")
	j.page.Click(t, "", "Save")
	j.page.WaitFor(t, "Name: shop.test (was: shpo.test)")
	j.page.Picture(t, "journey-11-repaired")
	j.page.Click(t, "", "Agents")
	j.page.WaitLong(t, passInterval, "in sync")
	for _, name := range []string{"app.example.test", "www.shop.test"} {
		wait.For(t, passInterval, name, func() error { return j.serves(name, j.backend(8080)) })
	}
	j.page.Picture(t, "journey-12-in-sync")
}
