"""Run by `helm test`: says whether the operator is well and the API server knows our kinds."""

import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

KINDS = {"revealprofiles", "anomalyreports"}
API = "/apis/reveal.dev/v1alpha1"
ATTEMPTS, PAUSE_S = 20, 3.0


def main(health: str, server: str, account: str) -> str:
    """The sentence of success; ends the process with one that says what is wrong."""
    await_health(health)
    kinds = {one["name"] for one in ask(server, account, API)["resources"]}
    if missing := KINDS - kinds:
        sys.exit(f"the API server does not serve {', '.join(sorted(missing))}: set crds.enabled")
    profiles = ask(server, account, f"{API}/revealprofiles")["items"]
    names = ", ".join(one["metadata"]["name"] for one in profiles) or "none yet"
    return f"operator ready, kinds served, profiles: {names}\n"


def await_health(url: str) -> None:
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - of our own manifest
                return
        except OSError as error:
            told = error
        if attempt < ATTEMPTS - 1:
            time.sleep(PAUSE_S)
    sys.exit(f"the operator is not well: {url}: {told}")


def ask(server: str, account: str, path: str) -> Any:
    token = Path(account, "token").read_text().strip()
    trusted = ssl.create_default_context(cafile=str(Path(account, "ca.crt")))
    request = urllib.request.Request(  # noqa: S310 - of our own manifest
        server + path, headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:  # noqa: S310
            return json.load(answer)
    except OSError as error:
        return sys.exit(f"{path}: {error}")


sys.stdout.write(main(*sys.argv[1:]))
