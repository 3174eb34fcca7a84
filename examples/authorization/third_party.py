"""A server whose people log in elsewhere: at GitHub, say, or at the company's provider.

    python client.py --third-party      # plays the whole of it, with a third party of its own

To MCP clients it is the authorization server of server.py. To the third party it is a client, with
an id and a secret of its own. The user agrees on our page, logs in at the third party, and comes
back; the tokens that our client gets then are ours, bound to what the third party gave us.
spec 2025-03-26: basic/authorization#third-party-authorization-flow

What keeps it safe, beyond what server.py does, and must stay if you copy it:
  * everybody agrees on our page first, for this client, each time: to the third party all clients
    are one, so its page is not asked of the right one. Else a stranger's link gets a code of yours;
  * who comes back is the browser that agreed: a state that works once, and the browser's cookie;
  * the third party's tokens stay here, in memory; no client ever sees them, nor it ours;
  * before a token of ours counts, the third party is asked whether its own still does; what it ends
    is ended here, and when it cannot be asked, nobody comes in.
"""

import asyncio
import base64
import json
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import quote_plus, urlencode

from server import PAGE_HEADERS, Authority, Problem, hashed, read_query, remember

from mcp_lite import code_challenge

BROWSER_SECONDS = 600  # for the user to come back from the third party
CHECK_SECONDS = 30  # for which the third party's word on a token is good
CALL_SECONDS = 10  # for the third party to answer
MAX_ANSWER_BYTES = 1024 * 1024


@dataclass
class ThirdParty:
    """Where people log in, and who we are there."""

    issuer: str
    authorize: str  # its pages: to agree, to get tokens, and to say whose a token is
    token: str
    me: str
    client_id: str
    client_secret: str = ""
    extra: tuple = ()  # pairs that its authorization request needs besides: scope, resource ...


@dataclass
class Session:
    """What the third party gave us for one login of one person."""

    person: str
    access: str
    refresh: str
    until: float  # the access token's end
    checked: float  # when it was last found good


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        """Follow none: they would carry codes and secrets to where nobody meant them to go."""


def fetch(url, form=None, headers=()):
    """Return status and JSON of a page of the third party; OSError if it cannot be asked."""
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, data, {"accept": "application/json", **dict(headers)})
    try:
        answer = urllib.request.build_opener(NoRedirect).open(request, timeout=CALL_SECONDS)
    except urllib.error.HTTPError as exc:
        answer = exc
    with answer:
        status, body = answer.status, answer.read(MAX_ANSWER_BYTES)
    if not (200 <= status < 300 or status in (400, 401, 403)):
        raise OSError(f"{url} answered {status}")
    doc = json.loads(body) if status < 300 else {}
    return status, doc if isinstance(doc, dict) else {}


class Delegating(Authority):
    """The authorization server of server.py, but people log in at a third party."""

    fields = ""  # no password on our page

    def __init__(self, root, database, third):
        super().__init__(root, database)
        self.third = third
        self.away = {}  # who is at the third party, by state: (asked, verifier, browser, until)
        # By family of our tokens. When the process ends, so do they, and people log in again. To
        # keep them, use a store for secrets: hashes would not do, since these are used.
        self.sessions = {}
        self.turns = {}  # one at a time asks about a family

    def mount(self, app):
        """Serve the pages."""
        super().mount(app)
        app.route("GET", "/callback", public=True)(self.safely(self.come_back))

    # The person's way.

    def answer(self, request):
        """Send whoever has agreed to the third party."""
        asked, form = self.answered(request)
        if form.get("answer") != "yes":
            return self.back(asked)
        now = time.time()
        self.tidy(now)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        browser = hashed(self.browser(request))
        remember(self.away, state, (asked, verifier, browser, now + BROWSER_SECONDS))
        where = self.third.authorize + "?" + urlencode({
            "response_type": "code", "client_id": self.third.client_id, "state": state,
            "redirect_uri": self.root + "/callback", "code_challenge": code_challenge(verifier),
            "code_challenge_method": "S256", **dict(self.third.extra),
        })  # fmt: skip
        return 303, {**PAGE_HEADERS, "location": where}, ""

    async def come_back(self, request):
        """Take the third party's answer, and send the browser on to the client."""
        params = read_query(request.query)
        known = self.away.get(params.get("state"), (None, "", b"", 0))
        asked, verifier, browser, until = known
        if until < time.time() or hashed(self.browser(request)) != browser:
            raise Problem("access_denied", 403)  # another browser than the one that agreed
        del self.away[params["state"]]
        if params.get("iss", self.third.issuer) != self.third.issuer or not params.get("code"):
            return self.back(asked)
        form = {"grant_type": "authorization_code", "code": params["code"],
                "redirect_uri": self.root + "/callback", "code_verifier": verifier}  # fmt: skip
        try:
            session = await self.session_of(form, "")
        except (OSError, ValueError):
            return self.back(asked)
        if session is None:
            return self.back(asked)
        family = secrets.token_hex(8)
        self.sessions[family] = session
        return self.back(asked, session.person, family)

    # The third party's tokens.

    async def session_of(self, form, refresh):
        """Return what the third party gives for a grant, and whose it is; None if it refuses."""
        third, headers = self.third, {}
        form = {**form, **{key: text for key, text in third.extra if key == "resource"}}
        if third.client_secret:
            pair = f"{quote_plus(third.client_id)}:{quote_plus(third.client_secret)}".encode()
            headers["authorization"] = "Basic " + base64.b64encode(pair).decode()
        else:
            form["client_id"] = third.client_id
        status, doc = await asyncio.to_thread(fetch, third.token, form, headers)
        if status != 200 or not isinstance(doc.get("access_token"), str):
            return None
        now, life = time.time(), doc.get("expires_in", 3600)
        person = await self.whose(doc["access_token"])
        if person is None:
            return None
        refresh = doc.get("refresh_token", refresh)
        return Session(person, doc["access_token"], refresh, now + float(life), now)

    async def whose(self, token):
        """Return whose a token of the third party is; None if it is good no longer."""
        headers = {"authorization": f"Bearer {token}"}
        status, doc = await asyncio.to_thread(fetch, self.third.me, None, headers)
        return str(doc["sub"]) if status == 200 and doc.get("sub") else None

    async def lives(self, family):
        """Return whether the third party still stands by a login. OSError if nobody can say."""
        async with self.turns.setdefault(family, asyncio.Lock()):
            session, now = self.sessions.get(family), time.time()
            if session is None:
                self.end(family)
                return False
            if session.checked > now - CHECK_SECONDS and session.until > now:
                return True
            found = session
            if session.until <= now or await self.whose(session.access) != session.person:
                found = await self.renewed(session)
            if found is None or found.person != session.person:  # nobody, or somebody else
                self.end(family)
            if family not in self.sessions:  # it was ended, perhaps while we asked
                return False
            found.checked = now
            self.sessions[family] = found
            return True

    async def renewed(self, session):
        """Return a session with another token, None if the third party gives none."""
        if not session.refresh:
            return None
        form = {"grant_type": "refresh_token", "refresh_token": session.refresh}
        return await self.session_of(form, session.refresh)

    def tidy(self, now):
        """Forget what no token of ours needs any more."""
        query = "SELECT family FROM tokens WHERE until > ? UNION SELECT family FROM codes"
        needed = {family for (family,) in self.db.execute(query + " WHERE until > ?", (now, now))}
        for family in set(self.sessions) - needed:
            self.end(family)

    def end(self, family):
        """Forget all that a login gave: our tokens, and the third party's."""
        super().end(family)
        self.sessions.pop(family, None)
        self.turns.pop(family, None)
