"""Where a token is typed in, on a console that asks for one."""

from __future__ import annotations

import html
import re
from typing import Final

from frazil.console.guard import COOKIE, SESSION_SECONDS, NotKnown
from frazil.console.visit import Visit, html_answer, redirect
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer

_OWN_PATH: Final = re.compile(r"/(?!/)[!-\[\]-~]*")


def ask(visit: Visit, *, back: str, is_wrong: bool = False) -> Answer:
    """Return the page that asks for a token; `back` is where to go after it."""
    return html_answer(visit.html("sign_in.html", back=back, is_wrong=is_wrong), code=401)


def sign_in(visit: Visit, method: str, *, is_secure: bool) -> Answer:
    """Take a token, and lead back to the page that was asked for."""
    back = visit.form.get("back", "/")
    # Browsers drop tabs and line breaks, and take a backslash for a slash: either could lead to another site.
    if not _OWN_PATH.fullmatch(back):
        back = "/"
    if method != "POST":
        return ask(visit, back="/")
    try:
        key = visit.console.guard.begin_session(visit.form.get("token", ""))
    except NotKnown:
        return ask(visit, back=back, is_wrong=True)
    return redirect(back, _cookie(key, is_secure=is_secure))


def sign_in_by_address(visit: Visit, path: str, token: str, *, is_secure: bool) -> Answer | None:
    """Take the token of an address that the server printed, and lead to its page; None if the token is not valid.

    The page leads on by itself: a cookie of this site is not sent with a redirect that began at another.
    """
    try:
        key = visit.console.guard.begin_session(token)
    except NotKnown:
        return None
    target = path if _OWN_PATH.fullmatch(path) else "/"
    page = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(target)}">'
    return html_answer(Html(page), headers=_cookie(key, is_secure=is_secure))


def _cookie(key: str, *, is_secure: bool) -> dict[str, str]:
    flags = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{'; Secure' if is_secure else ''}"
    return {"set-cookie": f"{COOKIE}={key}; {flags}"}
