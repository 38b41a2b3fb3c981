# Two images from the Debian packages:
#   docker build --target manager -t opensource-manager .
#   docker build --target agent   -t opensource-agent   .

FROM golang:1.26-trixie AS build
WORKDIR /src
COPY . .
ARG TARGETARCH=amd64
RUN AGENT_ARCHS=$TARGETARCH packaging/build-deb

# The manager listens on all addresses of its container; publish the port to
# a TLS proxy only. The database is in the volume.
FROM debian:trixie-slim AS manager
RUN --mount=from=build,source=/src/build,target=/build \
    apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates systemd-standalone-sysusers /build/opensource-manager_*.deb && \
    rm -rf /var/lib/apt/lists/*
USER opensource-manager
ENV LISTEN=:3000
VOLUME /var/lib/opensource-manager
EXPOSE 3000
CMD ["opensource-manager", "serve"]

# The agent reloads nginx and dnsmasq through systemd, so systemd is PID 1
# here; opensource-agent-environment.service hands SITE_ID and MANAGER_URL on.
# Run with --network host, --cap-add NET_ADMIN and what systemd needs.
FROM debian:trixie-slim AS agent
RUN --mount=from=build,source=/src/build,target=/build \
    apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates dbus systemd-sysv /build/opensource-agent_*.deb && \
    rm -rf /var/lib/apt/lists/*
ENV container=docker SITE_ID=1 MANAGER_URL=http://localhost:3000
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
