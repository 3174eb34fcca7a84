"""Make metrics and spans of requests, for Prometheus and for OpenTelemetry, with nothing installed.

    metrics = Metrics(app)               # metrics.text() is a page for Prometheus
    observe(app, metrics.observe, Spans(print).observe, access_log(print))

observe() is a middleware: call it before other middlewares are registered, so that it is around
them. Names and units are those of OpenTelemetry's conventions for MCP, and their Prometheus form.
"""

import asyncio
import collections
import http.server
import json
import os
import re
import threading
import time
import types

from mcp_lite import METHODS, REVISIONS, Suspended

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # seconds
NAME = "mcp_server_operation_duration_seconds"


def observe(app, *functions):
    """Call functions with a record of each request, when it has ended, on the event loop."""

    @app.middleware
    async def watch(ctx, call_next):
        record, began = begin(ctx), time.perf_counter()
        try:
            answer = await call_next(ctx)
            kind = answer.get("resultType", "complete")
            record.outcome = "result" if kind == "complete" else kind
            if record.outcome == "result" and answer.get("isError"):
                record.outcome = "tool_error"
            return answer
        except Suspended:
            record.outcome = "input_required"
            raise
        except asyncio.CancelledError:
            record.outcome = "cancelled"
            raise
        except BaseException as exc:
            record.outcome, record.code = "error", getattr(exc, "code", -32603)
            raise
        finally:
            record.ms = (time.perf_counter() - began) * 1000
            for function in functions:
                function(record)


def begin(ctx):
    """Return the record of a request that begins; its span is a child of the client's."""
    trace = str(ctx.meta.get("traceparent"))
    told = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", trace)
    target = next((ctx.params[key] for key in ("name", "uri", "taskId") if key in ctx.params), "")
    return types.SimpleNamespace(
        time=time.time(), ms=0.0, outcome="", code=None,
        method=ctx.method[:100], target=str(target)[:100], revision=ctx.revision,
        request_id=ctx.request_id, principal=str(ctx.principal or ""),
        session=ctx.headers.get("mcp-session-id", "")[:8], address=ctx.caller.address,
        trace_id=told[1] if told else os.urandom(16).hex(), parent_id=told[2] if told else "",
        span_id=os.urandom(8).hex(),
    )  # fmt: skip


def access_log(write):
    """Return a function for observe() that writes a line of JSON for each request."""

    def observe(record):
        known = {key: value for key, value in vars(record).items() if value not in ("", None)}
        write(json.dumps({**known, "ms": round(record.ms, 1)}))

    return observe


def error_type(record):
    """Return what went wrong, "" if nothing: a code, or what a record calls it."""
    if record.outcome in ("result", "input_required", "task"):
        return ""
    return record.outcome if record.code is None else str(record.code)


def known(name, names):
    """Return a name if it is one of those, else "_other"; "" stays."""
    return name if not name or name in names else "_other"


def quote(value):
    """Return the value of a label as Prometheus reads it."""
    return json.dumps(value, ensure_ascii=False)  # it escapes what Prometheus escapes: \\ \" \n


class Metrics:
    """A histogram of durations, by method, tool, error and revision.

    A client may send any name. Those that the app does not have become "_other", or there would be
    no end of time series.
    """

    def __init__(self, app):
        self.app, self.lock = app, threading.Lock()
        self.counts = collections.defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.sums = collections.Counter()

    def observe(self, record):
        """Count a request."""
        tool = record.target if record.method == "tools/call" else ""
        labels = (
            known(record.method, {*METHODS, *self.app.methods}),
            known(tool, self.app.tools),
            error_type(record),
            known(record.revision, REVISIONS),
        )
        seconds = record.ms / 1000
        with self.lock:
            self.counts[labels][sum(seconds > bound for bound in BUCKETS)] += 1
            self.sums[labels] += seconds

    def text(self):
        """Return all, in the text format of Prometheus."""
        lines = [f"# TYPE {NAME} histogram"]
        names = ("mcp_method_name", "gen_ai_tool_name", "error_type", "mcp_protocol_version")
        with self.lock:
            for labels, counts in self.counts.items():
                named = zip(names, labels)
                own = ",".join(f"{name}={quote(value)}" for name, value in named if value)
                total = 0
                for bound, count in zip((*BUCKETS, "+Inf"), counts):
                    total += count
                    lines.append(f'{NAME}_bucket{{{own},le="{bound}"}} {total}')
                lines.append(f"{NAME}_sum{{{own}}} {self.sums[labels]:.6f}")
                lines.append(f"{NAME}_count{{{own}}} {total}")
        return "\n".join(lines) + "\n"

    def serve(self, port, host="127.0.0.1"):
        """Serve the page at a port of its own, from a thread; return the server, to be closed."""
        metrics = self

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = metrics.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer((host, port), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


class Spans:
    """A span for each request, a child of the span whose trace context the client sent."""

    def __init__(self, write, service="mcp_lite"):
        self.write, self.service = write, service

    def observe(self, record):
        """Write the span of a request."""
        self.write(json.dumps(self.export(record)))

    def export(self, record):
        """Return what an OTLP collector takes at /v1/traces."""
        about = {"service.name": self.service}
        span = {"scopeSpans": [{"scope": {"name": "mcp_lite"}, "spans": [self.span(record)]}]}
        return {"resourceSpans": [{"resource": {"attributes": pairs(about)}, **span}]}

    def span(self, record):
        """Return the span."""
        named = record.method in ("tools/call", "prompts/get") and record.target
        attributes = {
            "mcp.method.name": record.method,
            "mcp.protocol.version": record.revision,
            "mcp.session.id": record.session,
            "jsonrpc.request.id": "" if record.request_id is None else str(record.request_id),
            "client.address": record.address,
            "network.transport": "tcp" if record.address else "pipe",
            "error.type": error_type(record),
        }
        if record.method == "tools/call":
            attributes.update({"gen_ai.tool.name": record.target,
                               "gen_ai.operation.name": "execute_tool"})  # fmt: skip
        elif record.method == "prompts/get":
            attributes["gen_ai.prompt.name"] = record.target
        elif record.method.startswith("resources/"):
            attributes["mcp.resource.uri"] = record.target
        began = int(record.time * 1e9)
        return {
            "traceId": record.trace_id,
            "spanId": record.span_id,
            **({"parentSpanId": record.parent_id} if record.parent_id else {}),
            "name": f"{record.method} {record.target}" if named else record.method,
            "kind": 2,  # SERVER
            "startTimeUnixNano": str(began),
            "endTimeUnixNano": str(began + int(record.ms * 1e6)),
            "attributes": pairs(attributes),
            "status": {"code": 2 if attributes["error.type"] else 0},
        }


def pairs(attributes):
    """Return attributes as OTLP has them, those without a value left out."""
    return [{"key": key, "value": {"stringValue": value}}
            for key, value in attributes.items() if value]  # fmt: skip
