"""Where a token is typed in, on a console that asks for one."""

from __future__ import annotations

from frazil.console.guard import COOKIE, SESSION_SECONDS, NotKnown
from frazil.console.visit import Visit, html_answer, redirect
from frazil.serve.exchange import Answer


def ask(visit: Visit, *, back: str, is_wrong: bool = False) -> Answer:
    """Return the page that asks for a token; `back` is where to go after it."""
    return html_answer(visit.html("sign_in.html", back=back, is_wrong=is_wrong), code=401)


def sign_in(visit: Visit, method: str, *, is_secure: bool) -> Answer:
    """Take a token, and lead back to the page that was asked for."""
    back = visit.form.get("back", "/")
    # A page of another site is none to go back to.
    if not back.startswith("/") or back.startswith(("//", "/\\")):
        back = "/"
    if method != "POST":
        return ask(visit, back="/")
    try:
        key = visit.console.guard.begin_session(visit.form.get("token", ""))
    except NotKnown:
        return ask(visit, back=back, is_wrong=True)
    flags = f"Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{'; Secure' if is_secure else ''}"
    return redirect(back, {"set-cookie": f"{COOKIE}={key}; {flags}"})
