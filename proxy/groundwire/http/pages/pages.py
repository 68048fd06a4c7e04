"""The handlers of the pages: sign-in and sign-out, exchanges, the queue, decisions, an export, quality."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal, TypeVar, get_args
from urllib.parse import quote, urlencode

from pydantic import BeforeValidator, Field

from groundwire.dialects.reviews import (
    After,
    ClaimDecisionIn,
    DecisionIn,
    ExchangeQuery,
    ExportQuery,
    Query,
    ReviewQuery,
    State,
    read_asked,
)
from groundwire.domain import AnswerVerdict
from groundwire.errors import BadRequest, ReviewConflict, StoreUnavailable, TooManyRequests, UnknownReview
from groundwire.http.exchange import Handler
from groundwire.http.guard import SESSION, VISIT, Sessions, cookie, set_cookie
from groundwire.http.pages.exchange import Refused, exchange_view
from groundwire.http.pages.quality import BEFORE, RANGES, default_days, quality_view
from groundwire.http.pages.rendering import Rendering, form_fields, see_other
from groundwire.http.reviews import AuditedHistory, conditions, export_reply, finding_id, parameters, wanted
from groundwire.judge import VERIFIERS
from groundwire.scoring.aggregate import FLAGS
from groundwire.storage.history.reviews import MAX_COUNTED, Decided, Finding, Wanted
from groundwire.wire import Call, Reply, header

_ON_A_PAGE = 25
_IN_A_CARD = 12  # findings of an answer that the queue shows; its page has all
_OURS = re.compile(r"/(reviews|quality|exchanges(/[^/?#\s\\]+)?)(\?[^#\s\\]*)?", re.ASCII)
_LONGEST_RANGE = 366
_LONGEST_FORM = 64 * 2**10  # bytes; notes of 4,000 characters fit, however they are encoded

_VERIFIERS = (*(name for name, _ in VERIFIERS), "consistency")

Q = TypeVar("Q", bound=Query)
Day = Annotated[date | None, BeforeValidator(lambda value: value or None)]


class ListForm(Query):
    """The filters of a list as its form sends them; the last day counts in."""

    flag: str = ""
    verifier: str = ""
    model: str = ""
    subject: str = ""
    since: Day = None
    until: Day = None
    after: After = None

    @property
    def conditions(self) -> str:
        """The filters as a query, without the place in the list."""
        return urlencode({name: str(value) for name, value in self if value and name != "after"})

    def query(self, shape: type[Q]) -> Q:
        """Return the page of the list in the shape of the API's query."""
        until = self.until + timedelta(days=1) if self.until else None
        days = {"since": self.since and self.since.isoformat(), "until": until and until.isoformat()}
        return read_asked(shape, self.model_dump() | days | {"limit": _ON_A_PAGE})


class QueueForm(ListForm):
    """The filters of the queue."""

    state: State = "open"


class ExchangesForm(ListForm):
    """The filters of the exchanges; `q` holds words of question or answer."""

    q: str = ""
    session: str = ""
    tenant: str = ""
    verdict: str = ""
    state: Literal["any", "open", "decided"] = "any"
    sort: Literal["newest", "risk"] = "newest"

    @property
    def is_narrowed(self) -> bool:
        """True if a filter is set that the page hides at first."""
        hidden = ("flag", "verifier", "model", "subject", "session", "tenant", "since", "until")
        return any(getattr(self, name) for name in hidden)


class QualityForm(Query):
    """Of how many days quality is shown, of which model ("": all), and what it is compared with."""

    days: Annotated[int, Field(ge=1, le=_LONGEST_RANGE)] | None = None
    model: str = ""
    against: str = ""


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """One call of a page by an admin, with the token that its forms carry."""

    call: Call
    who: str
    token: str


PageHandler = Callable[[AdminRequest, Mapping[str, str]], Awaitable[Reply]]


class Pages:
    """The pages for signed-in admins."""

    def __init__(self, stored: AuditedHistory, sessions: Sessions, rendering: Rendering) -> None:
        self._stored = stored
        self._sessions = sessions
        self._rendering = rendering

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Path, method and handler of each page."""
        return (
            ("/sign-in", "GET", self._ask_for_key),
            ("/sign-in", "POST", self._sign_in),
            ("/sign-out", "POST", self._signed_in(self._sign_out)),
            ("/exchanges", "GET", self._signed_in(self._exchanges)),
            ("/reviews", "GET", self._signed_in(self._queue)),
            ("/reviews", "POST", self._signed_in(self._decide_on_claim)),
            ("/reviews/export", "GET", self._signed_in(self._export)),
            ("/reviews/{id}", "GET", self._signed_in(self._finding)),
            ("/reviews/{id}", "POST", self._signed_in(self._decide)),
            ("/exchanges/{id}", "GET", self._signed_in(self._exchange)),
            ("/quality", "GET", self._signed_in(self._quality)),
        )

    def _signed_in(self, handle: PageHandler) -> Handler:
        """Redirect to the sign-in page unless signed in, and reject forms from other sites."""

        async def handler(call: Call, params: Mapping[str, str]) -> Reply:
            session = cookie(call.headers, SESSION)
            who = self._sessions.admin_of(session, time.time())
            if who is None:
                return see_other(_sign_in_path(call))
            request = AdminRequest(call, who, self._sessions.form_token(session))
            if call.method == "POST" and not self._is_ours(call, session):
                return self._message(
                    request, 403, "This form is out of date", "Please go back, reload the page and try again."
                )
            try:
                return await handle(request, params)
            except StoreUnavailable as error:
                return self._message(request, 503, "The store cannot be reached", str(error))
            except UnknownReview as error:
                return self._message(request, 404, "Not found", str(error))
            except BadRequest as error:
                return self._message(request, 400, "That cannot be asked for", str(error))

        return handler

    def _is_ours(self, call: Call, session: str) -> bool:
        """Return whether a form comes from one of these pages: it has the token, and the browser names no other
        site.
        """
        site = header(call.headers, b"sec-fetch-site") or b"same-origin"
        return site == b"same-origin" and self._sessions.is_form_token(session, _form(call).get("token", ""))

    def _message(self, request: AdminRequest, status: int, title: str, text: str) -> Reply:
        return self._rendering.page("message.html", status, request=request, title=title, text=text)

    async def _ask_for_key(
        self, call: Call, _: Mapping[str, str], *, refused: bool = False, throttled: TooManyRequests | None = None
    ) -> Reply:
        if self._sessions.admin_of(cookie(call.headers, SESSION), time.time()):
            return see_other(_back(parameters(call).get("next")))
        given = _form(call) if call.method == "POST" else parameters(call)
        nonce = cookie(call.headers, VISIT) or secrets.token_hex(16)
        return self._rendering.page(
            "sign_in.html",
            429 if throttled else 403 if refused else 200,
            (set_cookie(VISIT, nonce, secure=_is_secure(call)), *(throttled.headers if throttled else ())),
            request=None,
            token=self._sessions.form_token(nonce),
            next=_back(given.get("next")),
            refused=refused,
            throttled=throttled,
            any_keys=self._sessions.any_keys,
        )

    async def _sign_in(self, call: Call, params: Mapping[str, str]) -> Reply:
        form = _form(call)
        try:
            session = self._sessions.open(form.get("key", "").strip(), time.time(), call.address)
        except TooManyRequests as error:
            return await self._ask_for_key(call, params, throttled=error)
        if session is None or not self._is_ours(call, cookie(call.headers, VISIT)):
            return await self._ask_for_key(call, params, refused=True)
        kept = set_cookie(SESSION, session, secure=_is_secure(call), lasts=self._sessions.lasts)
        return see_other(_back(form.get("next")), (kept,))

    async def _sign_out(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        return see_other("/sign-in", (set_cookie(SESSION, "", secure=_is_secure(request.call), lasts=0),))

    async def _exchanges(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        form, reviews = read_asked(ExchangesForm, parameters(request.call)), self._stored.history.reviews
        query = conditions(form.query(ExchangeQuery))
        page = await self._stored.exchanges(request.who, query, form.after, _ON_A_PAGE)
        return self._rendering.page(
            "exchanges.html",
            here="exchanges",
            request=request,
            form=form,
            exchanges=page.items,
            after=page.after,
            waiting=await reviews.waiting([each.seq for each in page.items]),
            open=await reviews.open(),
            most=MAX_COUNTED,
            verdicts=get_args(AnswerVerdict),
            flags=FLAGS,
            verifiers=_VERIFIERS,
            models=await self._models(),
        )

    async def _queue(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        form = read_asked(QueueForm, parameters(request.call))
        page = await self._stored.answers(request.who, wanted(form.query(ReviewQuery)), form.after, _ON_A_PAGE)
        return self._rendering.page(
            "queue.html",
            here="reviews",
            request=request,
            form=form,
            answers=page.items,
            after=page.after,
            in_card=_IN_A_CARD,
            open=await self._stored.history.reviews.open(),
            most=MAX_COUNTED,
            states=get_args(State),
            flags=FLAGS,
            models=await self._models(),
            back="?".join(filter(None, ("/reviews", urlencode(parameters(request.call))))),
        )

    async def _models(self) -> tuple[str, ...]:
        """The models of late, to choose from."""
        end = datetime.now(UTC).date() + timedelta(days=1)
        return tuple(
            model for model, _ in await self._stored.history.trends.totals("model", end - timedelta(days=90), end)
        )

    async def _export(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        given = parameters(request.call)
        kind = given.pop("format", "csv")
        form = read_asked(QueueForm, {"state": "decided", **given})
        query = form.query(ReviewQuery).model_dump(exclude={"after", "limit"})
        asked = read_asked(ExportQuery, query | {"format": kind})
        return export_reply(await self._stored.export(request.who, wanted(asked)), asked.format)

    async def _exchange(
        self, request: AdminRequest, params: Mapping[str, str], refused: Refused | None = None
    ) -> Reply:
        found = await self._stored.exchange(request.who, params["id"])
        if found is None:
            raise UnknownReview("No exchange is stored under this id (any more).", param="id")
        stored, findings = found
        view = exchange_view(
            stored, findings, await self._earlier(findings), refused, await self._next_open(findings, params["id"])
        )
        back = f"/exchanges/{quote(params['id'], safe='')}"
        status = 409 if refused else 200
        return self._rendering.page("exchange.html", status, here="exchanges", request=request, view=view, back=back)

    async def _earlier(self, findings: tuple[Finding, ...]) -> Mapping[int, tuple[Decided, ...]]:
        """The decisions that were made on findings and then made again."""
        changed = [finding.id for finding in findings if finding.version > 1]
        return {id_: (await self._stored.history.reviews.decisions(id_))[:-1] for id_ in changed}

    async def _next_open(self, findings: tuple[Finding, ...], exchange: str) -> Finding | None:
        """Return the first open finding of another exchange: of the next older one, or else of the newest."""
        first = min((finding.id for finding in findings), default=None)
        for after in (first, None):
            page = await self._stored.history.reviews.page(Wanted("open"), after, limit=_ON_A_PAGE)
            others = [each for each in page.items if each.exchange != exchange]
            if others:
                return [each for each in others if each.exchange == others[0].exchange][-1]
        return None

    async def _finding(self, _: AdminRequest, params: Mapping[str, str]) -> Reply:
        """Redirect to the exchange of a finding; a rejected decision leaves this path in the browser's address bar."""
        found = await self._stored.history.reviews.get(finding_id(params["id"]))
        if found is None:
            raise UnknownReview("There is no finding with this id (any more).", param="id")
        return see_other(f"/exchanges/{quote(found.exchange, safe='')}#finding-{found.id}")

    async def _decide(self, request: AdminRequest, params: Mapping[str, str]) -> Reply:
        form = _form(request.call)
        back = _back(form.pop("back", None))
        said = read_asked(DecisionIn, {name: value for name, value in form.items() if name != "token"})
        id_, note = finding_id(params["id"]), said.note.strip()
        try:
            found = await self._stored.decide(request.who, id_, said.version, said.decision, note)
        except ReviewConflict as conflict:
            current = await self._stored.history.reviews.get(id_)
            return await self._refused(request, current, note, conflict)
        if found is None:
            raise UnknownReview("There is no finding with this id (any more).", param="id")
        return see_other(f"{back}#finding-{await self._next_waiting(found, is_queue=back.startswith('/reviews'))}")

    async def _decide_on_claim(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        form = _form(request.call)
        given = read_asked(ClaimDecisionIn, {name: form[name] for name in form if name not in ("token", "back")})
        try:
            found = await self._stored.decide_on_claim(request.who, given)
        except ReviewConflict as conflict:
            of_exchange = await self._stored.history.reviews.of_exchange(given.exchange)
            of_claim = (each for each in of_exchange if (each.choice, each.claim) == (given.choice, given.claim))
            return await self._refused(request, next(of_claim, None), given.note, conflict)
        return see_other(f"/exchanges/{quote(found.exchange, safe='')}#finding-{found.id}")

    async def _refused(
        self, request: AdminRequest, current: Finding | None, note: str, conflict: ReviewConflict
    ) -> Reply:
        """Show the decision that came first."""
        if current is None:
            raise UnknownReview("It was deleted meanwhile.", param="id") from conflict
        return await self._exchange(request, {"id": current.exchange}, Refused(current.id, note, conflict))

    async def _next_waiting(self, decided: Finding, *, is_queue: bool) -> int:
        """Return the id of the next open finding of the same exchange, in the queue else of another, else this one."""
        findings = await self._stored.history.reviews.of_exchange(decided.exchange)
        waiting = [each.id for each in findings if each.decided is None]
        following = [id_ for id_ in waiting if id_ > decided.id]
        other = await self._next_open(findings, decided.exchange) if is_queue and not waiting else None
        return next(iter((*following, *waiting)), other.id if other else decided.id)

    async def _quality(self, request: AdminRequest, _: Mapping[str, str]) -> Reply:
        form = read_asked(QualityForm, parameters(request.call))
        days = form.days or await default_days(self._stored.history, time.time())
        view = await quality_view(self._stored.history, days, form.model or None, form.against, time.time())
        return self._rendering.page(
            "quality.html", here="quality", request=request, view=view, ranges=RANGES, before=BEFORE
        )


def _form(call: Call) -> dict[str, str]:
    return form_fields(call.body) if len(call.body) <= _LONGEST_FORM else {}


def _back(path: str | None) -> str:
    """Return the page to continue with: one of these pages, never another site."""
    return path if path and _OURS.fullmatch(path) else "/reviews"


def _sign_in_path(call: Call) -> str:
    """The sign-in page, which leads back to where a call wanted to go when that can be called again."""
    target = call.target if call.method == "GET" and _OURS.fullmatch(call.target) else ""
    return f"/sign-in?next={quote(target, safe='')}" if target else "/sign-in"


def _is_secure(call: Call) -> bool:
    """Return whether the browser uses TLS, which may end at a front proxy; unknown for GET."""
    return (header(call.headers, b"origin") or b"").startswith(b"https://")
