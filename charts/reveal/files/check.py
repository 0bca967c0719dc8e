"""Test of `helm test`: the operator is ready and the API server serves the custom resources."""

import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

RESOURCES = {"revealprofiles", "anomalyreports"}
API = "/apis/reveal.dev/v1alpha1"
ATTEMPTS, PAUSE_S = 20, 3.0


def main(health: str, server: str, account: str) -> str:
    """Return the message of success; exit with an error message otherwise."""
    await_health(health)
    served = {resource["name"] for resource in ask(server, account, API)["resources"]}
    if missing := RESOURCES - served:
        sys.exit(f"the API server does not serve {', '.join(sorted(missing))}: set crds.enabled")
    profiles = ask(server, account, f"{API}/revealprofiles")["items"]
    names = ", ".join(profile["metadata"]["name"] for profile in profiles) or "none yet"
    return f"operator ready, custom resources served, profiles: {names}\n"


def await_health(url: str) -> None:
    """Wait until the health endpoint answers; exit if it never does."""
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - the URL comes from the chart
                return
        except OSError as error:
            failure = error
        if attempt < ATTEMPTS - 1:
            time.sleep(PAUSE_S)
    sys.exit(f"the operator is not ready: {url}: {failure}")


def ask(server: str, account: str, path: str) -> Any:
    """Return what the API server answers to a GET of a path."""
    token = Path(account, "token").read_text().strip()
    trusted = ssl.create_default_context(cafile=str(Path(account, "ca.crt")))
    request = urllib.request.Request(  # noqa: S310 - the URL comes from the chart
        server + path, headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:  # noqa: S310
            return json.load(answer)
    except OSError as error:
        return sys.exit(f"{path}: {error}")


sys.stdout.write(main(*sys.argv[1:]))
