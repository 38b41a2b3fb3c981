// Package enroll makes a host the agent of a site: it turns a token, which an
// administrator has made on the manager, into this host's own key, and writes
// key and settings to where the agent reads them.
package enroll

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/envfile"
	"opensource.internal/agent/internal/atomicfile"
)

// Options are what Run needs.
type Options struct {
	Client   *checkin.Client
	Token    string
	Hostname string
	// File is the environment file with the settings, and KeyFile where the key
	// is put; both on the host as the agent sees it, below Root.
	File, KeyFile string
	Root          string
	// CAFile is the authority of the manager's certificate, if it is to be kept.
	CAFile string
	// StateDirectory is where the nonce is kept until the key is stored.
	StateDirectory string
}

// ManagerError says that the manager did not answer, or refused.
type ManagerError struct{ error }

func (e *ManagerError) Unwrap() error { return e.error }

const (
	keyMode    = 0o600
	fileMode   = 0o640
	nonceFile  = "enrollment.json"
	tries      = 3
	pauseAfter = time.Second // the first try; twice as long after the next
)

// Run enrolls the host. Whatever goes wrong before the manager was asked costs
// no token; afterwards the same command may be run again for ten minutes.
func Run(ctx context.Context, o Options) (checkin.Enrolled, error) {
	if err := o.tryToWrite(); err != nil {
		return checkin.Enrolled{}, err
	}
	nonce, err := o.nonce()
	if err != nil {
		return checkin.Enrolled{}, err
	}
	enrolled, err := o.ask(ctx, checkin.EnrollRequest{Token: o.Token, Hostname: o.Hostname, Nonce: nonce})
	if err != nil {
		return checkin.Enrolled{}, &ManagerError{err}
	}
	if err := o.store(enrolled); err != nil {
		return checkin.Enrolled{}, fmt.Errorf("%w (then run the same command again within ten minutes)", err)
	}
	// Whoever finds it later cannot use it: the token is spent.
	_ = os.Remove(o.noncePath())
	return enrolled, nil
}

// tryToWrite finds out whether the answer could be stored.
func (o Options) tryToWrite() error {
	settings, err := o.settings(checkin.Enrolled{SiteID: 1, Key: "key"})
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path    string
		content []byte
		mode    fs.FileMode
	}{{o.Root + o.File, settings, fileMode}, {o.Root + o.KeyFile, make([]byte, 128), keyMode}} {
		if err := os.MkdirAll(filepath.Dir(file.path), 0o755); err != nil {
			return err
		}
		staged, err := atomicfile.Stage(file.path, file.content, file.mode)
		if err != nil {
			return err
		}
		if err := staged.Discard(); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the manager, a few times if there is no answer. It is the same
// request each time, which the manager can tell by the nonce.
func (o Options) ask(ctx context.Context, request checkin.EnrollRequest) (checkin.Enrolled, error) {
	for try, pause := 1, pauseAfter; ; try, pause = try+1, 2*pause {
		enrolled, err := o.Client.Enroll(ctx, request)
		var refused *checkin.RefusedError
		final := errors.As(err, &refused) && refused.Status < http.StatusInternalServerError
		if err == nil || final || try == tries {
			return enrolled, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return checkin.Enrolled{}, err
		}
	}
}

// store writes the key first: settings without it would be those of an agent
// that the manager does not know.
func (o Options) store(enrolled checkin.Enrolled) error {
	settings, err := o.settings(enrolled)
	if err != nil {
		return err
	}
	if err := o.writeKey(enrolled.Key); err != nil {
		return err
	}
	return atomicfile.Write(o.Root+o.File, settings, fileMode)
}

// writeKey replaces a key file whose mode would show it to others.
func (o Options) writeKey(key string) error {
	path := o.Root + o.KeyFile
	if err := os.Chmod(path, keyMode); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Write(path, []byte(key+"\n"), keyMode)
}

// settings is the environment file as it is to be.
func (o Options) settings(enrolled checkin.Enrolled) ([]byte, error) {
	path := o.Root + o.File
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	assignments := []envfile.Assignment{
		{Name: "SITE_ID", Value: fmt.Sprint(enrolled.SiteID)},
		{Name: "MANAGER_URL", Value: o.Client.URL.String()},
		{Name: "API_KEY_FILE", Value: o.Root + o.KeyFile},
		{Name: "API_KEY"},
	}
	if o.CAFile != "" {
		assignments = append(assignments, envfile.Assignment{Name: "MANAGER_CA_FILE", Value: o.CAFile})
	}
	edited, err := envfile.Edit(string(content), "Written by opensource-agent enroll:", assignments...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return []byte(edited), nil
}

// kept is what a broken-off enrollment leaves for the next try.
type kept struct {
	Token string `json:"token"` // its digest
	Nonce string `json:"nonce"`
}

func (o Options) noncePath() string { return filepath.Join(o.StateDirectory, nonceFile) }

// nonce is the one of the try before with the same token, or a new one, which
// is on disk before the manager gets it.
func (o Options) nonce() (string, error) {
	sum := sha256.Sum256([]byte(o.Token))
	token := hex.EncodeToString(sum[:])
	var before kept
	if content, err := os.ReadFile(o.noncePath()); err == nil && json.Unmarshal(content, &before) == nil &&
		before.Token == token && before.Nonce != "" {
		return before.Nonce, nil
	}
	if err := os.MkdirAll(o.StateDirectory, 0o755); err != nil {
		return "", err
	}
	now := kept{Token: token, Nonce: rand.Text() + rand.Text()}
	content, err := json.Marshal(now)
	if err != nil {
		return "", err
	}
	if err := os.Remove(o.noncePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err // an old file might have another mode
	}
	return now.Nonce, atomicfile.Write(o.noncePath(), content, keyMode)
}
