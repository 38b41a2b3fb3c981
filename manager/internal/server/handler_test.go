package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/api"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/metrics"
)

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(gin.CustomRecoveryWithWriter(nil, recoverWith(api.Panicked)))
	engine.GET("/", func(*gin.Context) { panic("the cause") })
	var log bytes.Buffer
	handler := described(auth.New(auth.Options{}), metrics.New(metrics.Options{}), slog.New(slog.NewTextHandler(&log, nil)), engine)

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	if answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), `"internal_error"`) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if strings.Contains(answer.Body.String(), "the cause") {
		t.Error("the cause is shown")
	}
	id := answer.Header().Get("X-Request-Id")
	if !strings.Contains(log.String(), "the cause") || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "handler_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

func TestPrefixIsTakenOff(t *testing.T) {
	for path, want := range map[string]string{
		"/manager": "/", "/manager/": "/", "/manager/agents": "/agents", "/agents": "/agents", "/managers": "/managers",
		"/manager/manager": "/manager",
	} {
		var got string
		handler := withoutPrefix("/manager", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Path }))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if got != want {
			t.Errorf("%s became %s, want %s", path, got, want)
		}
	}
}
