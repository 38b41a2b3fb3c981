package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// Tool is what an installed program says about itself.
type Tool struct {
	File FileID `json:"file"`
	// Version is dotted, such as "1.26.3" or "2.90".
	Version string `json:"version"`
	// HTTP3, Stream and Prefix are nginx's: whether those modules are built
	// in, and what relative paths of modules begin with.
	HTTP3  bool   `json:"http3,omitempty"`
	Stream bool   `json:"stream,omitempty"`
	Prefix string `json:"prefix,omitempty"`

	// Failure is why the program could not be asked. It is not saved: a pass
	// does not wait twice for a program that hangs, but the next pass tries.
	Failure error `json:"-"`
}

// findProgram looks in the PATH, and in Debian's folder for services in case
// that is not in it.
func findProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

// probeTools asks both programs at once: either may hang.
func (f *Facts) probeTools(ctx context.Context, in Inputs) {
	var wait sync.WaitGroup
	var nginx, dnsmasq Tool
	wait.Go(func() { nginx = askTool(ctx, in.NGINX, "-V", in.Cache.Tools[in.NGINX], parseNGINX) })
	dnsmasq = askTool(ctx, in.DNSMasq, "--version", in.Cache.Tools[in.DNSMasq], parseDNSMasq)
	wait.Wait()
	f.warn("ask nginx for its version", nginx.Failure)
	f.warn("ask dnsmasq for its version", dnsmasq.Failure)

	f.Cache.Tools[in.NGINX], f.Cache.Tools[in.DNSMasq] = nginx, dnsmasq
	if nginx.Version != "" {
		f.modules = readModules(in.ModulesDir)
		f.NGINX = render.NGINXFacts{
			Version: parseVersion(nginx.Version),
			HTTP3:   nginx.HTTP3,
			Stream:  nginx.Stream || loadsStream(f.modules, nginx.Prefix),
		}
		f.Host.NGINX = &checkin.NGINXInfo{Version: nginx.Version, HTTP3: f.NGINX.HTTP3, Stream: f.NGINX.Stream}
	}
	if dnsmasq.Version != "" {
		f.Host.DNSMasq = &checkin.DNSMasqInfo{Version: dnsmasq.Version}
	}
}

// askTool returns what is known of a program, by running it if its file is not
// the one that is known. A program that is not installed is the zero Tool.
func askTool(ctx context.Context, path, argument string, known Tool, parse func(string) (Tool, error)) Tool {
	file := identify(path)
	if known.File == file && (known.Version != "" || known.Failure != nil) {
		return known
	}
	if file == (FileID{}) {
		return Tool{}
	}
	text, err := output(ctx, path, argument)
	if err != nil {
		return Tool{File: file, Failure: err}
	}
	tool, err := parse(text)
	if err != nil {
		return Tool{File: file, Failure: fmt.Errorf("%s %s: %w", path, argument, err)}
	}
	tool.File = file
	return tool
}

// pattern compiles an expression when it is first used: most passes ask no tool
// and read no certificate, and every pass is a process of its own.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var (
	nginxVersion   = pattern(`(?m)^nginx version: [^/\s]+/([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})\b`)
	nginxArguments = pattern(`(?m)^configure arguments:(.*)$`)
	dnsmasqVersion = pattern(`(?m)^Dnsmasq version ([0-9][0-9A-Za-z.+~-]{0,31})\s`)
	singleQuoted   = pattern(`'[^']*'`)
)

// parseNGINX reads the output of nginx -V. Forks name themselves before the
// slash.
func parseNGINX(text string) (Tool, error) {
	version := nginxVersion().FindStringSubmatch(text)
	if version == nil {
		return Tool{}, errors.New("the output names no version")
	}
	tool := Tool{Version: version[1]}
	arguments := nginxArguments().FindStringSubmatch(text)
	if arguments == nil {
		return tool, nil
	}
	// Compiler options are quoted and could hold anything.
	for argument := range strings.FieldsSeq(singleQuoted().ReplaceAllString(arguments[1], "")) {
		switch name, value, _ := strings.Cut(argument, "="); {
		case argument == "--with-http_v3_module":
			tool.HTTP3 = true
		case argument == "--with-stream":
			tool.Stream = true
		case name == "--prefix":
			tool.Prefix = value
		}
	}
	return tool, nil
}

// parseDNSMasq reads the output of dnsmasq --version.
func parseDNSMasq(text string) (Tool, error) {
	version := dnsmasqVersion().FindStringSubmatch(text)
	if version == nil {
		return Tool{}, errors.New("the output names no version")
	}
	return Tool{Version: version[1]}, nil
}

// parseVersion reads a version that nginxVersion has matched.
func parseVersion(s string) render.Version {
	var v render.Version
	for i, part := range strings.SplitN(s, ".", len(v)) {
		v[i], _ = strconv.Atoi(part)
	}
	return v
}
