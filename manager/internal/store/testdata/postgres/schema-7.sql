SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.agents_report() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO report_counters AS c (site_id, version)
    VALUES (CASE WHEN TG_OP = 'DELETE' THEN OLD.site_id ELSE NEW.site_id END, 1)
    ON CONFLICT (site_id) DO UPDATE SET version = c.version + 1;
  PERFORM pg_notify('changes', 'reports');
  RETURN NULL;
END;
$$;
CREATE FUNCTION public.change_counters_notify() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_notify('changes', NEW.scope || ' ' || NEW.id);
  RETURN NULL;
END $$;
CREATE FUNCTION public.changed_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO change_counters (scope, id, version) VALUES (NEW.scope, NEW.id, 1)
    ON CONFLICT (scope, id) DO UPDATE SET version = change_counters.version + 1;
  RETURN NEW;
END $$;
CREATE FUNCTION public.changed_unconfirm() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NEW.scope = 'site' THEN
    DELETE FROM confirmed_removals WHERE site_id = NEW.id;
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION public.containers_claim() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.hostname;
    DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO site_names VALUES (NEW.site_id, NEW.hostname);
    INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.external_domains_claim() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.name = NEW.name THEN
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM public_names WHERE name = OLD.name;
    DELETE FROM public_names WHERE name IN
      (SELECT external_hostname || '.' || OLD.name FROM services WHERE type = 'http' AND external_domain_id = OLD.id);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO public_names VALUES (NEW.name);
    INSERT INTO public_names
      SELECT external_hostname || '.' || NEW.name FROM services WHERE type = 'http' AND external_domain_id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.external_domains_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO changed SELECT 'site', NEW.default_site_id WHERE NEW.default_site_id IS NOT NULL;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO changed SELECT 'site', OLD.default_site_id WHERE OLD.default_site_id IS NOT NULL;
  ELSE
    INSERT INTO changed SELECT 'site', affected.id FROM (
      SELECT OLD.default_site_id AS id UNION SELECT NEW.default_site_id
      UNION SELECT site_id FROM services WHERE external_domain_id = NEW.id) AS affected WHERE affected.id IS NOT NULL;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.inventory_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO changed VALUES ('site', OLD.site_id);
  END IF;
  IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND NEW.site_id <> OLD.site_id THEN
    INSERT INTO changed VALUES ('site', NEW.site_id);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.nodes_claim() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM site_names WHERE site_id = OLD.site_id AND name = OLD.name;
    DELETE FROM site_addresses WHERE site_id = OLD.site_id AND ipv4_address = OLD.ipv4_address;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO site_names VALUES (NEW.site_id, NEW.name);
    INSERT INTO site_addresses SELECT NEW.site_id, NEW.ipv4_address WHERE NEW.ipv4_address <> '';
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.pins_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE change_counters SET version = version + 1
    WHERE scope = 'site' AND id = CASE TG_OP WHEN 'DELETE' THEN OLD.site_id ELSE NEW.site_id END;
  RETURN NULL;
END $$;
CREATE FUNCTION public.scope_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO changed VALUES (TG_ARGV[0], 0);
  RETURN NULL;
END $$;
CREATE FUNCTION public.services_claim() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM public_names WHERE OLD.type = 'http'
      AND name = (SELECT OLD.external_hostname || '.' || d.name FROM external_domains d WHERE d.id = OLD.external_domain_id);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO public_names SELECT NEW.external_hostname || '.' || name FROM external_domains
      WHERE NEW.type = 'http' AND id = NEW.external_domain_id;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION public.site_reread() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = NEW.site_id;
  RETURN NULL;
END $$;
CREATE FUNCTION public.sites_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO changed VALUES ('site', OLD.id);
  ELSE
    INSERT INTO changed VALUES ('site', NEW.id);
  END IF;
  RETURN NULL;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.agents (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    hostname text NOT NULL COLLATE pg_catalog."C",
    peer_address text DEFAULT ''::text NOT NULL,
    report text NOT NULL,
    clock_skew_ms bigint,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    drift text DEFAULT '{}'::text NOT NULL,
    offline_at timestamp with time zone,
    told bigint DEFAULT 0 NOT NULL,
    CONSTRAINT agents_hostname_check CHECK ((hostname <> ''::text))
);
ALTER TABLE public.agents ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.agents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.api_keys (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    site_id bigint,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text DEFAULT ''::text NOT NULL,
    last_used_at timestamp with time zone,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    hostname text DEFAULT ''::text NOT NULL,
    CONSTRAINT api_keys_check CHECK (((role <> 'agent'::text) OR (site_id IS NOT NULL))),
    CONSTRAINT api_keys_prefix_check CHECK ((prefix <> ''::text)),
    CONSTRAINT api_keys_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'viewer'::text, 'agent'::text])))
);
ALTER TABLE public.api_keys ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.audit (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    actor_kind text NOT NULL,
    actor_id bigint DEFAULT 0 NOT NULL,
    actor_name text DEFAULT ''::text NOT NULL,
    actor_address text DEFAULT ''::text NOT NULL,
    actor_request_id text DEFAULT ''::text NOT NULL,
    action text NOT NULL,
    resource text NOT NULL,
    resource_id bigint DEFAULT 0 NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    site_id bigint DEFAULT 0 NOT NULL,
    old_values text DEFAULT ''::text NOT NULL,
    new_values text DEFAULT ''::text NOT NULL,
    times bigint DEFAULT 1 NOT NULL,
    CONSTRAINT audit_action_check CHECK ((action <> ''::text)),
    CONSTRAINT audit_resource_check CHECK ((resource <> ''::text))
);
ALTER TABLE public.audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.change_counters (
    scope text NOT NULL,
    id bigint DEFAULT 0 NOT NULL,
    version bigint NOT NULL
);
CREATE VIEW public.changed AS
 SELECT change_counters.scope,
    change_counters.id
   FROM public.change_counters;
CREATE TABLE public.confirmed_removals (
    site_id bigint NOT NULL,
    confirmed_by text NOT NULL,
    confirmed_at timestamp with time zone NOT NULL
);
CREATE TABLE public.containers (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    node_id bigint NOT NULL,
    hostname text NOT NULL COLLATE pg_catalog."C",
    owner text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    ipv4_address text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    mac_address text DEFAULT ''::text NOT NULL,
    vmid bigint,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT containers_hostname_check CHECK ((hostname <> ''::text))
);
ALTER TABLE public.containers ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.containers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.enrollments (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    hostname text DEFAULT ''::text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text DEFAULT ''::text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    used_at timestamp with time zone,
    used_by text DEFAULT ''::text NOT NULL,
    nonce_hash bytea,
    api_key_id bigint,
    CONSTRAINT enrollments_prefix_check CHECK ((prefix <> ''::text))
);
ALTER TABLE public.enrollments ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.enrollments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.events (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    site_id bigint NOT NULL,
    agent_id bigint NOT NULL,
    hostname text NOT NULL,
    kind text NOT NULL,
    severity text NOT NULL,
    summary text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    CONSTRAINT events_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT events_severity_check CHECK ((severity = ANY (ARRAY['info'::text, 'warning'::text, 'error'::text])))
);
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.external_domains (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    auth_server text DEFAULT ''::text NOT NULL,
    default_site_id bigint,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT external_domains_name_check CHECK ((name <> ''::text))
);
ALTER TABLE public.external_domains ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.external_domains_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.leases (
    name text NOT NULL,
    holder text NOT NULL,
    renewals bigint NOT NULL,
    renewed_at timestamp with time zone NOT NULL,
    unbroken_since timestamp with time zone NOT NULL
);
CREATE TABLE public.nodes (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    ipv4_address text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT nodes_name_check CHECK ((name <> ''::text))
);
ALTER TABLE public.nodes ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.nodes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notification_cursor (
    id bigint NOT NULL,
    event_id bigint NOT NULL,
    CONSTRAINT notification_cursor_id_check CHECK ((id = 1))
);
CREATE TABLE public.notification_deliveries (
    target_id bigint NOT NULL,
    episode_id bigint NOT NULL,
    told_at timestamp with time zone NOT NULL,
    done boolean NOT NULL
);
CREATE TABLE public.notification_episodes (
    id bigint NOT NULL,
    agent_id bigint NOT NULL,
    site_id bigint NOT NULL,
    hostname text NOT NULL,
    family text NOT NULL,
    subject text NOT NULL,
    kind text NOT NULL,
    severity text NOT NULL,
    summary text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    closing text DEFAULT ''::text NOT NULL
);
ALTER TABLE public.notification_episodes ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.notification_episodes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notification_silences (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    until timestamp with time zone NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    created_by text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);
ALTER TABLE public.notification_silences ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.notification_silences_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notification_targets (
    id bigint NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    url_set_at timestamp with time zone NOT NULL,
    kinds text DEFAULT ''::text NOT NULL,
    site_ids text DEFAULT ''::text NOT NULL,
    severity text DEFAULT 'warning'::text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    enabled_since timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    failures bigint DEFAULT 0 NOT NULL,
    failed_at timestamp with time zone,
    last_error text DEFAULT ''::text NOT NULL,
    CONSTRAINT notification_targets_name_check CHECK ((name <> ''::text)),
    CONSTRAINT notification_targets_severity_check CHECK ((severity = ANY (ARRAY['warning'::text, 'error'::text]))),
    CONSTRAINT notification_targets_url_check CHECK ((url <> ''::text))
);
ALTER TABLE public.notification_targets ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.notification_targets_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.pins (
    site_id bigint NOT NULL,
    revision bigint NOT NULL,
    reason text NOT NULL,
    pinned_by text NOT NULL,
    pinned_at timestamp with time zone NOT NULL,
    CONSTRAINT pins_reason_check CHECK ((reason <> ''::text))
);
CREATE TABLE public.public_names (
    name text NOT NULL
);
CREATE TABLE public.report_counters (
    site_id bigint NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.revisions (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    number bigint NOT NULL,
    etag text NOT NULL,
    data bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    summary text DEFAULT '{}'::text NOT NULL,
    changed_by text DEFAULT '[]'::text NOT NULL,
    published_by text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    audited bigint DEFAULT 0 NOT NULL
);
ALTER TABLE public.revisions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.revisions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.services (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    container_id bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    internal_port bigint NOT NULL,
    external_hostname text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    external_domain_id bigint,
    backend_protocol text DEFAULT ''::text NOT NULL,
    auth_required boolean DEFAULT false NOT NULL,
    protocol text DEFAULT ''::text NOT NULL,
    external_port bigint DEFAULT 0 NOT NULL,
    record_type text DEFAULT ''::text NOT NULL,
    dns_name text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT services_check CHECK (((type <> 'http'::text) OR ((external_hostname <> ''::text) AND (external_domain_id IS NOT NULL)))),
    CONSTRAINT services_check1 CHECK (((type <> 'transport'::text) OR ((protocol = ANY (ARRAY['tcp'::text, 'udp'::text])) AND (external_port > 0)))),
    CONSTRAINT services_check2 CHECK (((type <> 'dns'::text) OR (dns_name <> ''::text))),
    CONSTRAINT services_external_port_check CHECK (((external_port >= 0) AND (external_port <= 65535))),
    CONSTRAINT services_internal_port_check CHECK (((internal_port >= 1) AND (internal_port <= 65535))),
    CONSTRAINT services_type_check CHECK ((type = ANY (ARRAY['http'::text, 'transport'::text, 'dns'::text])))
);
ALTER TABLE public.services ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.services_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.sessions (
    token text NOT NULL,
    data bytea NOT NULL,
    expiry timestamp with time zone NOT NULL,
    user_id bigint
);
CREATE TABLE public.site_addresses (
    site_id bigint NOT NULL,
    ipv4_address text NOT NULL
);
CREATE TABLE public.site_names (
    site_id bigint NOT NULL,
    name text NOT NULL
);
CREATE TABLE public.sites (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    internal_domain text DEFAULT ''::text NOT NULL,
    dhcp_range text DEFAULT ''::text NOT NULL,
    subnet_mask text DEFAULT ''::text NOT NULL,
    gateway text DEFAULT ''::text NOT NULL,
    dns_forwarders text DEFAULT ''::text NOT NULL,
    external_ip text DEFAULT ''::text NOT NULL,
    volumes_root text NOT NULL,
    port_range text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    publishing text DEFAULT 'auto'::text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT sites_name_check CHECK ((name <> ''::text)),
    CONSTRAINT sites_publishing_check CHECK ((publishing = ANY (ARRAY['auto'::text, 'manual'::text])))
);
ALTER TABLE public.sites ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.sites_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.users (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    password_hash text NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    issuer text DEFAULT ''::text NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    disabled_at timestamp with time zone,
    session_epoch bigint DEFAULT 0 NOT NULL,
    CONSTRAINT users_name_check CHECK ((name <> ''::text)),
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'viewer'::text])))
);
ALTER TABLE public.users ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.volumes (
    id bigint NOT NULL,
    site_id bigint NOT NULL,
    container_id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    mount_path text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL,
    host_path text NOT NULL COLLATE pg_catalog."C",
    uid bigint NOT NULL,
    gid bigint NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL COLLATE pg_catalog."C",
    status_message text DEFAULT ''::text NOT NULL,
    reported_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT volumes_gid_check CHECK (((gid >= 0) AND (gid <= '4294967294'::bigint))),
    CONSTRAINT volumes_host_path_check CHECK ((host_path ~~ '/%'::text)),
    CONSTRAINT volumes_mode_check CHECK ((mode = ANY (ARRAY['rw'::text, 'ro'::text]))),
    CONSTRAINT volumes_mount_path_check CHECK ((mount_path <> ''::text)),
    CONSTRAINT volumes_name_check CHECK ((name <> ''::text)),
    CONSTRAINT volumes_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'ready'::text, 'failed'::text]))),
    CONSTRAINT volumes_uid_check CHECK (((uid >= 0) AND (uid <= '4294967294'::bigint)))
);
ALTER TABLE public.volumes ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.volumes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO public.agents VALUES (1, 1, 'agent', '127.0.0.1', '{"siteId":1,"hostname":"agent","currentTime":1771234590,"ipv4Address":null,"services":{"nginx":{"state":"active","lastApply":"success"}}}', -24837312879, '2026-11-30 20:51:43.86829+00', '2026-11-30 20:51:43.879086+00', '2026-11-30 20:51:43.879086+00', '{"nginx":{"at":"2026-11-30T20:51:43.868290583Z","files":[{"path":"/etc/nginx/nginx.conf","diff":"-a\n+b"}],"restored":true}}', NULL, 0);
INSERT INTO public.api_keys VALUES (1, 'admin', 'admin', NULL, 'c76b0169633438c3', '\xf28f33d4ad2d78c323758abde71dc217f4d1928e359bfe39c63d5c4eae2a76fc', '2026-11-30 20:51:37.835957+00', 'command line', '2026-11-30 20:51:43+00', NULL, NULL, '');
INSERT INTO public.api_keys VALUES (2, 'site 1', 'agent', 1, '70a398b00ccb0823', '\x74e349de52f2dfc5e08bc6123d57331bc1306330ded93a88ed111c59fb68fad3', '2026-11-30 20:51:43.88828+00', 'admin', NULL, NULL, NULL, '');
INSERT INTO public.audit VALUES (1, '2026-02-01 10:00:00+00', 'user', 1, 'ada', '', '', 'update', 'container', 1, 'web', 1, '{"owner":"a"}', '{"owner":"b"}', 1);
INSERT INTO public.change_counters VALUES ('keys', 0, 2);
INSERT INTO public.change_counters VALUES ('site', 1, 144);
INSERT INTO public.change_counters VALUES ('site', 2, 1);
INSERT INTO public.confirmed_removals VALUES (1, 'admin', '2026-11-30 20:51:43.923+00');
INSERT INTO public.containers VALUES (1, 1, 2, 'c1', 'alice', '192.0.2.101', '02:00:00:00:00:01', NULL, '2026-11-30 20:51:38.602+00', '2026-11-30 20:51:38.602+00');
INSERT INTO public.containers VALUES (2, 1, 3, 'c2', 'alice', '192.0.2.102', '02:00:00:00:00:02', NULL, '2026-11-30 20:51:38.653+00', '2026-11-30 20:51:38.653+00');
INSERT INTO public.containers VALUES (3, 1, 1, 'c3', 'alice', '192.0.2.103', '02:00:00:00:00:03', NULL, '2026-11-30 20:51:38.673+00', '2026-11-30 20:51:38.673+00');
INSERT INTO public.containers VALUES (4, 1, 2, 'c4', 'alice', '192.0.2.104', '02:00:00:00:00:04', NULL, '2026-11-30 20:51:38.785+00', '2026-11-30 20:51:38.785+00');
INSERT INTO public.containers VALUES (5, 1, 3, 'c5', 'alice', '192.0.2.105', '02:00:00:00:00:05', NULL, '2026-11-30 20:51:38.808+00', '2026-11-30 20:51:38.808+00');
INSERT INTO public.containers VALUES (6, 1, 1, 'c6', 'alice', '192.0.2.106', '02:00:00:00:00:06', NULL, '2026-11-30 20:51:38.818+00', '2026-11-30 20:51:38.818+00');
INSERT INTO public.containers VALUES (7, 1, 2, 'c7', 'alice', '192.0.2.107', '02:00:00:00:00:07', NULL, '2026-11-30 20:51:38.853+00', '2026-11-30 20:51:38.853+00');
INSERT INTO public.containers VALUES (8, 1, 3, 'c8', 'alice', '192.0.2.108', '02:00:00:00:00:08', NULL, '2026-11-30 20:51:39.01+00', '2026-11-30 20:51:39.01+00');
INSERT INTO public.containers VALUES (9, 1, 1, 'c9', 'alice', '192.0.2.109', '02:00:00:00:00:09', NULL, '2026-11-30 20:51:39.037+00', '2026-11-30 20:51:39.037+00');
INSERT INTO public.containers VALUES (10, 1, 2, 'c10', 'alice', '192.0.2.110', '02:00:00:00:00:0a', NULL, '2026-11-30 20:51:39.146+00', '2026-11-30 20:51:39.146+00');
INSERT INTO public.containers VALUES (11, 1, 3, 'c11', 'alice', '192.0.2.111', '02:00:00:00:00:0b', NULL, '2026-11-30 20:51:39.201+00', '2026-11-30 20:51:39.201+00');
INSERT INTO public.containers VALUES (12, 1, 1, 'c12', 'alice', '192.0.2.112', '02:00:00:00:00:0c', NULL, '2026-11-30 20:51:39.227+00', '2026-11-30 20:51:39.227+00');
INSERT INTO public.containers VALUES (13, 1, 2, 'c13', 'alice', '192.0.2.113', '02:00:00:00:00:0d', NULL, '2026-11-30 20:51:39.243+00', '2026-11-30 20:51:39.243+00');
INSERT INTO public.containers VALUES (14, 1, 3, 'c14', 'alice', '192.0.2.114', '02:00:00:00:00:0e', NULL, '2026-11-30 20:51:39.26+00', '2026-11-30 20:51:39.26+00');
INSERT INTO public.containers VALUES (15, 1, 1, 'c15', 'alice', '192.0.2.115', '02:00:00:00:00:0f', NULL, '2026-11-30 20:51:39.366+00', '2026-11-30 20:51:39.366+00');
INSERT INTO public.containers VALUES (16, 1, 2, 'c16', 'alice', '192.0.2.116', '02:00:00:00:00:10', NULL, '2026-11-30 20:51:39.382+00', '2026-11-30 20:51:39.382+00');
INSERT INTO public.containers VALUES (17, 1, 3, 'c17', 'alice', '192.0.2.117', '02:00:00:00:00:11', NULL, '2026-11-30 20:51:39.526+00', '2026-11-30 20:51:39.526+00');
INSERT INTO public.containers VALUES (18, 1, 1, 'c18', 'alice', '192.0.2.118', '02:00:00:00:00:12', NULL, '2026-11-30 20:51:39.713+00', '2026-11-30 20:51:39.713+00');
INSERT INTO public.containers VALUES (19, 1, 2, 'c19', 'alice', '192.0.2.119', '02:00:00:00:00:13', NULL, '2026-11-30 20:51:39.735+00', '2026-11-30 20:51:39.735+00');
INSERT INTO public.containers VALUES (20, 1, 3, 'c20', 'alice', '192.0.2.120', '02:00:00:00:00:14', NULL, '2026-11-30 20:51:39.748+00', '2026-11-30 20:51:39.748+00');
INSERT INTO public.containers VALUES (21, 1, 1, 'c21', 'alice', '192.0.2.121', '02:00:00:00:00:15', NULL, '2026-11-30 20:51:39.766+00', '2026-11-30 20:51:39.766+00');
INSERT INTO public.containers VALUES (22, 1, 2, 'c22', 'alice', '192.0.2.122', '02:00:00:00:00:16', NULL, '2026-11-30 20:51:39.817+00', '2026-11-30 20:51:39.817+00');
INSERT INTO public.containers VALUES (23, 1, 3, 'c23', 'alice', '192.0.2.123', '02:00:00:00:00:17', NULL, '2026-11-30 20:51:39.835+00', '2026-11-30 20:51:39.835+00');
INSERT INTO public.containers VALUES (24, 1, 1, 'c24', 'alice', '192.0.2.124', '02:00:00:00:00:18', NULL, '2026-11-30 20:51:39.874+00', '2026-11-30 20:51:39.874+00');
INSERT INTO public.containers VALUES (25, 1, 2, 'c25', 'alice', '192.0.2.125', '02:00:00:00:00:19', NULL, '2026-11-30 20:51:39.89+00', '2026-11-30 20:51:39.89+00');
INSERT INTO public.containers VALUES (26, 1, 3, 'c26', 'alice', '192.0.2.126', '02:00:00:00:00:1a', NULL, '2026-11-30 20:51:39.902+00', '2026-11-30 20:51:39.902+00');
INSERT INTO public.containers VALUES (27, 1, 1, 'c27', 'alice', '192.0.2.127', '02:00:00:00:00:1b', NULL, '2026-11-30 20:51:39.95+00', '2026-11-30 20:51:39.95+00');
INSERT INTO public.containers VALUES (28, 1, 2, 'c28', 'alice', '192.0.2.128', '02:00:00:00:00:1c', NULL, '2026-11-30 20:51:39.969+00', '2026-11-30 20:51:39.969+00');
INSERT INTO public.containers VALUES (29, 1, 3, 'c29', 'alice', '192.0.2.129', '02:00:00:00:00:1d', NULL, '2026-11-30 20:51:39.98+00', '2026-11-30 20:51:39.98+00');
INSERT INTO public.containers VALUES (30, 1, 1, 'c30', 'alice', '192.0.2.130', '02:00:00:00:00:1e', NULL, '2026-11-30 20:51:40.021+00', '2026-11-30 20:51:40.021+00');
INSERT INTO public.containers VALUES (31, 1, 2, 'c31', 'alice', '192.0.2.131', '02:00:00:00:00:1f', NULL, '2026-11-30 20:51:40.051+00', '2026-11-30 20:51:40.051+00');
INSERT INTO public.containers VALUES (32, 1, 3, 'c32', 'alice', '192.0.2.132', '02:00:00:00:00:20', NULL, '2026-11-30 20:51:40.079+00', '2026-11-30 20:51:40.079+00');
INSERT INTO public.containers VALUES (33, 1, 1, 'c33', 'alice', '192.0.2.133', '02:00:00:00:00:21', NULL, '2026-11-30 20:51:40.109+00', '2026-11-30 20:51:40.109+00');
INSERT INTO public.containers VALUES (34, 1, 2, 'c34', 'alice', '192.0.2.134', '02:00:00:00:00:22', NULL, '2026-11-30 20:51:40.118+00', '2026-11-30 20:51:40.118+00');
INSERT INTO public.containers VALUES (35, 1, 3, 'c35', 'alice', '192.0.2.135', '02:00:00:00:00:23', NULL, '2026-11-30 20:51:40.126+00', '2026-11-30 20:51:40.126+00');
INSERT INTO public.containers VALUES (36, 1, 1, 'c36', 'alice', '192.0.2.136', '02:00:00:00:00:24', NULL, '2026-11-30 20:51:40.135+00', '2026-11-30 20:51:40.135+00');
INSERT INTO public.containers VALUES (37, 1, 2, 'c37', 'alice', '192.0.2.137', '02:00:00:00:00:25', NULL, '2026-11-30 20:51:40.144+00', '2026-11-30 20:51:40.144+00');
INSERT INTO public.containers VALUES (38, 1, 3, 'c38', 'alice', '192.0.2.138', '02:00:00:00:00:26', NULL, '2026-11-30 20:51:40.164+00', '2026-11-30 20:51:40.164+00');
INSERT INTO public.containers VALUES (39, 1, 1, 'c39', 'alice', '192.0.2.139', '02:00:00:00:00:27', NULL, '2026-11-30 20:51:40.194+00', '2026-11-30 20:51:40.194+00');
INSERT INTO public.containers VALUES (40, 1, 2, 'c40', 'alice', '192.0.2.140', '02:00:00:00:00:28', NULL, '2026-11-30 20:51:40.21+00', '2026-11-30 20:51:40.21+00');
INSERT INTO public.containers VALUES (41, 1, 3, 'c41', 'alice', '192.0.2.141', '02:00:00:00:00:29', NULL, '2026-11-30 20:51:40.231+00', '2026-11-30 20:51:40.231+00');
INSERT INTO public.containers VALUES (42, 1, 1, 'c42', 'alice', '192.0.2.142', '02:00:00:00:00:2a', NULL, '2026-11-30 20:51:40.284+00', '2026-11-30 20:51:40.284+00');
INSERT INTO public.containers VALUES (43, 1, 2, 'c43', 'alice', '192.0.2.143', '02:00:00:00:00:2b', NULL, '2026-11-30 20:51:40.411+00', '2026-11-30 20:51:40.411+00');
INSERT INTO public.containers VALUES (44, 1, 3, 'c44', 'alice', '192.0.2.144', '02:00:00:00:00:2c', NULL, '2026-11-30 20:51:41.129+00', '2026-11-30 20:51:41.129+00');
INSERT INTO public.containers VALUES (45, 1, 1, 'c45', 'alice', '192.0.2.145', '02:00:00:00:00:2d', NULL, '2026-11-30 20:51:41.159+00', '2026-11-30 20:51:41.159+00');
INSERT INTO public.containers VALUES (46, 1, 2, 'c46', 'alice', '192.0.2.146', '02:00:00:00:00:2e', NULL, '2026-11-30 20:51:41.172+00', '2026-11-30 20:51:41.172+00');
INSERT INTO public.containers VALUES (47, 1, 3, 'c47', 'alice', '192.0.2.147', '02:00:00:00:00:2f', NULL, '2026-11-30 20:51:41.186+00', '2026-11-30 20:51:41.186+00');
INSERT INTO public.containers VALUES (48, 1, 1, 'c48', 'alice', '192.0.2.148', '02:00:00:00:00:30', NULL, '2026-11-30 20:51:41.199+00', '2026-11-30 20:51:41.199+00');
INSERT INTO public.containers VALUES (50, 1, 3, 'c50', 'bob', '192.0.2.150', '02:00:00:00:00:32', NULL, '2026-11-30 20:51:41.226+00', '2026-11-30 20:51:43.897+00');
INSERT INTO public.enrollments VALUES (1, 1, 'Edge', 'p1', '\x00ff', '2026-02-01 10:00:00+00', 'ada', '2026-02-02 10:00:00+00', NULL, NULL, '', NULL, NULL);
INSERT INTO public.events VALUES (1, '2026-02-01 10:00:00+00', 1, 1, 'agent', 'offline', 'warning', 'went silent', '');
INSERT INTO public.external_domains VALUES (1, 'example.com', '', 1, '2026-11-30 20:51:38.537+00', '2026-11-30 20:51:38.537+00');
INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (2, 1, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (3, 2, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (4, 3, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (5, 4, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (6, 5, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (7, 6, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.goose_db_version VALUES (8, 7, true, '2026-12-01 01:07:59.400461');
INSERT INTO public.leases VALUES ('tasks', 'manager1', 3, '2026-02-01 10:00:00+00', '2026-02-01 09:00:00+00');
INSERT INTO public.nodes VALUES (1, 1, 'pve1', '192.0.2.11', 'none', '2026-11-30 20:51:38.365+00', '2026-11-30 20:51:38.365+00');
INSERT INTO public.nodes VALUES (2, 1, 'pve2', '192.0.2.12', 'none', '2026-11-30 20:51:38.403+00', '2026-11-30 20:51:38.403+00');
INSERT INTO public.nodes VALUES (3, 1, 'pve3', '192.0.2.13', 'none', '2026-11-30 20:51:38.498+00', '2026-11-30 20:51:38.498+00');
INSERT INTO public.notification_cursor VALUES (1, 0);
INSERT INTO public.notification_deliveries VALUES (1, 1, '2026-02-01 10:01:00+00', false);
INSERT INTO public.notification_episodes VALUES (1, 1, 1, 'agent', 'presence', '', 'offline', 'warning', 'went silent', '2026-02-01 10:00:00+00', NULL, '');
INSERT INTO public.notification_silences VALUES (1, 1, '2026-02-03 10:00:00+00', '', '', '2026-02-01 10:00:00+00', '2026-02-01 10:00:00+00');
INSERT INTO public.notification_targets VALUES (1, 'Büro', 'https://example.com/hook', '2026-02-01 10:00:00+00', '', '', 'warning', true, '2026-02-01 10:00:00+00', '2026-02-01 10:00:00+00', '2026-02-01 10:00:00+00', NULL, 0, NULL, '');
INSERT INTO public.pins VALUES (1, 2, 'a freeze', 'ada', '2026-02-01 10:00:00+00');
INSERT INTO public.public_names VALUES ('app1.example.com');
INSERT INTO public.public_names VALUES ('app10.example.com');
INSERT INTO public.public_names VALUES ('app11.example.com');
INSERT INTO public.public_names VALUES ('app12.example.com');
INSERT INTO public.public_names VALUES ('app13.example.com');
INSERT INTO public.public_names VALUES ('app14.example.com');
INSERT INTO public.public_names VALUES ('app15.example.com');
INSERT INTO public.public_names VALUES ('app16.example.com');
INSERT INTO public.public_names VALUES ('app17.example.com');
INSERT INTO public.public_names VALUES ('app18.example.com');
INSERT INTO public.public_names VALUES ('app19.example.com');
INSERT INTO public.public_names VALUES ('app2.example.com');
INSERT INTO public.public_names VALUES ('app20.example.com');
INSERT INTO public.public_names VALUES ('app21.example.com');
INSERT INTO public.public_names VALUES ('app22.example.com');
INSERT INTO public.public_names VALUES ('app23.example.com');
INSERT INTO public.public_names VALUES ('app24.example.com');
INSERT INTO public.public_names VALUES ('app25.example.com');
INSERT INTO public.public_names VALUES ('app26.example.com');
INSERT INTO public.public_names VALUES ('app27.example.com');
INSERT INTO public.public_names VALUES ('app28.example.com');
INSERT INTO public.public_names VALUES ('app29.example.com');
INSERT INTO public.public_names VALUES ('app3.example.com');
INSERT INTO public.public_names VALUES ('app30.example.com');
INSERT INTO public.public_names VALUES ('app31.example.com');
INSERT INTO public.public_names VALUES ('app32.example.com');
INSERT INTO public.public_names VALUES ('app33.example.com');
INSERT INTO public.public_names VALUES ('app34.example.com');
INSERT INTO public.public_names VALUES ('app35.example.com');
INSERT INTO public.public_names VALUES ('app36.example.com');
INSERT INTO public.public_names VALUES ('app37.example.com');
INSERT INTO public.public_names VALUES ('app38.example.com');
INSERT INTO public.public_names VALUES ('app39.example.com');
INSERT INTO public.public_names VALUES ('app4.example.com');
INSERT INTO public.public_names VALUES ('app40.example.com');
INSERT INTO public.public_names VALUES ('app5.example.com');
INSERT INTO public.public_names VALUES ('app6.example.com');
INSERT INTO public.public_names VALUES ('app7.example.com');
INSERT INTO public.public_names VALUES ('app8.example.com');
INSERT INTO public.public_names VALUES ('app9.example.com');
INSERT INTO public.public_names VALUES ('example.com');
INSERT INTO public.report_counters VALUES (1, 1);
INSERT INTO public.revisions VALUES (1, 1, 1, '"d266edc7d27c2e6928708d034211dfd7912438cb2859df8b943fd749a0c56383"', '\x7b2273697465223a7b226964223a312c226e616d65223a226c6162222c22696e7465726e616c446f6d61696e223a226c61622e696e7465726e616c222c226468637052616e6765223a223139322e302e322e3130302c3139322e302e322e323030222c227375626e65744d61736b223a223235352e3235352e3235352e30222c2267617465776179223a223139322e302e322e31222c22646e73466f7277617264657273223a22392e392e392e39222c226e6f646573223a5b7b226e616d65223a2270766531222c226970763441646472657373223a223139322e302e322e3131222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226333222c226970763441646472657373223a223139322e302e322e313033222c226d616341646472657373223a2230323a30303a30303a30303a30303a3033227d2c7b22686f73746e616d65223a226336222c226970763441646472657373223a223139322e302e322e313036222c226d616341646472657373223a2230323a30303a30303a30303a30303a3036227d2c7b22686f73746e616d65223a226339222c226970763441646472657373223a223139322e302e322e313039222c226d616341646472657373223a2230323a30303a30303a30303a30303a3039227d2c7b22686f73746e616d65223a22633132222c226970763441646472657373223a223139322e302e322e313132222c226d616341646472657373223a2230323a30303a30303a30303a30303a3063227d2c7b22686f73746e616d65223a22633135222c226970763441646472657373223a223139322e302e322e313135222c226d616341646472657373223a2230323a30303a30303a30303a30303a3066227d2c7b22686f73746e616d65223a22633138222c226970763441646472657373223a223139322e302e322e313138222c226d616341646472657373223a2230323a30303a30303a30303a30303a3132227d2c7b22686f73746e616d65223a22633231222c226970763441646472657373223a223139322e302e322e313231222c226d616341646472657373223a2230323a30303a30303a30303a30303a3135227d2c7b22686f73746e616d65223a22633234222c226970763441646472657373223a223139322e302e322e313234222c226d616341646472657373223a2230323a30303a30303a30303a30303a3138227d2c7b22686f73746e616d65223a22633237222c226970763441646472657373223a223139322e302e322e313237222c226d616341646472657373223a2230323a30303a30303a30303a30303a3162227d2c7b22686f73746e616d65223a22633330222c226970763441646472657373223a223139322e302e322e313330222c226d616341646472657373223a2230323a30303a30303a30303a30303a3165227d2c7b22686f73746e616d65223a22633333222c226970763441646472657373223a223139322e302e322e313333222c226d616341646472657373223a2230323a30303a30303a30303a30303a3231227d2c7b22686f73746e616d65223a22633336222c226970763441646472657373223a223139322e302e322e313336222c226d616341646472657373223a2230323a30303a30303a30303a30303a3234227d2c7b22686f73746e616d65223a22633339222c226970763441646472657373223a223139322e302e322e313339222c226d616341646472657373223a2230323a30303a30303a30303a30303a3237227d2c7b22686f73746e616d65223a22633432222c226970763441646472657373223a223139322e302e322e313432222c226d616341646472657373223a2230323a30303a30303a30303a30303a3261227d2c7b22686f73746e616d65223a22633435222c226970763441646472657373223a223139322e302e322e313435222c226d616341646472657373223a2230323a30303a30303a30303a30303a3264227d2c7b22686f73746e616d65223a22633438222c226970763441646472657373223a223139322e302e322e313438222c226d616341646472657373223a2230323a30303a30303a30303a30303a3330227d5d7d2c7b226e616d65223a2270766532222c226970763441646472657373223a223139322e302e322e3132222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226331222c226970763441646472657373223a223139322e302e322e313031222c226d616341646472657373223a2230323a30303a30303a30303a30303a3031227d2c7b22686f73746e616d65223a226334222c226970763441646472657373223a223139322e302e322e313034222c226d616341646472657373223a2230323a30303a30303a30303a30303a3034227d2c7b22686f73746e616d65223a226337222c226970763441646472657373223a223139322e302e322e313037222c226d616341646472657373223a2230323a30303a30303a30303a30303a3037227d2c7b22686f73746e616d65223a22633130222c226970763441646472657373223a223139322e302e322e313130222c226d616341646472657373223a2230323a30303a30303a30303a30303a3061227d2c7b22686f73746e616d65223a22633133222c226970763441646472657373223a223139322e302e322e313133222c226d616341646472657373223a2230323a30303a30303a30303a30303a3064227d2c7b22686f73746e616d65223a22633136222c226970763441646472657373223a223139322e302e322e313136222c226d616341646472657373223a2230323a30303a30303a30303a30303a3130227d2c7b22686f73746e616d65223a22633139222c226970763441646472657373223a223139322e302e322e313139222c226d616341646472657373223a2230323a30303a30303a30303a30303a3133227d2c7b22686f73746e616d65223a22633232222c226970763441646472657373223a223139322e302e322e313232222c226d616341646472657373223a2230323a30303a30303a30303a30303a3136227d2c7b22686f73746e616d65223a22633235222c226970763441646472657373223a223139322e302e322e313235222c226d616341646472657373223a2230323a30303a30303a30303a30303a3139227d2c7b22686f73746e616d65223a22633238222c226970763441646472657373223a223139322e302e322e313238222c226d616341646472657373223a2230323a30303a30303a30303a30303a3163227d2c7b22686f73746e616d65223a22633331222c226970763441646472657373223a223139322e302e322e313331222c226d616341646472657373223a2230323a30303a30303a30303a30303a3166227d2c7b22686f73746e616d65223a22633334222c226970763441646472657373223a223139322e302e322e313334222c226d616341646472657373223a2230323a30303a30303a30303a30303a3232227d2c7b22686f73746e616d65223a22633337222c226970763441646472657373223a223139322e302e322e313337222c226d616341646472657373223a2230323a30303a30303a30303a30303a3235227d2c7b22686f73746e616d65223a22633430222c226970763441646472657373223a223139322e302e322e313430222c226d616341646472657373223a2230323a30303a30303a30303a30303a3238227d2c7b22686f73746e616d65223a22633433222c226970763441646472657373223a223139322e302e322e313433222c226d616341646472657373223a2230323a30303a30303a30303a30303a3262227d2c7b22686f73746e616d65223a22633436222c226970763441646472657373223a223139322e302e322e313436222c226d616341646472657373223a2230323a30303a30303a30303a30303a3265227d2c7b22686f73746e616d65223a22633439222c226970763441646472657373223a223139322e302e322e313439222c226d616341646472657373223a2230323a30303a30303a30303a30303a3331227d5d7d2c7b226e616d65223a2270766533222c226970763441646472657373223a223139322e302e322e3133222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226332222c226970763441646472657373223a223139322e302e322e313032222c226d616341646472657373223a2230323a30303a30303a30303a30303a3032227d2c7b22686f73746e616d65223a226335222c226970763441646472657373223a223139322e302e322e313035222c226d616341646472657373223a2230323a30303a30303a30303a30303a3035227d2c7b22686f73746e616d65223a226338222c226970763441646472657373223a223139322e302e322e313038222c226d616341646472657373223a2230323a30303a30303a30303a30303a3038227d2c7b22686f73746e616d65223a22633131222c226970763441646472657373223a223139322e302e322e313131222c226d616341646472657373223a2230323a30303a30303a30303a30303a3062227d2c7b22686f73746e616d65223a22633134222c226970763441646472657373223a223139322e302e322e313134222c226d616341646472657373223a2230323a30303a30303a30303a30303a3065227d2c7b22686f73746e616d65223a22633137222c226970763441646472657373223a223139322e302e322e313137222c226d616341646472657373223a2230323a30303a30303a30303a30303a3131227d2c7b22686f73746e616d65223a22633230222c226970763441646472657373223a223139322e302e322e313230222c226d616341646472657373223a2230323a30303a30303a30303a30303a3134227d2c7b22686f73746e616d65223a22633233222c226970763441646472657373223a223139322e302e322e313233222c226d616341646472657373223a2230323a30303a30303a30303a30303a3137227d2c7b22686f73746e616d65223a22633236222c226970763441646472657373223a223139322e302e322e313236222c226d616341646472657373223a2230323a30303a30303a30303a30303a3161227d2c7b22686f73746e616d65223a22633239222c226970763441646472657373223a223139322e302e322e313239222c226d616341646472657373223a2230323a30303a30303a30303a30303a3164227d2c7b22686f73746e616d65223a22633332222c226970763441646472657373223a223139322e302e322e313332222c226d616341646472657373223a2230323a30303a30303a30303a30303a3230227d2c7b22686f73746e616d65223a22633335222c226970763441646472657373223a223139322e302e322e313335222c226d616341646472657373223a2230323a30303a30303a30303a30303a3233227d2c7b22686f73746e616d65223a22633338222c226970763441646472657373223a223139322e302e322e313338222c226d616341646472657373223a2230323a30303a30303a30303a30303a3236227d2c7b22686f73746e616d65223a22633431222c226970763441646472657373223a223139322e302e322e313431222c226d616341646472657373223a2230323a30303a30303a30303a30303a3239227d2c7b22686f73746e616d65223a22633434222c226970763441646472657373223a223139322e302e322e313434222c226d616341646472657373223a2230323a30303a30303a30303a30303a3263227d2c7b22686f73746e616d65223a22633437222c226970763441646472657373223a223139322e302e322e313437222c226d616341646472657373223a2230323a30303a30303a30303a30303a3266227d2c7b22686f73746e616d65223a22633530222c226970763441646472657373223a223139322e302e322e313530222c226d616341646472657373223a2230323a30303a30303a30303a30303a3332227d5d7d5d2c22646e735265636f726473223a5b7b226964223a38312c2274797065223a22535256222c226e616d65223a225f7369702e5f746370222c22746172676574223a226331222c22706f7274223a353036307d5d2c22766f6c756d6573223a5b7b226964223a312c22686f737450617468223a222f6d6e742f766f6c756d65732f736974652d312f616c6963652f63312f64617461222c226d6f6465223a227277222c22756964223a3130303030302c22676964223a3130303030307d2c7b226964223a322c22686f737450617468223a222f6d6e742f766f6c756d65732f736974652d312f616c6963652f63322f64617461222c226d6f6465223a22726f222c22756964223a3130303030302c22676964223a3130303030307d5d7d2c226e67696e78223a7b22687474705365727669636573223a5b7b226964223a312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313031227d2c2265787465726e616c486f73746e616d65223a2261707031222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313032227d2c2265787465726e616c486f73746e616d65223a2261707032222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313033227d2c2265787465726e616c486f73746e616d65223a2261707033222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313034227d2c2265787465726e616c486f73746e616d65223a2261707034222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313035227d2c2265787465726e616c486f73746e616d65223a2261707035222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313036227d2c2265787465726e616c486f73746e616d65223a2261707036222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313037227d2c2265787465726e616c486f73746e616d65223a2261707037222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313038227d2c2265787465726e616c486f73746e616d65223a2261707038222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313039227d2c2265787465726e616c486f73746e616d65223a2261707039222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313130227d2c2265787465726e616c486f73746e616d65223a226170703130222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313131227d2c2265787465726e616c486f73746e616d65223a226170703131222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313132227d2c2265787465726e616c486f73746e616d65223a226170703132222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313133227d2c2265787465726e616c486f73746e616d65223a226170703133222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313134227d2c2265787465726e616c486f73746e616d65223a226170703134222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313135227d2c2265787465726e616c486f73746e616d65223a226170703135222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313136227d2c2265787465726e616c486f73746e616d65223a226170703136222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313137227d2c2265787465726e616c486f73746e616d65223a226170703137222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313138227d2c2265787465726e616c486f73746e616d65223a226170703138222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313139227d2c2265787465726e616c486f73746e616d65223a226170703139222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313230227d2c2265787465726e616c486f73746e616d65223a226170703230222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313231227d2c2265787465726e616c486f73746e616d65223a226170703231222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313232227d2c2265787465726e616c486f73746e616d65223a226170703232222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313233227d2c2265787465726e616c486f73746e616d65223a226170703233222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313234227d2c2265787465726e616c486f73746e616d65223a226170703234222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313235227d2c2265787465726e616c486f73746e616d65223a226170703235222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313236227d2c2265787465726e616c486f73746e616d65223a226170703236222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313237227d2c2265787465726e616c486f73746e616d65223a226170703237222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313238227d2c2265787465726e616c486f73746e616d65223a226170703238222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313239227d2c2265787465726e616c486f73746e616d65223a226170703239222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313330227d2c2265787465726e616c486f73746e616d65223a226170703330222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313331227d2c2265787465726e616c486f73746e616d65223a226170703331222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313332227d2c2265787465726e616c486f73746e616d65223a226170703332222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313333227d2c2265787465726e616c486f73746e616d65223a226170703333222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313334227d2c2265787465726e616c486f73746e616d65223a226170703334222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313335227d2c2265787465726e616c486f73746e616d65223a226170703335222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313336227d2c2265787465726e616c486f73746e616d65223a226170703336222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313337227d2c2265787465726e616c486f73746e616d65223a226170703337222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313338227d2c2265787465726e616c486f73746e616d65223a226170703338222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313339227d2c2265787465726e616c486f73746e616d65223a226170703339222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313430227d2c2265787465726e616c486f73746e616d65223a226170703430222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d5d2c2273747265616d5365727669636573223a5b7b226964223a322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313031227d2c2265787465726e616c506f7274223a323030302c2270726f746f636f6c223a22746370227d2c7b226964223a342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313032227d2c2265787465726e616c506f7274223a323030312c2270726f746f636f6c223a22746370227d2c7b226964223a362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313033227d2c2265787465726e616c506f7274223a323030322c2270726f746f636f6c223a22746370227d2c7b226964223a382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313034227d2c2265787465726e616c506f7274223a323030332c2270726f746f636f6c223a22746370227d2c7b226964223a31302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313035227d2c2265787465726e616c506f7274223a323030342c2270726f746f636f6c223a22746370227d2c7b226964223a31322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313036227d2c2265787465726e616c506f7274223a323030352c2270726f746f636f6c223a22746370227d2c7b226964223a31342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313037227d2c2265787465726e616c506f7274223a323030362c2270726f746f636f6c223a22746370227d2c7b226964223a31362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313038227d2c2265787465726e616c506f7274223a323030372c2270726f746f636f6c223a22746370227d2c7b226964223a31382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313039227d2c2265787465726e616c506f7274223a323030382c2270726f746f636f6c223a22746370227d2c7b226964223a32302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313130227d2c2265787465726e616c506f7274223a323030392c2270726f746f636f6c223a22746370227d2c7b226964223a32322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313131227d2c2265787465726e616c506f7274223a323031302c2270726f746f636f6c223a22746370227d2c7b226964223a32342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313132227d2c2265787465726e616c506f7274223a323031312c2270726f746f636f6c223a22746370227d2c7b226964223a32362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313133227d2c2265787465726e616c506f7274223a323031322c2270726f746f636f6c223a22746370227d2c7b226964223a32382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313134227d2c2265787465726e616c506f7274223a323031332c2270726f746f636f6c223a22746370227d2c7b226964223a33302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313135227d2c2265787465726e616c506f7274223a323031342c2270726f746f636f6c223a22746370227d2c7b226964223a33322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313136227d2c2265787465726e616c506f7274223a323031352c2270726f746f636f6c223a22746370227d2c7b226964223a33342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313137227d2c2265787465726e616c506f7274223a323031362c2270726f746f636f6c223a22746370227d2c7b226964223a33362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313138227d2c2265787465726e616c506f7274223a323031372c2270726f746f636f6c223a22746370227d2c7b226964223a33382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313139227d2c2265787465726e616c506f7274223a323031382c2270726f746f636f6c223a22746370227d2c7b226964223a34302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313230227d2c2265787465726e616c506f7274223a323031392c2270726f746f636f6c223a22746370227d2c7b226964223a34322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313231227d2c2265787465726e616c506f7274223a323032302c2270726f746f636f6c223a22746370227d2c7b226964223a34342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313232227d2c2265787465726e616c506f7274223a323032312c2270726f746f636f6c223a22746370227d2c7b226964223a34362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313233227d2c2265787465726e616c506f7274223a323032322c2270726f746f636f6c223a22746370227d2c7b226964223a34382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313234227d2c2265787465726e616c506f7274223a323032332c2270726f746f636f6c223a22746370227d2c7b226964223a35302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313235227d2c2265787465726e616c506f7274223a323032342c2270726f746f636f6c223a22746370227d2c7b226964223a35322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313236227d2c2265787465726e616c506f7274223a323032352c2270726f746f636f6c223a22746370227d2c7b226964223a35342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313237227d2c2265787465726e616c506f7274223a323032362c2270726f746f636f6c223a22746370227d2c7b226964223a35362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313238227d2c2265787465726e616c506f7274223a323032372c2270726f746f636f6c223a22746370227d2c7b226964223a35382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313239227d2c2265787465726e616c506f7274223a323032382c2270726f746f636f6c223a22746370227d2c7b226964223a36302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313330227d2c2265787465726e616c506f7274223a323032392c2270726f746f636f6c223a22746370227d2c7b226964223a36322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313331227d2c2265787465726e616c506f7274223a323033302c2270726f746f636f6c223a22746370227d2c7b226964223a36342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313332227d2c2265787465726e616c506f7274223a323033312c2270726f746f636f6c223a22746370227d2c7b226964223a36362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313333227d2c2265787465726e616c506f7274223a323033322c2270726f746f636f6c223a22746370227d2c7b226964223a36382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313334227d2c2265787465726e616c506f7274223a323033332c2270726f746f636f6c223a22746370227d2c7b226964223a37302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313335227d2c2265787465726e616c506f7274223a323033342c2270726f746f636f6c223a22746370227d2c7b226964223a37322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313336227d2c2265787465726e616c506f7274223a323033352c2270726f746f636f6c223a22746370227d2c7b226964223a37342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313337227d2c2265787465726e616c506f7274223a323033362c2270726f746f636f6c223a22746370227d2c7b226964223a37362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313338227d2c2265787465726e616c506f7274223a323033372c2270726f746f636f6c223a22746370227d2c7b226964223a37382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313339227d2c2265787465726e616c506f7274223a323033382c2270726f746f636f6c223a22746370227d2c7b226964223a38302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313430227d2c2265787465726e616c506f7274223a323033392c2270726f746f636f6c223a22746370227d5d2c2265787465726e616c446f6d61696e73223a5b7b226e616d65223a226578616d706c652e636f6d227d5d7d7d', '2026-11-30 20:51:43.869+00', '{}', '[]', '', '', 0);
INSERT INTO public.revisions VALUES (2, 1, 2, '"bde58e4536ec0b79a6d1c92b4bb17620893526e5dacddbd2922f8ac7b686eb43"', '\x7b2273697465223a7b226964223a312c226e616d65223a226c6162222c22696e7465726e616c446f6d61696e223a226c61622e696e7465726e616c222c226468637052616e6765223a223139322e302e322e3130302c3139322e302e322e323030222c227375626e65744d61736b223a223235352e3235352e3235352e30222c2267617465776179223a223139322e302e322e31222c22646e73466f7277617264657273223a22392e392e392e39222c226e6f646573223a5b7b226e616d65223a2270766531222c226970763441646472657373223a223139322e302e322e3131222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226333222c226970763441646472657373223a223139322e302e322e313033222c226d616341646472657373223a2230323a30303a30303a30303a30303a3033227d2c7b22686f73746e616d65223a226336222c226970763441646472657373223a223139322e302e322e313036222c226d616341646472657373223a2230323a30303a30303a30303a30303a3036227d2c7b22686f73746e616d65223a226339222c226970763441646472657373223a223139322e302e322e313039222c226d616341646472657373223a2230323a30303a30303a30303a30303a3039227d2c7b22686f73746e616d65223a22633132222c226970763441646472657373223a223139322e302e322e313132222c226d616341646472657373223a2230323a30303a30303a30303a30303a3063227d2c7b22686f73746e616d65223a22633135222c226970763441646472657373223a223139322e302e322e313135222c226d616341646472657373223a2230323a30303a30303a30303a30303a3066227d2c7b22686f73746e616d65223a22633138222c226970763441646472657373223a223139322e302e322e313138222c226d616341646472657373223a2230323a30303a30303a30303a30303a3132227d2c7b22686f73746e616d65223a22633231222c226970763441646472657373223a223139322e302e322e313231222c226d616341646472657373223a2230323a30303a30303a30303a30303a3135227d2c7b22686f73746e616d65223a22633234222c226970763441646472657373223a223139322e302e322e313234222c226d616341646472657373223a2230323a30303a30303a30303a30303a3138227d2c7b22686f73746e616d65223a22633237222c226970763441646472657373223a223139322e302e322e313237222c226d616341646472657373223a2230323a30303a30303a30303a30303a3162227d2c7b22686f73746e616d65223a22633330222c226970763441646472657373223a223139322e302e322e313330222c226d616341646472657373223a2230323a30303a30303a30303a30303a3165227d2c7b22686f73746e616d65223a22633333222c226970763441646472657373223a223139322e302e322e313333222c226d616341646472657373223a2230323a30303a30303a30303a30303a3231227d2c7b22686f73746e616d65223a22633336222c226970763441646472657373223a223139322e302e322e313336222c226d616341646472657373223a2230323a30303a30303a30303a30303a3234227d2c7b22686f73746e616d65223a22633339222c226970763441646472657373223a223139322e302e322e313339222c226d616341646472657373223a2230323a30303a30303a30303a30303a3237227d2c7b22686f73746e616d65223a22633432222c226970763441646472657373223a223139322e302e322e313432222c226d616341646472657373223a2230323a30303a30303a30303a30303a3261227d2c7b22686f73746e616d65223a22633435222c226970763441646472657373223a223139322e302e322e313435222c226d616341646472657373223a2230323a30303a30303a30303a30303a3264227d2c7b22686f73746e616d65223a22633438222c226970763441646472657373223a223139322e302e322e313438222c226d616341646472657373223a2230323a30303a30303a30303a30303a3330227d5d7d2c7b226e616d65223a2270766532222c226970763441646472657373223a223139322e302e322e3132222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226331222c226970763441646472657373223a223139322e302e322e313031222c226d616341646472657373223a2230323a30303a30303a30303a30303a3031227d2c7b22686f73746e616d65223a226334222c226970763441646472657373223a223139322e302e322e313034222c226d616341646472657373223a2230323a30303a30303a30303a30303a3034227d2c7b22686f73746e616d65223a226337222c226970763441646472657373223a223139322e302e322e313037222c226d616341646472657373223a2230323a30303a30303a30303a30303a3037227d2c7b22686f73746e616d65223a22633130222c226970763441646472657373223a223139322e302e322e313130222c226d616341646472657373223a2230323a30303a30303a30303a30303a3061227d2c7b22686f73746e616d65223a22633133222c226970763441646472657373223a223139322e302e322e313133222c226d616341646472657373223a2230323a30303a30303a30303a30303a3064227d2c7b22686f73746e616d65223a22633136222c226970763441646472657373223a223139322e302e322e313136222c226d616341646472657373223a2230323a30303a30303a30303a30303a3130227d2c7b22686f73746e616d65223a22633139222c226970763441646472657373223a223139322e302e322e313139222c226d616341646472657373223a2230323a30303a30303a30303a30303a3133227d2c7b22686f73746e616d65223a22633232222c226970763441646472657373223a223139322e302e322e313232222c226d616341646472657373223a2230323a30303a30303a30303a30303a3136227d2c7b22686f73746e616d65223a22633235222c226970763441646472657373223a223139322e302e322e313235222c226d616341646472657373223a2230323a30303a30303a30303a30303a3139227d2c7b22686f73746e616d65223a22633238222c226970763441646472657373223a223139322e302e322e313238222c226d616341646472657373223a2230323a30303a30303a30303a30303a3163227d2c7b22686f73746e616d65223a22633331222c226970763441646472657373223a223139322e302e322e313331222c226d616341646472657373223a2230323a30303a30303a30303a30303a3166227d2c7b22686f73746e616d65223a22633334222c226970763441646472657373223a223139322e302e322e313334222c226d616341646472657373223a2230323a30303a30303a30303a30303a3232227d2c7b22686f73746e616d65223a22633337222c226970763441646472657373223a223139322e302e322e313337222c226d616341646472657373223a2230323a30303a30303a30303a30303a3235227d2c7b22686f73746e616d65223a22633430222c226970763441646472657373223a223139322e302e322e313430222c226d616341646472657373223a2230323a30303a30303a30303a30303a3238227d2c7b22686f73746e616d65223a22633433222c226970763441646472657373223a223139322e302e322e313433222c226d616341646472657373223a2230323a30303a30303a30303a30303a3262227d2c7b22686f73746e616d65223a22633436222c226970763441646472657373223a223139322e302e322e313436222c226d616341646472657373223a2230323a30303a30303a30303a30303a3265227d5d7d2c7b226e616d65223a2270766533222c226970763441646472657373223a223139322e302e322e3133222c22636f6e7461696e657273223a5b7b22686f73746e616d65223a226332222c226970763441646472657373223a223139322e302e322e313032222c226d616341646472657373223a2230323a30303a30303a30303a30303a3032227d2c7b22686f73746e616d65223a226335222c226970763441646472657373223a223139322e302e322e313035222c226d616341646472657373223a2230323a30303a30303a30303a30303a3035227d2c7b22686f73746e616d65223a226338222c226970763441646472657373223a223139322e302e322e313038222c226d616341646472657373223a2230323a30303a30303a30303a30303a3038227d2c7b22686f73746e616d65223a22633131222c226970763441646472657373223a223139322e302e322e313131222c226d616341646472657373223a2230323a30303a30303a30303a30303a3062227d2c7b22686f73746e616d65223a22633134222c226970763441646472657373223a223139322e302e322e313134222c226d616341646472657373223a2230323a30303a30303a30303a30303a3065227d2c7b22686f73746e616d65223a22633137222c226970763441646472657373223a223139322e302e322e313137222c226d616341646472657373223a2230323a30303a30303a30303a30303a3131227d2c7b22686f73746e616d65223a22633230222c226970763441646472657373223a223139322e302e322e313230222c226d616341646472657373223a2230323a30303a30303a30303a30303a3134227d2c7b22686f73746e616d65223a22633233222c226970763441646472657373223a223139322e302e322e313233222c226d616341646472657373223a2230323a30303a30303a30303a30303a3137227d2c7b22686f73746e616d65223a22633236222c226970763441646472657373223a223139322e302e322e313236222c226d616341646472657373223a2230323a30303a30303a30303a30303a3161227d2c7b22686f73746e616d65223a22633239222c226970763441646472657373223a223139322e302e322e313239222c226d616341646472657373223a2230323a30303a30303a30303a30303a3164227d2c7b22686f73746e616d65223a22633332222c226970763441646472657373223a223139322e302e322e313332222c226d616341646472657373223a2230323a30303a30303a30303a30303a3230227d2c7b22686f73746e616d65223a22633335222c226970763441646472657373223a223139322e302e322e313335222c226d616341646472657373223a2230323a30303a30303a30303a30303a3233227d2c7b22686f73746e616d65223a22633338222c226970763441646472657373223a223139322e302e322e313338222c226d616341646472657373223a2230323a30303a30303a30303a30303a3236227d2c7b22686f73746e616d65223a22633431222c226970763441646472657373223a223139322e302e322e313431222c226d616341646472657373223a2230323a30303a30303a30303a30303a3239227d2c7b22686f73746e616d65223a22633434222c226970763441646472657373223a223139322e302e322e313434222c226d616341646472657373223a2230323a30303a30303a30303a30303a3263227d2c7b22686f73746e616d65223a22633437222c226970763441646472657373223a223139322e302e322e313437222c226d616341646472657373223a2230323a30303a30303a30303a30303a3266227d2c7b22686f73746e616d65223a22633530222c226970763441646472657373223a223139322e302e322e313530222c226d616341646472657373223a2230323a30303a30303a30303a30303a3332227d5d7d5d2c22646e735265636f726473223a5b7b226964223a38312c2274797065223a22535256222c226e616d65223a225f7369702e5f746370222c22746172676574223a226331222c22706f7274223a353036307d5d2c22766f6c756d6573223a5b7b226964223a312c22686f737450617468223a222f6d6e742f766f6c756d65732f736974652d312f616c6963652f63312f64617461222c226d6f6465223a227277222c22756964223a3130303030302c22676964223a3130303030307d2c7b226964223a322c22686f737450617468223a222f6d6e742f766f6c756d65732f736974652d312f616c6963652f63322f64617461222c226d6f6465223a22726f222c22756964223a3130303030302c22676964223a3130303030307d5d7d2c226e67696e78223a7b22687474705365727669636573223a5b7b226964223a312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313031227d2c2265787465726e616c486f73746e616d65223a2261707031222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313032227d2c2265787465726e616c486f73746e616d65223a2261707032222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313033227d2c2265787465726e616c486f73746e616d65223a2261707033222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313034227d2c2265787465726e616c486f73746e616d65223a2261707034222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313035227d2c2265787465726e616c486f73746e616d65223a2261707035222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313036227d2c2265787465726e616c486f73746e616d65223a2261707036222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313037227d2c2265787465726e616c486f73746e616d65223a2261707037222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313038227d2c2265787465726e616c486f73746e616d65223a2261707038222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313039227d2c2265787465726e616c486f73746e616d65223a2261707039222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a31392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313130227d2c2265787465726e616c486f73746e616d65223a226170703130222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313131227d2c2265787465726e616c486f73746e616d65223a226170703131222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313132227d2c2265787465726e616c486f73746e616d65223a226170703132222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313133227d2c2265787465726e616c486f73746e616d65223a226170703133222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313134227d2c2265787465726e616c486f73746e616d65223a226170703134222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a32392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313135227d2c2265787465726e616c486f73746e616d65223a226170703135222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313136227d2c2265787465726e616c486f73746e616d65223a226170703136222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313137227d2c2265787465726e616c486f73746e616d65223a226170703137222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313138227d2c2265787465726e616c486f73746e616d65223a226170703138222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313139227d2c2265787465726e616c486f73746e616d65223a226170703139222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a33392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313230227d2c2265787465726e616c486f73746e616d65223a226170703230222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313231227d2c2265787465726e616c486f73746e616d65223a226170703231222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313232227d2c2265787465726e616c486f73746e616d65223a226170703232222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313233227d2c2265787465726e616c486f73746e616d65223a226170703233222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313234227d2c2265787465726e616c486f73746e616d65223a226170703234222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a34392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313235227d2c2265787465726e616c486f73746e616d65223a226170703235222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313236227d2c2265787465726e616c486f73746e616d65223a226170703236222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313237227d2c2265787465726e616c486f73746e616d65223a226170703237222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313238227d2c2265787465726e616c486f73746e616d65223a226170703238222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313239227d2c2265787465726e616c486f73746e616d65223a226170703239222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a35392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313330227d2c2265787465726e616c486f73746e616d65223a226170703330222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313331227d2c2265787465726e616c486f73746e616d65223a226170703331222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313332227d2c2265787465726e616c486f73746e616d65223a226170703332222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313333227d2c2265787465726e616c486f73746e616d65223a226170703333222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313334227d2c2265787465726e616c486f73746e616d65223a226170703334222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a36392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313335227d2c2265787465726e616c486f73746e616d65223a226170703335222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37312c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313336227d2c2265787465726e616c486f73746e616d65223a226170703336222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37332c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313337227d2c2265787465726e616c486f73746e616d65223a226170703337222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37352c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313338227d2c2265787465726e616c486f73746e616d65223a226170703338222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37372c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313339227d2c2265787465726e616c486f73746e616d65223a226170703339222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d2c7b226964223a37392c22696e7465726e616c506f7274223a383038302c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313430227d2c2265787465726e616c486f73746e616d65223a226170703430222c226261636b656e6450726f746f636f6c223a2268747470222c22617574685265717569726564223a66616c73652c2265787465726e616c446f6d61696e223a7b226e616d65223a226578616d706c652e636f6d222c2261757468536572766572223a6e756c6c7d7d5d2c2273747265616d5365727669636573223a5b7b226964223a322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313031227d2c2265787465726e616c506f7274223a323030302c2270726f746f636f6c223a22746370227d2c7b226964223a342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313032227d2c2265787465726e616c506f7274223a323030312c2270726f746f636f6c223a22746370227d2c7b226964223a362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313033227d2c2265787465726e616c506f7274223a323030322c2270726f746f636f6c223a22746370227d2c7b226964223a382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313034227d2c2265787465726e616c506f7274223a323030332c2270726f746f636f6c223a22746370227d2c7b226964223a31302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313035227d2c2265787465726e616c506f7274223a323030342c2270726f746f636f6c223a22746370227d2c7b226964223a31322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313036227d2c2265787465726e616c506f7274223a323030352c2270726f746f636f6c223a22746370227d2c7b226964223a31342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313037227d2c2265787465726e616c506f7274223a323030362c2270726f746f636f6c223a22746370227d2c7b226964223a31362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313038227d2c2265787465726e616c506f7274223a323030372c2270726f746f636f6c223a22746370227d2c7b226964223a31382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313039227d2c2265787465726e616c506f7274223a323030382c2270726f746f636f6c223a22746370227d2c7b226964223a32302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313130227d2c2265787465726e616c506f7274223a323030392c2270726f746f636f6c223a22746370227d2c7b226964223a32322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313131227d2c2265787465726e616c506f7274223a323031302c2270726f746f636f6c223a22746370227d2c7b226964223a32342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313132227d2c2265787465726e616c506f7274223a323031312c2270726f746f636f6c223a22746370227d2c7b226964223a32362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313133227d2c2265787465726e616c506f7274223a323031322c2270726f746f636f6c223a22746370227d2c7b226964223a32382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313134227d2c2265787465726e616c506f7274223a323031332c2270726f746f636f6c223a22746370227d2c7b226964223a33302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313135227d2c2265787465726e616c506f7274223a323031342c2270726f746f636f6c223a22746370227d2c7b226964223a33322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313136227d2c2265787465726e616c506f7274223a323031352c2270726f746f636f6c223a22746370227d2c7b226964223a33342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313137227d2c2265787465726e616c506f7274223a323031362c2270726f746f636f6c223a22746370227d2c7b226964223a33362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313138227d2c2265787465726e616c506f7274223a323031372c2270726f746f636f6c223a22746370227d2c7b226964223a33382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313139227d2c2265787465726e616c506f7274223a323031382c2270726f746f636f6c223a22746370227d2c7b226964223a34302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313230227d2c2265787465726e616c506f7274223a323031392c2270726f746f636f6c223a22746370227d2c7b226964223a34322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313231227d2c2265787465726e616c506f7274223a323032302c2270726f746f636f6c223a22746370227d2c7b226964223a34342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313232227d2c2265787465726e616c506f7274223a323032312c2270726f746f636f6c223a22746370227d2c7b226964223a34362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313233227d2c2265787465726e616c506f7274223a323032322c2270726f746f636f6c223a22746370227d2c7b226964223a34382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313234227d2c2265787465726e616c506f7274223a323032332c2270726f746f636f6c223a22746370227d2c7b226964223a35302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313235227d2c2265787465726e616c506f7274223a323032342c2270726f746f636f6c223a22746370227d2c7b226964223a35322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313236227d2c2265787465726e616c506f7274223a323032352c2270726f746f636f6c223a22746370227d2c7b226964223a35342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313237227d2c2265787465726e616c506f7274223a323032362c2270726f746f636f6c223a22746370227d2c7b226964223a35362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313238227d2c2265787465726e616c506f7274223a323032372c2270726f746f636f6c223a22746370227d2c7b226964223a35382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313239227d2c2265787465726e616c506f7274223a323032382c2270726f746f636f6c223a22746370227d2c7b226964223a36302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313330227d2c2265787465726e616c506f7274223a323032392c2270726f746f636f6c223a22746370227d2c7b226964223a36322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313331227d2c2265787465726e616c506f7274223a323033302c2270726f746f636f6c223a22746370227d2c7b226964223a36342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313332227d2c2265787465726e616c506f7274223a323033312c2270726f746f636f6c223a22746370227d2c7b226964223a36362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313333227d2c2265787465726e616c506f7274223a323033322c2270726f746f636f6c223a22746370227d2c7b226964223a36382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313334227d2c2265787465726e616c506f7274223a323033332c2270726f746f636f6c223a22746370227d2c7b226964223a37302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313335227d2c2265787465726e616c506f7274223a323033342c2270726f746f636f6c223a22746370227d2c7b226964223a37322c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313336227d2c2265787465726e616c506f7274223a323033352c2270726f746f636f6c223a22746370227d2c7b226964223a37342c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313337227d2c2265787465726e616c506f7274223a323033362c2270726f746f636f6c223a22746370227d2c7b226964223a37362c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313338227d2c2265787465726e616c506f7274223a323033372c2270726f746f636f6c223a22746370227d2c7b226964223a37382c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313339227d2c2265787465726e616c506f7274223a323033382c2270726f746f636f6c223a22746370227d2c7b226964223a38302c22696e7465726e616c506f7274223a32322c22636f6e7461696e6572223a7b226970763441646472657373223a223139322e302e322e313430227d2c2265787465726e616c506f7274223a323033392c2270726f746f636f6c223a22746370227d5d2c2265787465726e616c446f6d61696e73223a5b7b226e616d65223a226578616d706c652e636f6d227d5d7d2c2272656d6f76616c73436f6e6669726d6564223a747275657d', '2026-11-30 20:51:43.924+00', '{}', '[]', '', '', 0);
INSERT INTO public.services VALUES (1, 1, 1, 'http', 8080, 'app1', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.252+00', '2026-11-30 20:51:41.252+00');
INSERT INTO public.services VALUES (2, 1, 1, 'transport', 22, '', NULL, '', false, 'tcp', 2000, '', '', '2026-11-30 20:51:41.297+00', '2026-11-30 20:51:41.297+00');
INSERT INTO public.services VALUES (3, 1, 2, 'http', 8080, 'app2', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.31+00', '2026-11-30 20:51:41.31+00');
INSERT INTO public.services VALUES (4, 1, 2, 'transport', 22, '', NULL, '', false, 'tcp', 2001, '', '', '2026-11-30 20:51:41.325+00', '2026-11-30 20:51:41.325+00');
INSERT INTO public.services VALUES (5, 1, 3, 'http', 8080, 'app3', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.336+00', '2026-11-30 20:51:41.336+00');
INSERT INTO public.services VALUES (6, 1, 3, 'transport', 22, '', NULL, '', false, 'tcp', 2002, '', '', '2026-11-30 20:51:41.345+00', '2026-11-30 20:51:41.345+00');
INSERT INTO public.services VALUES (7, 1, 4, 'http', 8080, 'app4', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.356+00', '2026-11-30 20:51:41.356+00');
INSERT INTO public.services VALUES (8, 1, 4, 'transport', 22, '', NULL, '', false, 'tcp', 2003, '', '', '2026-11-30 20:51:41.37+00', '2026-11-30 20:51:41.37+00');
INSERT INTO public.services VALUES (9, 1, 5, 'http', 8080, 'app5', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.384+00', '2026-11-30 20:51:41.384+00');
INSERT INTO public.services VALUES (10, 1, 5, 'transport', 22, '', NULL, '', false, 'tcp', 2004, '', '', '2026-11-30 20:51:41.394+00', '2026-11-30 20:51:41.394+00');
INSERT INTO public.services VALUES (11, 1, 6, 'http', 8080, 'app6', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.403+00', '2026-11-30 20:51:41.403+00');
INSERT INTO public.services VALUES (12, 1, 6, 'transport', 22, '', NULL, '', false, 'tcp', 2005, '', '', '2026-11-30 20:51:41.42+00', '2026-11-30 20:51:41.42+00');
INSERT INTO public.services VALUES (13, 1, 7, 'http', 8080, 'app7', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.43+00', '2026-11-30 20:51:41.43+00');
INSERT INTO public.services VALUES (14, 1, 7, 'transport', 22, '', NULL, '', false, 'tcp', 2006, '', '', '2026-11-30 20:51:41.439+00', '2026-11-30 20:51:41.439+00');
INSERT INTO public.services VALUES (15, 1, 8, 'http', 8080, 'app8', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.448+00', '2026-11-30 20:51:41.448+00');
INSERT INTO public.services VALUES (16, 1, 8, 'transport', 22, '', NULL, '', false, 'tcp', 2007, '', '', '2026-11-30 20:51:41.458+00', '2026-11-30 20:51:41.458+00');
INSERT INTO public.services VALUES (17, 1, 9, 'http', 8080, 'app9', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.467+00', '2026-11-30 20:51:41.467+00');
INSERT INTO public.services VALUES (18, 1, 9, 'transport', 22, '', NULL, '', false, 'tcp', 2008, '', '', '2026-11-30 20:51:41.476+00', '2026-11-30 20:51:41.476+00');
INSERT INTO public.services VALUES (19, 1, 10, 'http', 8080, 'app10', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.501+00', '2026-11-30 20:51:41.501+00');
INSERT INTO public.services VALUES (20, 1, 10, 'transport', 22, '', NULL, '', false, 'tcp', 2009, '', '', '2026-11-30 20:51:41.511+00', '2026-11-30 20:51:41.511+00');
INSERT INTO public.services VALUES (21, 1, 11, 'http', 8080, 'app11', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.521+00', '2026-11-30 20:51:41.521+00');
INSERT INTO public.services VALUES (22, 1, 11, 'transport', 22, '', NULL, '', false, 'tcp', 2010, '', '', '2026-11-30 20:51:41.53+00', '2026-11-30 20:51:41.53+00');
INSERT INTO public.services VALUES (23, 1, 12, 'http', 8080, 'app12', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.538+00', '2026-11-30 20:51:41.538+00');
INSERT INTO public.services VALUES (24, 1, 12, 'transport', 22, '', NULL, '', false, 'tcp', 2011, '', '', '2026-11-30 20:51:41.546+00', '2026-11-30 20:51:41.546+00');
INSERT INTO public.services VALUES (25, 1, 13, 'http', 8080, 'app13', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.554+00', '2026-11-30 20:51:41.554+00');
INSERT INTO public.services VALUES (26, 1, 13, 'transport', 22, '', NULL, '', false, 'tcp', 2012, '', '', '2026-11-30 20:51:41.563+00', '2026-11-30 20:51:41.563+00');
INSERT INTO public.services VALUES (27, 1, 14, 'http', 8080, 'app14', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.576+00', '2026-11-30 20:51:41.576+00');
INSERT INTO public.services VALUES (28, 1, 14, 'transport', 22, '', NULL, '', false, 'tcp', 2013, '', '', '2026-11-30 20:51:41.585+00', '2026-11-30 20:51:41.585+00');
INSERT INTO public.services VALUES (29, 1, 15, 'http', 8080, 'app15', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.594+00', '2026-11-30 20:51:41.594+00');
INSERT INTO public.services VALUES (30, 1, 15, 'transport', 22, '', NULL, '', false, 'tcp', 2014, '', '', '2026-11-30 20:51:41.604+00', '2026-11-30 20:51:41.604+00');
INSERT INTO public.services VALUES (31, 1, 16, 'http', 8080, 'app16', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.616+00', '2026-11-30 20:51:41.616+00');
INSERT INTO public.services VALUES (32, 1, 16, 'transport', 22, '', NULL, '', false, 'tcp', 2015, '', '', '2026-11-30 20:51:41.665+00', '2026-11-30 20:51:41.665+00');
INSERT INTO public.services VALUES (33, 1, 17, 'http', 8080, 'app17', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.705+00', '2026-11-30 20:51:41.705+00');
INSERT INTO public.services VALUES (34, 1, 17, 'transport', 22, '', NULL, '', false, 'tcp', 2016, '', '', '2026-11-30 20:51:41.727+00', '2026-11-30 20:51:41.727+00');
INSERT INTO public.services VALUES (35, 1, 18, 'http', 8080, 'app18', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.745+00', '2026-11-30 20:51:41.745+00');
INSERT INTO public.services VALUES (36, 1, 18, 'transport', 22, '', NULL, '', false, 'tcp', 2017, '', '', '2026-11-30 20:51:41.761+00', '2026-11-30 20:51:41.761+00');
INSERT INTO public.services VALUES (37, 1, 19, 'http', 8080, 'app19', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.812+00', '2026-11-30 20:51:41.812+00');
INSERT INTO public.services VALUES (38, 1, 19, 'transport', 22, '', NULL, '', false, 'tcp', 2018, '', '', '2026-11-30 20:51:41.873+00', '2026-11-30 20:51:41.873+00');
INSERT INTO public.services VALUES (39, 1, 20, 'http', 8080, 'app20', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.885+00', '2026-11-30 20:51:41.885+00');
INSERT INTO public.services VALUES (40, 1, 20, 'transport', 22, '', NULL, '', false, 'tcp', 2019, '', '', '2026-11-30 20:51:41.895+00', '2026-11-30 20:51:41.895+00');
INSERT INTO public.services VALUES (41, 1, 21, 'http', 8080, 'app21', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:41.936+00', '2026-11-30 20:51:41.936+00');
INSERT INTO public.services VALUES (42, 1, 21, 'transport', 22, '', NULL, '', false, 'tcp', 2020, '', '', '2026-11-30 20:51:41.973+00', '2026-11-30 20:51:41.973+00');
INSERT INTO public.services VALUES (43, 1, 22, 'http', 8080, 'app22', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.045+00', '2026-11-30 20:51:42.045+00');
INSERT INTO public.services VALUES (44, 1, 22, 'transport', 22, '', NULL, '', false, 'tcp', 2021, '', '', '2026-11-30 20:51:42.064+00', '2026-11-30 20:51:42.064+00');
INSERT INTO public.services VALUES (45, 1, 23, 'http', 8080, 'app23', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.075+00', '2026-11-30 20:51:42.075+00');
INSERT INTO public.services VALUES (46, 1, 23, 'transport', 22, '', NULL, '', false, 'tcp', 2022, '', '', '2026-11-30 20:51:42.086+00', '2026-11-30 20:51:42.086+00');
INSERT INTO public.services VALUES (47, 1, 24, 'http', 8080, 'app24', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.136+00', '2026-11-30 20:51:42.136+00');
INSERT INTO public.services VALUES (48, 1, 24, 'transport', 22, '', NULL, '', false, 'tcp', 2023, '', '', '2026-11-30 20:51:42.34+00', '2026-11-30 20:51:42.34+00');
INSERT INTO public.services VALUES (49, 1, 25, 'http', 8080, 'app25', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.865+00', '2026-11-30 20:51:42.865+00');
INSERT INTO public.services VALUES (50, 1, 25, 'transport', 22, '', NULL, '', false, 'tcp', 2024, '', '', '2026-11-30 20:51:42.899+00', '2026-11-30 20:51:42.899+00');
INSERT INTO public.services VALUES (51, 1, 26, 'http', 8080, 'app26', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.909+00', '2026-11-30 20:51:42.909+00');
INSERT INTO public.services VALUES (52, 1, 26, 'transport', 22, '', NULL, '', false, 'tcp', 2025, '', '', '2026-11-30 20:51:42.918+00', '2026-11-30 20:51:42.918+00');
INSERT INTO public.services VALUES (53, 1, 27, 'http', 8080, 'app27', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.927+00', '2026-11-30 20:51:42.927+00');
INSERT INTO public.services VALUES (54, 1, 27, 'transport', 22, '', NULL, '', false, 'tcp', 2026, '', '', '2026-11-30 20:51:42.937+00', '2026-11-30 20:51:42.937+00');
INSERT INTO public.services VALUES (55, 1, 28, 'http', 8080, 'app28', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:42.947+00', '2026-11-30 20:51:42.947+00');
INSERT INTO public.services VALUES (56, 1, 28, 'transport', 22, '', NULL, '', false, 'tcp', 2027, '', '', '2026-11-30 20:51:42.959+00', '2026-11-30 20:51:42.959+00');
INSERT INTO public.services VALUES (57, 1, 29, 'http', 8080, 'app29', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.023+00', '2026-11-30 20:51:43.023+00');
INSERT INTO public.services VALUES (58, 1, 29, 'transport', 22, '', NULL, '', false, 'tcp', 2028, '', '', '2026-11-30 20:51:43.045+00', '2026-11-30 20:51:43.045+00');
INSERT INTO public.services VALUES (59, 1, 30, 'http', 8080, 'app30', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.057+00', '2026-11-30 20:51:43.057+00');
INSERT INTO public.services VALUES (60, 1, 30, 'transport', 22, '', NULL, '', false, 'tcp', 2029, '', '', '2026-11-30 20:51:43.12+00', '2026-11-30 20:51:43.12+00');
INSERT INTO public.services VALUES (61, 1, 31, 'http', 8080, 'app31', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.255+00', '2026-11-30 20:51:43.255+00');
INSERT INTO public.services VALUES (62, 1, 31, 'transport', 22, '', NULL, '', false, 'tcp', 2030, '', '', '2026-11-30 20:51:43.32+00', '2026-11-30 20:51:43.32+00');
INSERT INTO public.services VALUES (63, 1, 32, 'http', 8080, 'app32', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.353+00', '2026-11-30 20:51:43.353+00');
INSERT INTO public.services VALUES (64, 1, 32, 'transport', 22, '', NULL, '', false, 'tcp', 2031, '', '', '2026-11-30 20:51:43.379+00', '2026-11-30 20:51:43.379+00');
INSERT INTO public.services VALUES (65, 1, 33, 'http', 8080, 'app33', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.391+00', '2026-11-30 20:51:43.391+00');
INSERT INTO public.services VALUES (66, 1, 33, 'transport', 22, '', NULL, '', false, 'tcp', 2032, '', '', '2026-11-30 20:51:43.404+00', '2026-11-30 20:51:43.404+00');
INSERT INTO public.services VALUES (67, 1, 34, 'http', 8080, 'app34', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.413+00', '2026-11-30 20:51:43.413+00');
INSERT INTO public.services VALUES (68, 1, 34, 'transport', 22, '', NULL, '', false, 'tcp', 2033, '', '', '2026-11-30 20:51:43.423+00', '2026-11-30 20:51:43.423+00');
INSERT INTO public.services VALUES (69, 1, 35, 'http', 8080, 'app35', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.439+00', '2026-11-30 20:51:43.439+00');
INSERT INTO public.services VALUES (70, 1, 35, 'transport', 22, '', NULL, '', false, 'tcp', 2034, '', '', '2026-11-30 20:51:43.451+00', '2026-11-30 20:51:43.451+00');
INSERT INTO public.services VALUES (71, 1, 36, 'http', 8080, 'app36', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.503+00', '2026-11-30 20:51:43.503+00');
INSERT INTO public.services VALUES (72, 1, 36, 'transport', 22, '', NULL, '', false, 'tcp', 2035, '', '', '2026-11-30 20:51:43.515+00', '2026-11-30 20:51:43.515+00');
INSERT INTO public.services VALUES (73, 1, 37, 'http', 8080, 'app37', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.527+00', '2026-11-30 20:51:43.527+00');
INSERT INTO public.services VALUES (74, 1, 37, 'transport', 22, '', NULL, '', false, 'tcp', 2036, '', '', '2026-11-30 20:51:43.565+00', '2026-11-30 20:51:43.565+00');
INSERT INTO public.services VALUES (75, 1, 38, 'http', 8080, 'app38', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.674+00', '2026-11-30 20:51:43.674+00');
INSERT INTO public.services VALUES (76, 1, 38, 'transport', 22, '', NULL, '', false, 'tcp', 2037, '', '', '2026-11-30 20:51:43.704+00', '2026-11-30 20:51:43.704+00');
INSERT INTO public.services VALUES (77, 1, 39, 'http', 8080, 'app39', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.724+00', '2026-11-30 20:51:43.724+00');
INSERT INTO public.services VALUES (78, 1, 39, 'transport', 22, '', NULL, '', false, 'tcp', 2038, '', '', '2026-11-30 20:51:43.77+00', '2026-11-30 20:51:43.77+00');
INSERT INTO public.services VALUES (79, 1, 40, 'http', 8080, 'app40', 1, 'http', false, '', 0, '', '', '2026-11-30 20:51:43.792+00', '2026-11-30 20:51:43.792+00');
INSERT INTO public.services VALUES (80, 1, 40, 'transport', 22, '', NULL, '', false, 'tcp', 2039, '', '', '2026-11-30 20:51:43.829+00', '2026-11-30 20:51:43.829+00');
INSERT INTO public.services VALUES (81, 1, 1, 'dns', 5060, '', NULL, '', false, '', 0, 'SRV', '_sip._tcp', '2026-11-30 20:51:43.839+00', '2026-11-30 20:51:43.839+00');
INSERT INTO public.sessions VALUES ('OAt7m2dhhyaFgHNh_eu1kf0gcpPRt_IiGgvphPt-qaM', '\x257f030102ff800001020108446561646c696e6501ff8200010656616c75657301ff8400000010ff810501010454696d6501ff8200000027ff83040101176d61705b737472696e675d696e74657266616365207b7d01ff8400010c0110000025ff80010f010000000ee2a12a5f3b4a68a2ffff0101047573657205696e7436340402000200', '2026-12-01 20:51:43.994732+00', 1);
INSERT INTO public.site_addresses VALUES (1, '192.0.2.101');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.102');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.103');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.104');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.105');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.106');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.107');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.108');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.109');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.11');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.110');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.111');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.112');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.113');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.114');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.115');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.116');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.117');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.118');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.119');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.12');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.120');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.121');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.122');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.123');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.124');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.125');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.126');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.127');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.128');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.129');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.13');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.130');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.131');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.132');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.133');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.134');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.135');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.136');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.137');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.138');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.139');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.140');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.141');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.142');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.143');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.144');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.145');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.146');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.147');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.148');
INSERT INTO public.site_addresses VALUES (1, '192.0.2.150');
INSERT INTO public.site_names VALUES (1, 'c1');
INSERT INTO public.site_names VALUES (1, 'c10');
INSERT INTO public.site_names VALUES (1, 'c11');
INSERT INTO public.site_names VALUES (1, 'c12');
INSERT INTO public.site_names VALUES (1, 'c13');
INSERT INTO public.site_names VALUES (1, 'c14');
INSERT INTO public.site_names VALUES (1, 'c15');
INSERT INTO public.site_names VALUES (1, 'c16');
INSERT INTO public.site_names VALUES (1, 'c17');
INSERT INTO public.site_names VALUES (1, 'c18');
INSERT INTO public.site_names VALUES (1, 'c19');
INSERT INTO public.site_names VALUES (1, 'c2');
INSERT INTO public.site_names VALUES (1, 'c20');
INSERT INTO public.site_names VALUES (1, 'c21');
INSERT INTO public.site_names VALUES (1, 'c22');
INSERT INTO public.site_names VALUES (1, 'c23');
INSERT INTO public.site_names VALUES (1, 'c24');
INSERT INTO public.site_names VALUES (1, 'c25');
INSERT INTO public.site_names VALUES (1, 'c26');
INSERT INTO public.site_names VALUES (1, 'c27');
INSERT INTO public.site_names VALUES (1, 'c28');
INSERT INTO public.site_names VALUES (1, 'c29');
INSERT INTO public.site_names VALUES (1, 'c3');
INSERT INTO public.site_names VALUES (1, 'c30');
INSERT INTO public.site_names VALUES (1, 'c31');
INSERT INTO public.site_names VALUES (1, 'c32');
INSERT INTO public.site_names VALUES (1, 'c33');
INSERT INTO public.site_names VALUES (1, 'c34');
INSERT INTO public.site_names VALUES (1, 'c35');
INSERT INTO public.site_names VALUES (1, 'c36');
INSERT INTO public.site_names VALUES (1, 'c37');
INSERT INTO public.site_names VALUES (1, 'c38');
INSERT INTO public.site_names VALUES (1, 'c39');
INSERT INTO public.site_names VALUES (1, 'c4');
INSERT INTO public.site_names VALUES (1, 'c40');
INSERT INTO public.site_names VALUES (1, 'c41');
INSERT INTO public.site_names VALUES (1, 'c42');
INSERT INTO public.site_names VALUES (1, 'c43');
INSERT INTO public.site_names VALUES (1, 'c44');
INSERT INTO public.site_names VALUES (1, 'c45');
INSERT INTO public.site_names VALUES (1, 'c46');
INSERT INTO public.site_names VALUES (1, 'c47');
INSERT INTO public.site_names VALUES (1, 'c48');
INSERT INTO public.site_names VALUES (1, 'c5');
INSERT INTO public.site_names VALUES (1, 'c50');
INSERT INTO public.site_names VALUES (1, 'c6');
INSERT INTO public.site_names VALUES (1, 'c7');
INSERT INTO public.site_names VALUES (1, 'c8');
INSERT INTO public.site_names VALUES (1, 'c9');
INSERT INTO public.site_names VALUES (1, 'pve1');
INSERT INTO public.site_names VALUES (1, 'pve2');
INSERT INTO public.site_names VALUES (1, 'pve3');
INSERT INTO public.sites VALUES (1, 'lab', 'lab.internal', '192.0.2.100,192.0.2.200', '255.255.255.0', '192.0.2.1', '9.9.9.9', '', '/mnt/volumes', '2000-2999', '2026-11-30 20:51:38.225+00', '2026-11-30 20:51:38.225+00', 'auto');
INSERT INTO public.sites VALUES (2, 'attic', '', '', '', '', '', '', '/mnt/volumes', '2000-2999', '2026-11-30 20:51:38.264+00', '2026-11-30 20:51:38.264+00', 'auto');
INSERT INTO public.users VALUES (1, 'ada', '$argon2id$v=19$m=19456,t=2,p=1$w2ntsddumEn9zjwSirj9fA$W7etGFgZrSPiCIq+ragZ0jiG8/RYXQZUWQ/0cEILjqE', 'admin', '2026-11-30 20:51:38.07707+00', '2026-11-30 20:51:38.07707+00', '', '', NULL, 0);
INSERT INTO public.volumes VALUES (1, 1, 1, 'data', '/data', 'rw', '/mnt/volumes/site-1/alice/c1/data', 100000, 100000, 'ready', '', '2026-11-30 20:51:43.879086+00', '2026-11-30 20:51:43.848+00', '2026-11-30 20:51:43.848+00');
INSERT INTO public.volumes VALUES (2, 1, 2, 'data', '/data', 'ro', '/mnt/volumes/site-1/alice/c2/data', 100000, 100000, 'failed', 'mkdir: no', '2026-11-30 20:51:43.879086+00', '2026-11-30 20:51:43.857+00', '2026-11-30 20:51:43.857+00');
SELECT pg_catalog.setval('public.agents_id_seq', 1, true);
SELECT pg_catalog.setval('public.api_keys_id_seq', 2, true);
SELECT pg_catalog.setval('public.audit_id_seq', 1, true);
SELECT pg_catalog.setval('public.containers_id_seq', 50, true);
SELECT pg_catalog.setval('public.enrollments_id_seq', 1, true);
SELECT pg_catalog.setval('public.events_id_seq', 1, true);
SELECT pg_catalog.setval('public.external_domains_id_seq', 1, true);
SELECT pg_catalog.setval('public.goose_db_version_id_seq', 8, true);
SELECT pg_catalog.setval('public.nodes_id_seq', 3, true);
SELECT pg_catalog.setval('public.notification_episodes_id_seq', 1, true);
SELECT pg_catalog.setval('public.notification_silences_id_seq', 1, true);
SELECT pg_catalog.setval('public.notification_targets_id_seq', 1, true);
SELECT pg_catalog.setval('public.revisions_id_seq', 2, true);
SELECT pg_catalog.setval('public.services_id_seq', 81, true);
SELECT pg_catalog.setval('public.sites_id_seq', 2, true);
SELECT pg_catalog.setval('public.users_id_seq', 1, true);
SELECT pg_catalog.setval('public.volumes_id_seq', 2, true);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.change_counters
    ADD CONSTRAINT change_counters_pkey PRIMARY KEY (scope, id);
ALTER TABLE ONLY public.confirmed_removals
    ADD CONSTRAINT confirmed_removals_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_id_site_id_key UNIQUE (id, site_id);
ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.enrollments
    ADD CONSTRAINT enrollments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.external_domains
    ADD CONSTRAINT external_domains_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_id_site_id_key UNIQUE (id, site_id);
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notification_cursor
    ADD CONSTRAINT notification_cursor_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notification_deliveries
    ADD CONSTRAINT notification_deliveries_pkey PRIMARY KEY (target_id, episode_id);
ALTER TABLE ONLY public.notification_episodes
    ADD CONSTRAINT notification_episodes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notification_silences
    ADD CONSTRAINT notification_silences_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notification_targets
    ADD CONSTRAINT notification_targets_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pins
    ADD CONSTRAINT pins_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.public_names
    ADD CONSTRAINT public_names_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.report_counters
    ADD CONSTRAINT report_counters_pkey PRIMARY KEY (site_id);
ALTER TABLE ONLY public.revisions
    ADD CONSTRAINT revisions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token);
ALTER TABLE ONLY public.site_addresses
    ADD CONSTRAINT site_addresses_pkey PRIMARY KEY (site_id, ipv4_address);
ALTER TABLE ONLY public.site_names
    ADD CONSTRAINT site_names_pkey PRIMARY KEY (site_id, name);
ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.volumes
    ADD CONSTRAINT volumes_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX agents_hostname ON public.agents USING btree (site_id, hostname);
CREATE INDEX agents_offline ON public.agents USING btree (id) WHERE (offline_at IS NOT NULL);
CREATE UNIQUE INDEX api_keys_prefix ON public.api_keys USING btree (prefix);
CREATE INDEX api_keys_site ON public.api_keys USING btree (site_id);
CREATE INDEX audit_at ON public.audit USING btree (at);
CREATE INDEX audit_resource ON public.audit USING btree (resource, resource_id);
CREATE INDEX audit_site ON public.audit USING btree (site_id);
CREATE UNIQUE INDEX containers_hostname ON public.containers USING btree (site_id, hostname);
CREATE UNIQUE INDEX containers_ipv4 ON public.containers USING btree (site_id, ipv4_address) WHERE (ipv4_address <> ''::text);
CREATE UNIQUE INDEX containers_mac ON public.containers USING btree (site_id, mac_address) WHERE (mac_address <> ''::text);
CREATE INDEX containers_node ON public.containers USING btree (node_id, site_id);
CREATE UNIQUE INDEX containers_vmid ON public.containers USING btree (node_id, vmid) WHERE (vmid IS NOT NULL);
CREATE UNIQUE INDEX enrollments_prefix ON public.enrollments USING btree (prefix);
CREATE INDEX enrollments_site ON public.enrollments USING btree (site_id);
CREATE INDEX events_agent ON public.events USING btree (agent_id, at);
CREATE INDEX events_at ON public.events USING btree (at);
CREATE INDEX events_site ON public.events USING btree (site_id, at);
CREATE UNIQUE INDEX external_domains_name ON public.external_domains USING btree (name);
CREATE INDEX external_domains_site ON public.external_domains USING btree (default_site_id);
CREATE INDEX nodes_site ON public.nodes USING btree (site_id);
CREATE INDEX notification_deliveries_episode ON public.notification_deliveries USING btree (episode_id);
CREATE INDEX notification_episodes_closed ON public.notification_episodes USING btree (closed_at);
CREATE UNIQUE INDEX notification_episodes_open ON public.notification_episodes USING btree (agent_id, family, subject) WHERE (closed_at IS NULL);
CREATE UNIQUE INDEX notification_silences_site ON public.notification_silences USING btree (site_id);
CREATE UNIQUE INDEX notification_targets_name ON public.notification_targets USING btree (lower(name));
CREATE INDEX revisions_created ON public.revisions USING btree (created_at);
CREATE UNIQUE INDEX revisions_number ON public.revisions USING btree (site_id, number);
CREATE INDEX services_container ON public.services USING btree (container_id, site_id);
CREATE UNIQUE INDEX services_dns ON public.services USING btree (container_id, dns_name, internal_port) WHERE (type = 'dns'::text);
CREATE INDEX services_domain ON public.services USING btree (external_domain_id);
CREATE UNIQUE INDEX services_http ON public.services USING btree (external_hostname, external_domain_id) WHERE (type = 'http'::text);
CREATE INDEX services_site ON public.services USING btree (site_id);
CREATE UNIQUE INDEX services_transport ON public.services USING btree (site_id, protocol, external_port) WHERE (type = 'transport'::text);
CREATE INDEX sessions_expiry ON public.sessions USING btree (expiry);
CREATE INDEX sessions_user ON public.sessions USING btree (user_id);
CREATE UNIQUE INDEX sites_name ON public.sites USING btree (lower(name));
CREATE UNIQUE INDEX users_identity ON public.users USING btree (issuer, subject) WHERE (issuer <> ''::text);
CREATE UNIQUE INDEX users_name ON public.users USING btree (name);
CREATE UNIQUE INDEX volumes_host_path ON public.volumes USING btree (site_id, host_path);
CREATE UNIQUE INDEX volumes_mount_path ON public.volumes USING btree (container_id, mount_path);
CREATE UNIQUE INDEX volumes_name ON public.volumes USING btree (container_id, name);
CREATE TRIGGER agents_count AFTER DELETE ON public.agents FOR EACH ROW EXECUTE FUNCTION public.scope_count('agents');
CREATE TRIGGER agents_report AFTER INSERT OR DELETE OR UPDATE OF changed_at ON public.agents FOR EACH ROW EXECUTE FUNCTION public.agents_report();
CREATE TRIGGER api_keys_count AFTER INSERT OR DELETE OR UPDATE OF name, role, site_id, prefix, hash, expires_at, revoked_at ON public.api_keys FOR EACH ROW EXECUTE FUNCTION public.scope_count('keys');
CREATE TRIGGER change_counters_notify AFTER INSERT OR UPDATE ON public.change_counters FOR EACH ROW EXECUTE FUNCTION public.change_counters_notify();
CREATE TRIGGER changed_count INSTEAD OF INSERT ON public.changed FOR EACH ROW EXECUTE FUNCTION public.changed_count();
CREATE TRIGGER changed_unconfirm INSTEAD OF INSERT ON public.changed FOR EACH ROW EXECUTE FUNCTION public.changed_unconfirm();
CREATE TRIGGER confirmed_removals_count AFTER INSERT ON public.confirmed_removals FOR EACH ROW EXECUTE FUNCTION public.site_reread();
CREATE TRIGGER containers_claim AFTER INSERT OR DELETE OR UPDATE OF site_id, hostname, ipv4_address ON public.containers FOR EACH ROW EXECUTE FUNCTION public.containers_claim();
CREATE TRIGGER containers_count AFTER INSERT OR DELETE OR UPDATE ON public.containers FOR EACH ROW EXECUTE FUNCTION public.inventory_count();
CREATE TRIGGER external_domains_claim AFTER INSERT OR DELETE OR UPDATE OF name ON public.external_domains FOR EACH ROW EXECUTE FUNCTION public.external_domains_claim();
CREATE TRIGGER external_domains_count AFTER INSERT OR DELETE OR UPDATE ON public.external_domains FOR EACH ROW EXECUTE FUNCTION public.external_domains_count();
CREATE TRIGGER nodes_claim AFTER INSERT OR DELETE OR UPDATE OF site_id, name, ipv4_address ON public.nodes FOR EACH ROW EXECUTE FUNCTION public.nodes_claim();
CREATE TRIGGER nodes_count AFTER INSERT OR DELETE OR UPDATE ON public.nodes FOR EACH ROW EXECUTE FUNCTION public.inventory_count();
CREATE TRIGGER pins_count AFTER INSERT OR DELETE OR UPDATE ON public.pins FOR EACH ROW EXECUTE FUNCTION public.pins_count();
CREATE TRIGGER services_claim AFTER INSERT OR DELETE OR UPDATE OF type, external_hostname, external_domain_id ON public.services FOR EACH ROW EXECUTE FUNCTION public.services_claim();
CREATE TRIGGER services_count AFTER INSERT OR DELETE OR UPDATE ON public.services FOR EACH ROW EXECUTE FUNCTION public.inventory_count();
CREATE TRIGGER sites_count AFTER INSERT OR DELETE OR UPDATE ON public.sites FOR EACH ROW EXECUTE FUNCTION public.sites_count();
CREATE TRIGGER volumes_count AFTER INSERT OR DELETE OR UPDATE OF id, site_id, container_id, name, mount_path, mode, host_path, uid, gid ON public.volumes FOR EACH ROW EXECUTE FUNCTION public.inventory_count();
CREATE TRIGGER volumes_count_result AFTER UPDATE OF status, status_message ON public.volumes FOR EACH ROW EXECUTE FUNCTION public.site_reread();
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.confirmed_removals
    ADD CONSTRAINT confirmed_removals_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_node_id_site_id_fkey FOREIGN KEY (node_id, site_id) REFERENCES public.nodes(id, site_id);
ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.enrollments
    ADD CONSTRAINT enrollments_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES public.api_keys(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.enrollments
    ADD CONSTRAINT enrollments_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.external_domains
    ADD CONSTRAINT external_domains_default_site_id_fkey FOREIGN KEY (default_site_id) REFERENCES public.sites(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT nodes_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.notification_deliveries
    ADD CONSTRAINT notification_deliveries_episode_id_fkey FOREIGN KEY (episode_id) REFERENCES public.notification_episodes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.notification_deliveries
    ADD CONSTRAINT notification_deliveries_target_id_fkey FOREIGN KEY (target_id) REFERENCES public.notification_targets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.notification_episodes
    ADD CONSTRAINT notification_episodes_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.notification_silences
    ADD CONSTRAINT notification_silences_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.pins
    ADD CONSTRAINT pins_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.pins
    ADD CONSTRAINT pins_site_id_revision_fkey FOREIGN KEY (site_id, revision) REFERENCES public.revisions(site_id, number) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.revisions
    ADD CONSTRAINT revisions_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_container_id_site_id_fkey FOREIGN KEY (container_id, site_id) REFERENCES public.containers(id, site_id);
ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_external_domain_id_fkey FOREIGN KEY (external_domain_id) REFERENCES public.external_domains(id);
ALTER TABLE ONLY public.services
    ADD CONSTRAINT services_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.volumes
    ADD CONSTRAINT volumes_container_id_site_id_fkey FOREIGN KEY (container_id, site_id) REFERENCES public.containers(id, site_id);
ALTER TABLE ONLY public.volumes
    ADD CONSTRAINT volumes_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id);
