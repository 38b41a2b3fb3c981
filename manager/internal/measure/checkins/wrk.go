package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"opensource.internal/agent/checkin"
)

// connections is how many requests are under way at any time.
const connections = 64

// script makes wrk send the check-ins of all agents in turn. At its end it
// prints requests, microseconds, answers from 400 up, other faults, bytes read,
// and the latencies in microseconds.
const script = `
local requests, next = {}, 0
function init()
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer KEY"
  wrk.headers["If-None-Match"] = 'ETAG'
  for line in io.lines("BODIES") do
    requests[#requests + 1] = wrk.format("POST", nil, nil, line)
  end
end
function request()
  next = next % #requests + 1
  return requests[next]
end
function done(summary, latency)
  local e = summary.errors
  print(string.format("RESULT %d %d %d %d %d %f %f", summary.requests, summary.duration, e.status,
    e.connect + e.read + e.write + e.timeout, summary.bytes, latency:percentile(50), latency:percentile(99)))
end
`

// notModified is more than any 304 has bytes, and less than any snapshot.
const notModified = 600

// wrk loads servers that stand side by side, each with its share of the
// connections, and adds what it saw.
func wrk(ctx context.Context, dir string, site site, servers []*server, seconds int, into *results) error {
	file, bodies := filepath.Join(dir, "checkin.lua"), filepath.Join(dir, "bodies")
	var lines bytes.Buffer
	for agent := range agents {
		body, err := request(1, agent)
		if err != nil {
			return err
		}
		lines.Write(append(body, '\n'))
	}
	if err := os.WriteFile(bodies, lines.Bytes(), 0o600); err != nil {
		return err
	}
	text := strings.NewReplacer("KEY", site.key, "ETAG", site.etag, "BODIES", bodies).Replace(script)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	outputs, faults := make([]string, len(servers)), make([]error, len(servers))
	var running sync.WaitGroup
	for n, s := range servers {
		running.Go(func() {
			out, err := exec.CommandContext(ctx, "wrk", fmt.Sprintf("-t%d", 2/len(servers)), fmt.Sprintf("-c%d", connections/len(servers)),
				fmt.Sprintf("-d%ds", seconds), "--latency", "-s", file, s.url+checkin.Path).CombinedOutput()
			if outputs[n] = string(out); err != nil {
				faults[n] = fmt.Errorf("wrk: %w\n%s", err, out)
			}
		})
	}
	running.Wait()
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return into.add(outputs)
}

// series are the values of one figure in several runs.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// ratios divides run by run.
func ratios(of, by series) series {
	var all series
	for i := range of {
		all = append(all, of[i]/by[i])
	}
	return all
}

// results are those of one server.
type results struct{ perSecond, p50, p99, peak series }

// add takes over what the scripts of one run printed: all their requests, and
// the worse of their latencies. A run in which anything but a 304 was answered
// does not count.
func (r *results) add(outputs []string) error {
	var perSecond, p50, p99 float64
	for _, output := range outputs {
		_, line, found := strings.Cut(output, "RESULT ")
		var requests, micros, refused, faults, read int64
		var half, most float64
		if _, err := fmt.Sscan(line, &requests, &micros, &refused, &faults, &read, &half, &most); !found || err != nil {
			return fmt.Errorf("wrk printed no result: %s", output)
		}
		if requests == 0 || refused+faults > 0 || read/requests > notModified {
			return fmt.Errorf("not every answer was a 304: %s", output)
		}
		perSecond += float64(requests) / (float64(micros) / 1e6)
		p50, p99 = max(p50, half/1000), max(p99, most/1000)
	}
	r.perSecond, r.p50, r.p99 = append(r.perSecond, perSecond), append(r.p50, p50), append(r.p99, p99)
	return nil
}

// memory is what a process holds, by a line of its status (proc(5)), in MiB.
func memory(pid int, line string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, value, _ := strings.Cut(string(status), line+":")
	var kib float64
	if _, err := fmt.Sscan(value, &kib); err != nil {
		return 0, fmt.Errorf("read %s: %w", line, err)
	}
	return kib / 1024, nil
}

func (r *results) print(containers int, name string) {
	fmt.Printf("%-12d %-16s %12.0f %7.1f ms %7.1f ms %6.1f MiB\n",
		containers, name, r.perSecond.median(), r.p50.median(), r.p99.median(), r.peak.median())
}
