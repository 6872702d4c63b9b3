"""`frazil doctor`: report differences for scripts and configurations written for Iceberg's jar."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from frazil.cli.check_script import LEVELS, Finding, check_file
from frazil.cli.render import OutputFormat
from frazil.cli.session import FAILED, reported, settings_of
from frazil.visible_text import visible


def doctor(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Python scripts, SQL, spark-defaults.conf, shell scripts")
    ],
    all_: Annotated[bool, typer.Option("--all", help="Also list uses that work unchanged")] = False,
) -> None:
    """Report differences for scripts and settings written for Iceberg's jar, without running them and without a JVM.

    \b
    frazil doctor nightly.py spark-defaults.conf
    frazil -f json doctor --all jobs/*.py

    Exits with 1 if something will not work.
    """
    with reported():
        findings = [finding for file in files for finding in check_file(file)]
        listed = findings if all_ else [finding for finding in findings if finding.level != "fine"]
        rows = [
            {
                "file": finding.file,
                "line": finding.line,
                "answer": LEVELS[finding.level],
                "what": finding.what,
                "becomes": finding.becomes,
            }
            for finding in listed
        ]
        settings = settings_of(context)
        if settings.form is not OutputFormat.TABLE:
            settings.show(rows, ["file", "line", "answer", "what", "becomes"])
        else:
            for finding in listed:
                typer.echo(visible(f"{finding.file}:{finding.line}: {LEVELS[finding.level]}: {finding.what}"))
                typer.echo(visible(f"    {finding.becomes.replace('`', '')}"))
            typer.echo(_total(findings, len(files)))
        if any(finding.level == "error" for finding in findings):
            raise typer.Exit(FAILED)


def _total(findings: list[Finding], files: int) -> str:
    if not findings:
        return f"No use of the jar was found in {files} file{'s' if files > 1 else ''}."
    counts = Counter(finding.level for finding in findings)
    return "; ".join(f"{counts[level]} {text}" for level, text in LEVELS.items() if counts[level]) + "."
