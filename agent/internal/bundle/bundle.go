// Package bundle writes a support archive: all that somebody else needs to see
// what a host runs and why, and to render it again, and none of its secrets.
// What cannot be had is named in the archive, with the reason, and stops nothing.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// Bounds of an archive, in bytes before it is compressed. A snapshot may be
// large; nothing else of use is.
const (
	maxFile    = 40 << 20
	maxArchive = 160 << 20
)

// partLimit bounds the time that one part takes.
const partLimit = 30 * time.Second

// File is a file of the archive. A name that ends with a slash is a folder.
type File struct {
	Name    string
	Content []byte
}

// Part is something to put into an archive.
type Part struct {
	Name string // of the file, or of the folder with a slash
	What string // in a few words, for the reader
	// Make returns the files. It may return some and an error: the joined
	// reasons why others are missing.
	Make func(context.Context) ([]File, error)
}

// archive is one that is being written.
type archive struct {
	tar     *tar.Writer
	folder  string // that everything lies in
	redact  *Redactor
	at      time.Time
	written int64
	readme  strings.Builder
}

// Write writes all parts, redacted, as a compressed tar file whose only folder
// is the named one, and a README.txt about them. It tells progress a line for
// each part. The error is that of out: then there is no archive.
func Write(ctx context.Context, out io.Writer, folder string, parts []Part, redact *Redactor, progress io.Writer) error {
	compressed := gzip.NewWriter(out)
	a := &archive{tar: tar.NewWriter(compressed), folder: folder, redact: redact, at: time.Now()}
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped: %w", err)
		}
		if err := a.part(ctx, part, progress); err != nil {
			return err
		}
	}
	readme := File{"README.txt", []byte(introduction + a.readme.String())}
	if _, err := a.add(readme); err != nil {
		return err
	}
	return errors.Join(a.tar.Close(), compressed.Close())
}

// part adds what there is of a part, and notes what is not there.
func (a *archive) part(ctx context.Context, part Part, progress io.Writer) error {
	files, missing := part.files(ctx)
	size := 0
	for _, file := range files {
		refused, err := a.add(file)
		if err != nil {
			return err
		}
		if refused == nil {
			size += len(file.Content)
		}
		missing = errors.Join(missing, refused)
	}
	fmt.Fprintf(&a.readme, "\n%s\n    %s\n", part.Name, part.What)
	fmt.Fprintf(progress, "%s: %d kB\n", part.Name, (size+1023)/1024)
	for _, why := range reasons(missing) {
		line := a.redact.Text([]byte(why))
		fmt.Fprintf(&a.readme, "    MISSING: %s\n", line)
		fmt.Fprintf(progress, "  missing: %s\n", line)
	}
	return nil
}

// files makes the files of a part. One that panics or hangs has none.
func (p Part) files(ctx context.Context) ([]File, error) {
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	type result struct {
		files []File
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				done <- result{nil, fmt.Errorf("collecting it broke: %v", fault)}
			}
		}()
		files, err := p.Make(ctx)
		done <- result{files, err}
	}()
	select {
	case got := <-done:
		return got.files, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("it could not be had in time: %w", ctx.Err())
	}
}

// add writes one file, redacted. It refuses what would make the archive too
// large to be sent.
func (a *archive) add(file File) (refused, err error) {
	header := &tar.Header{Name: path.Join(a.folder, file.Name), Mode: 0o600, ModTime: a.at, Typeflag: tar.TypeReg}
	if strings.HasSuffix(file.Name, "/") {
		header.Name, header.Mode, header.Typeflag = header.Name+"/", 0o700, tar.TypeDir
		return nil, a.tar.WriteHeader(header)
	}
	size := int64(len(file.Content))
	if size > maxFile || a.written+size > maxArchive {
		return fmt.Errorf("%s is too large: %d bytes", file.Name, size), nil
	}
	content := a.redact.File(file.Name, file.Content)
	header.Size = int64(len(content))
	a.written += header.Size
	if err := a.tar.WriteHeader(header); err != nil {
		return nil, err
	}
	_, err = a.tar.Write(content)
	return nil, err
}

// reasons takes joined errors apart, a line each.
func reasons(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

const introduction = `A support archive of opensource-agent

Removed are API keys, passwords, cookies, Authorization headers and private
keys; "[removed]" stands in their place. Left in are names, addresses and the
site's configuration. Look through it before you give it to others.

To render again what this host has rendered:

    opensource-agent render --snapshot snapshot.json --facts facts.json \
        --templates templates --out replay
    diff -r rendered replay

Both folders then hold the same files, by an agent of the same version (see
versions.txt). What is live may lack records that nginx or dnsmasq have refused:
compare rendered/ with live/.

What is in it:
`
