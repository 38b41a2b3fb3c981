package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

// Services are the schemes of the URLs of targets. Left out is what is no use
// here, and what asks its server while a URL is only being checked.
var Services = []string{
	"bark", "discord", "generic", "googlechat", "gotify", "mattermost", "notifiarr", "ntfy", "opsgenie", "pagerduty",
	"pushbullet", "pushover", "rocketchat", "signal", "slack", "smtp", "teams", "telegram", "zulip",
}

// maxURL is more than any service needs, in bytes.
const maxURL = 4 << 10

// checkURL refuses a URL that no message can be sent to, with an
// *store.InvalidError of "url". It asks nobody.
func checkURL(target string) error {
	_, err := serviceOf(target)
	if err == nil {
		return nil
	}
	return &store.InvalidError{Fields: map[string]string{"url": redact(target, err.Error())}}
}

// ServiceName is the service that a URL names: all of it that may be shown.
func ServiceName(target string) string {
	scheme, _, _ := strings.Cut(target, ":")
	scheme, _, _ = strings.Cut(scheme, "+")
	return strings.ToLower(scheme)
}

// serviceOf makes a sender of a URL.
func serviceOf(target string) (types.Service, error) {
	if len(target) > maxURL {
		return nil, fmt.Errorf("it is longer than %d bytes", maxURL)
	}
	parsed, err := url.Parse(target)
	if err != nil {
		return nil, errors.New("it is not a URL such as smtp://user:password@mail.example.com:587/?from=a@example.com&to=b@example.com or ntfy://ntfy.example.com/topic")
	}
	name := ServiceName(target)
	if !slices.Contains(Services, name) {
		return nil, fmt.Errorf("%q is not a service: one of %s", name, strings.Join(Services, ", "))
	}
	service, err := (&router.ServiceRouter{}).NewService(name)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != name {
		custom, ok := service.(types.CustomURLService)
		if !ok {
			return nil, fmt.Errorf("%s has no form %s", name, parsed.Scheme)
		}
		if parsed, err = custom.GetConfigURLFromCustom(parsed); err != nil {
			return nil, err
		}
	}
	if err := service.Initialize(parsed, quiet); err != nil {
		return nil, err
	}
	return service, nil
}

// quiet drops what services say of their work: it is full of secrets.
var quiet = log.New(io.Discard, "", 0)

// Send sends a message to the URL of a target. It waits until the context ends.
// The error has no secret of the URL.
func Send(ctx context.Context, target string, message Message) error {
	return new(sender).send(ctx, target, message)
}

// sender sends one message at a time to each URL. The library cannot be told to
// stop, and some of its services wait without end for a server that is silent:
// what was not answered in time goes on, but not twice.
type sender struct{ underWay sync.Map }

func (s *sender) send(ctx context.Context, target string, message Message) error {
	service, err := serviceOf(target)
	if err != nil {
		return errors.New(redact(target, err.Error()))
	}
	params := types.Params{}
	params.SetTitle(message.Title)
	if _, busy := s.underWay.LoadOrStore(target, true); busy {
		return errors.New("no answer to the message before, which is still being sent")
	}
	done := make(chan error, 1)
	go func() {
		err := sendBy(service, target, message.Body, &params)
		s.underWay.Delete(target)
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = errors.New("no answer in time")
	}
	if err == nil {
		return nil
	}
	return errors.New(redact(target, err.Error()))
}

// sendBy makes an error of a panic of the library.
func sendBy(service types.Service, target, body string, params *types.Params) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the service %s broke off: %v", ServiceName(target), cause)
		}
	}()
	return service.Send(body, params)
}

// maxError is how much of an error is kept, in bytes.
const maxError = 500

// addresses are URLs within an error; their paths and queries are often the
// secret itself.
var addresses = regexp.MustCompile(`([a-z0-9+]+://)(?:[^\s"'/@]*@)?([^\s"'/?]*)[^\s"']*`)

// redact takes the secrets of a URL out of an error. What is no longer than a
// few characters, and the host, are left: nobody can see anything otherwise.
func redact(target, text string) string {
	text = addresses.ReplaceAllString(text, "$1$2/…")
	for _, secret := range secrets(target) {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return prose.Cut(plain(text), maxError)
}

// secrets are the parts of a URL that may be one: all but the host of services
// that have one, and the addresses of a mail.
func secrets(target string) []string {
	const short = 5
	parsed, err := url.Parse(target)
	if err != nil {
		return strings.FieldsFunc(target, func(r rune) bool { return strings.ContainsRune("/?&=@: ", r) })
	}
	var list []string
	add := func(parts ...string) {
		for _, part := range parts {
			if len(part) >= short {
				list = append(list, part, url.QueryEscape(part), url.PathEscape(part))
			}
		}
	}
	if parsed.User != nil {
		password, _ := parsed.User.Password()
		add(password, parsed.User.Username())
	}
	if name := ServiceName(target); name != "smtp" && name != "generic" && name != "ntfy" && name != "gotify" && name != "mattermost" && name != "rocketchat" {
		add(parsed.Host)
	}
	if ServiceName(target) != "ntfy" || parsed.User == nil {
		add(strings.Split(parsed.Path, "/")...)
	}
	for name, values := range parsed.Query() {
		if name = strings.ToLower(name); !strings.HasPrefix(name, "to") && !strings.HasPrefix(name, "from") || name == "token" {
			add(values...)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}
