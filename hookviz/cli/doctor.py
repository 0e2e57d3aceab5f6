"""``hookviz doctor``: say what works on this machine, and what to do about the rest."""

import sys
from dataclasses import asdict

import click

from hookviz.cli.checks import CHECKS, Finding, guarded
from hookviz.cli.messages import MISTAKE
from hookviz.cli.tables import echo_json

_MARKS = {"ok": "ok  ", "warning": "warn", "problem": "FAIL"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what works on this machine, and what to do about what doesn't.

    The exit status is 0 where HookViz can be used, warnings or not, and 2 where it can't.
    """
    findings: list[Finding] = []
    with click.progressbar(
        CHECKS, label="Checking", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for check in bar:
            for finding in guarded(check):
                # One broken thing breaks several checks; the first says it.
                problems = {known.text for known in findings if known.state == "problem"}
                if finding.text not in problems:
                    findings.append(finding)
    usable = all(finding.state != "problem" for finding in findings)
    if as_json:
        echo_json({"usable": usable, "findings": [asdict(finding) for finding in findings]})
    else:
        _echo(findings)
    if not usable:
        click.get_current_context().exit(MISTAKE)


def _echo(findings: list[Finding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.subject.ljust(width)}  {finding.text}")
        if finding.advice:
            click.echo(f"{' ' * (width + 8)}→ {finding.advice}")
    problems = sum(finding.state == "problem" for finding in findings)
    warnings = sum(finding.state == "warning" for finding in findings)
    if problems:
        click.echo(f"\nHookViz can't be used as it is: {problems} to put right.")
    else:
        click.echo(f"\nHookViz can be used; warnings: {warnings}.")
