"""Make metrics and spans of records, for Prometheus and for OpenTelemetry, with nothing installed.

    metrics = Metrics(app)
    app.observe(metrics.observe)         # metrics.text() is a page for Prometheus
    app.observe(Spans(print).observe, spans=True)    # print() gets each span, as OTLP in JSON

Names and units are those of OpenTelemetry's conventions for MCP, and their Prometheus form.
"""

import collections
import http.server
import json
import threading

from mcp_lite import METHODS, REVISIONS

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # seconds
NAME = "mcp_server_operation_duration_seconds"


def error_type(record):
    """Return what went wrong, "" if nothing: a code, or what a record calls it."""
    if record.outcome in ("result", "input_required", "task", "heard"):
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
        """Count a request. Notifications take no time, and may have any name; a page has none."""
        if record.outcome == "heard" or not (record.method or record.outcome == "refused"):
            return
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
    """A span for each request, a child of the span whose trace context the client sent.

    What a request causes at other servers by forwarding is a child of its span.
    """

    def __init__(self, write, service="mcp_lite"):
        self.write, self.service = write, service

    def observe(self, record):
        """Write the span of a request."""
        if record.method:
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
