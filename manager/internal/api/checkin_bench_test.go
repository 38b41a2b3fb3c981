package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store/storetest"
)

const busyBody = `{"siteId":1,"hostname":"agent","currentTime":1771234560,"ipv4Address":"172.17.0.2","services":{"nginx":{"state":"active","lastApply":"success","outcome":"unchanged","receivedEtag":"\"0123\"","runningEtag":"\"0123\"","appliedAt":"2026-02-16T09:36:00Z"},"dnsmasq":{"state":"active","lastApply":"success","outcome":"unchanged","receivedEtag":"\"0123\"","runningEtag":"\"0123\"","appliedAt":"2026-02-16T09:36:00Z"}},"agent":{"version":"2026.12.0","machineId":"0123456789abcdef","templates":[],"pass":{"startedAt":"2026-02-16T09:36:00Z","durationMs":12,"rounds":1}},"host":{"os":"Debian GNU/Linux 12","nginx":{"version":"1.22.1","http3":false,"stream":true},"dnsmasq":{"version":"2.90"},"ipv6":true,"userNamespace":false,"diskFreeBytes":123456789},"running":{"etag":"\"0123\"","since":"2026-02-16T09:36:00Z"}}`

// nowhere is a ResponseWriter that only keeps the status.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(status int)      { n.status = status }

func benchmarkHandler(b *testing.B, handler http.Handler, etag string) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "/api/v1/agents", strings.NewReader(busyBody))
			if err != nil {
				b.Fatal(err)
			}
			r.RemoteAddr = "127.0.0.1:5555"
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("If-None-Match", etag)
			w := &nowhere{header: http.Header{}}
			handler.ServeHTTP(w, r)
			if w.status != http.StatusNotModified {
				b.Fatal(w.status)
			}
		}
	})
}

// BenchmarkBareGin is the yardstick: it decodes the same body and answers 304.
func BenchmarkBareGin(b *testing.B) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/api/v1/agents", func(c *gin.Context) {
		var request checkin.Request
		if err := c.ShouldBindJSON(&request); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
	})
	benchmarkHandler(b, engine, `"x"`)
}

// BenchmarkCheckInUnchanged is a known agent with nothing new, behind gin.
func BenchmarkCheckInUnchanged(b *testing.B) {
	for _, containers := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("containers=%d", containers), func(b *testing.B) {
			c := newCheckIns(b)
			storetest.AddContainers(b, c.store, *c.World, containers)
			etag := c.settle(b)
			if w := c.post(busyBody, "If-None-Match", etag); w.Code != http.StatusNotModified {
				b.Fatal(w.Code, w.Body)
			}
			gin.SetMode(gin.ReleaseMode)
			engine := gin.New()
			engine.POST("/api/v1/agents", gin.WrapH(c.handler))
			b.ResetTimer()
			benchmarkHandler(b, engine, etag)
		})
	}
}
