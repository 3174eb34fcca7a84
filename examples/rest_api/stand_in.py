#!/usr/bin/env python3
"""A REST API for tests: weather for two cities, if the key is right.

python3 stand_in.py PORT KEY
"""

import http.server
import json
import sys
import urllib.parse

CITIES = {"Oslo": (-3.5, "snow"), "Rome": (14.0, "sun")}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        city = query.get("city", "")
        if self.headers["Authorization"] != f"Bearer {sys.argv[2]}":
            self.answer(401, {"error": "wrong key"})
        elif city not in CITIES:
            self.answer(404, {"error": f"no city {city}", "internal": "table cities, row 0"})
        elif url.path == "/v1/now":
            self.answer(200, {"city": city, "station": "x-17", **self.day(city)})
        else:
            days = [self.day(city) for _ in range(int(query["days"]))]
            self.answer(200, {"city": city, "days": days})

    def day(self, city: str) -> dict:
        degrees, sky = CITIES[city]
        return {"temperature": degrees, "sky": sky, "pressure": 1013, "sensor": "ok"}

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    with http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
