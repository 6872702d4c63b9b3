"""The sign-in page of a console that requires a token."""

from __future__ import annotations

import html
import re
from typing import Final

from frazil.console.guard import COOKIE, SESSION_SECONDS, Unauthenticated
from frazil.console.visit import Visit, html_answer, redirect
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer

_OWN_PATH: Final = re.compile(r"/(?!/)[!-\[\]-~]*")


def ask(visit: Visit, *, back: str, is_wrong: bool = False) -> Answer:
    """Return the sign-in page; `back` is the page to continue to."""
    return html_answer(visit.html("sign_in.html", back=back, is_wrong=is_wrong), code=401)


def sign_in(visit: Visit, method: str, *, is_secure: bool) -> Answer:
    """Accept a token, and redirect to the requested page."""
    back = visit.form.get("back", "/")
    # Browsers drop tabs and line breaks, and treat a backslash as a slash: either could lead to another site.
    if not _OWN_PATH.fullmatch(back):
        back = "/"
    if method != "POST":
        return ask(visit, back="/")
    try:
        key = visit.console.guard.begin_session(visit.form.get("token", ""))
    except Unauthenticated:
        return ask(visit, back=back, is_wrong=True)
    return redirect(back, _cookie(key, is_secure=is_secure))


def sign_in_by_address(visit: Visit, path: str, token: str, *, is_secure: bool) -> Answer | None:
    """Accept the token of an address printed by the server, and redirect to its page; return None if it is invalid.

    The page redirects by itself, since a cookie is not sent with an HTTP redirect that began at another site.
    """
    try:
        key = visit.console.guard.begin_session(token)
    except Unauthenticated:
        return None
    target = path if _OWN_PATH.fullmatch(path) else "/"
    page = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(target)}">'
    return html_answer(Html(page), headers=_cookie(key, is_secure=is_secure))


def _cookie(key: str, *, is_secure: bool) -> dict[str, str]:
    flags = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{'; Secure' if is_secure else ''}"
    return {"set-cookie": f"{COOKIE}={key}; {flags}"}
