#!/usr/bin/env python3
"""Tools in front of a REST API that wants a key.

    WEATHER_KEY=... python3 weather.py            on stdin and stdout
    python3 mcp_lite.py serve --http 8000 weather.py

WEATHER_URL names the API; stand_in.py beside this file is one for tests. The key comes from the
environment. No model, client or log ever gets to see it.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Annotated, Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # where mcp_lite.py may be

from mcp_lite import Server, ToolError  # noqa: E402

API = os.environ.get("WEATHER_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("WEATHER_KEY", "")
SECONDS = 10.0
MAX_BYTES = 1_000_000

app = Server("weather", "1.0", instructions="Current weather and forecasts for cities.")

City = Annotated[str, {"minLength": 1, "maxLength": 100}, "The name of a city, in English"]


def get(path: str, **query: Any) -> Any:
    """Ask the API, and say in words that help a model what went wrong."""
    url = f"{API}{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return json.loads(response.read(MAX_BYTES))
    except urllib.error.HTTPError as exc:
        exc.close()
        if exc.code in (401, 403):
            raise ToolError("the weather service refused our key: tell the user") from None
        if exc.code == 404:
            raise ToolError("no such city: check the spelling, or try a larger city") from None
        if exc.code == 429:
            raise ToolError("too many requests: try again in a minute") from None
        raise ToolError(f"the weather service failed with status {exc.code}") from None
    except (OSError, ValueError):
        raise ToolError("the weather service does not respond: try again later") from None


@dataclass
class Weather:
    city: str
    degrees: float
    sky: str


@app.tool(annotations={"readOnlyHint": True, "openWorldHint": True})
def weather(city: City) -> Weather:
    """Return the weather in a city now, in degrees Celsius."""
    # Pass on what the model needs, not all that the API returns.
    found = get("/v1/now", city=city)
    return Weather(found["city"], found["temperature"], found["sky"])


@app.tool(annotations={"readOnlyHint": True, "openWorldHint": True})
def forecast(city: City, days: Annotated[int, {"minimum": 1, "maximum": 7}] = 3) -> list[Weather]:
    """Return the weather in a city for the next days."""
    found = get("/v1/forecast", city=city, days=days)
    return [Weather(found["city"], day["temperature"], day["sky"]) for day in found["days"]]


if __name__ == "__main__":
    if not KEY:
        sys.exit("the variable WEATHER_KEY is not set")
    app.run()
