"""What `helm test` runs: is the operator well, and does the API server know our kinds?"""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

KINDS = {"revealprofiles", "anomalyreports"}
ATTEMPTS = 20


def main(health: str, api: str, account: str) -> str:
    """The sentence of success; an ``OSError`` or ``SystemExit`` tells what is wrong."""
    until_well(health)
    token = Path(account, "token").read_text().strip()
    trusted = ssl.create_default_context(cafile=str(Path(account, "ca.crt")))

    def get(path: str) -> dict:
        asked = urllib.request.Request(api + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=10, context=trusted) as answer:
            return json.load(answer)

    served = {one["name"] for one in get("/apis/reveal.dev/v1alpha1")["resources"]}
    if missing := KINDS - served:
        sys.exit(f"the API server does not serve {', '.join(sorted(missing))}: set crds.enabled")
    profiles = get("/apis/reveal.dev/v1alpha1/revealprofiles")["items"]
    names = ", ".join(one["metadata"]["name"] for one in profiles) or "none yet"
    return f"operator ready, kinds served, profiles: {names}"


def until_well(url: str) -> None:
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            if attempt == ATTEMPTS - 1:
                sys.exit(f"the operator is not well: {url}: {error}")
            time.sleep(3)


print(main(*sys.argv[1:]))
