package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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

// wrk loads the server at url and adds what it saw.
func wrk(ctx context.Context, dir string, site site, url string, seconds int, into *results) error {
	file, bodies := filepath.Join(dir, "checkin.lua"), filepath.Join(dir, "bodies")
	var lines bytes.Buffer
	for agent := range agents {
		body, err := request(agent)
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
	out, err := exec.CommandContext(ctx, "wrk", "-t2", fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", seconds),
		"--latency", "-s", file, url+checkin.Path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w\n%s", err, out)
	}
	return into.add(string(out))
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

// add takes over what the script printed. A run in which anything but a 304
// was answered does not count.
func (r *results) add(output string) error {
	_, line, found := strings.Cut(output, "RESULT ")
	var requests, micros, refused, faults, read int64
	var p50, p99 float64
	if _, err := fmt.Sscan(line, &requests, &micros, &refused, &faults, &read, &p50, &p99); !found || err != nil {
		return fmt.Errorf("wrk printed no result: %s", output)
	}
	if requests == 0 || refused+faults > 0 || read/requests > notModified {
		return fmt.Errorf("not every answer was a 304: %s", output)
	}
	r.perSecond = append(r.perSecond, float64(requests)/(float64(micros)/1e6))
	r.p50, r.p99 = append(r.p50, p50/1000), append(r.p99, p99/1000)
	return nil
}

// addPeak adds the most memory that a process has held (proc(5), VmHWM).
func (r *results) addPeak(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(line, &kib); err != nil {
		return fmt.Errorf("read peak memory: %w", err)
	}
	r.peak = append(r.peak, kib/1024)
	return nil
}

func (r *results) print(containers int, name string) {
	fmt.Printf("%-12d %-8s %12.0f %7.1f ms %7.1f ms %6.1f MiB\n",
		containers, name, r.perSecond.median(), r.p50.median(), r.p99.median(), r.peak.median())
}
