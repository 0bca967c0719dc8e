"""Whether an object still equals its manifest: pure.

An *intent* is the hash of a manifest, kept as its annotation.  A live object *covers* a manifest if
it has every field of it with the same value: defaults of the server and fields of other managers
are no drift.  A *fingerprint* is a hash of the live object without its status and without fields
that change by themselves: if it is the same, nobody changed the object since it was compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from reveal_contract.kube.names import ANNOTATION_INTENT

Object = Mapping[str, Any]

# annotations that controllers of the cluster write
_VOLATILE = ("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation")
# keys by which server-side apply merges lists: others may have added items
_KEYED = ("name", "mountPath", "devicePath", "containerPort", "uid", "topologyKey", "ip")
_QUANTITIES = frozenset(("limits", "requests", "sizeLimit", "divisor"))
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)\Z")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = "KMGTPE"
_LARGEST = 30  # a power of ten that no quantity reaches
# fields that mean something although they are empty: an empty one differs from none
_MEANT_EMPTY = frozenset(("emptyDir",))


def intent_of(manifest: Object) -> str:
    """Return a hash of the manifest."""
    return _hash(manifest)


def stamped(manifest: Object) -> dict[str, Any]:
    """Return the manifest with its intent as annotation."""
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION_INTENT: intent_of(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def intent_of_live(live: Object) -> str:
    """Return the intent in the annotations of an object; "" where it has none."""
    return str((live["metadata"].get("annotations") or {}).get(ANNOTATION_INTENT, ""))


def fingerprint(live: Object) -> str:
    """Return a hash of everything but status and bookkeeping."""
    metadata = live["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    for name in _VOLATILE:
        annotations.pop(name, None)
    content = {key: live[key] for key in live if key not in ("status", "metadata", *_IDENTITY)}
    about = [metadata.get(key) for key in ("uid", "labels", "ownerReferences")]
    return _hash([about, annotations, content])


def content(config: Object) -> str:
    """Return a hash of what a ConfigMap holds."""
    return _hash([config.get("data"), config.get("binaryData")])


def covers(live: Object, intent: Object) -> bool:
    """Return whether every field of ``intent`` has the same value in ``live``."""
    metadata = {key: intent["metadata"].get(key) for key in _OURS_OF_METADATA}
    return _object_covers(live["metadata"], metadata, False) and _object_covers(
        live, {key: intent[key] for key in intent if key not in ("metadata", *_IDENTITY)}, False
    )


_IDENTITY = ("apiVersion", "kind")  # items of lists do not have them
_OURS_OF_METADATA = ("labels", "annotations", "ownerReferences")


def _covers(live: Any, intent: Any, quantity: bool) -> bool:
    if isinstance(intent, Mapping):
        return isinstance(live, Mapping) and _object_covers(live, intent, quantity)
    if isinstance(intent, list | tuple):
        return isinstance(live, list | tuple) and _list_covers(live, intent)
    if quantity and isinstance(live, str | int):
        return _amount(str(live)) == _amount(str(intent))
    return bool(live == intent) and isinstance(live, bool) == isinstance(intent, bool)


def _object_covers(live: Object, intent: Object, quantity: bool) -> bool:
    for key, desired in intent.items():
        if _is_empty(desired) and not (key in _MEANT_EMPTY and isinstance(desired, Mapping)):
            if not _is_empty(live.get(key)):
                return False
        elif key not in live or not _covers(live[key], desired, quantity or key in _QUANTITIES):
            return False
    return True


def _list_covers(live: Sequence[Any], intent: Sequence[Any]) -> bool:
    """Compare item by item; others may have added items to lists that are merged by a key."""
    if not any(_is_keyed(intent, key) for key in _KEYED):
        return len(live) == len(intent) and all(
            _covers(each, desired, False) for each, desired in zip(live, intent, strict=True)
        )
    rest = iter(live)
    return all(any(_covers(each, desired, False) for each in rest) for desired in intent)


def _is_keyed(items: Sequence[Any], key: str) -> bool:
    return all(isinstance(item, Mapping) and key in item for item in items)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | Mapping | list | tuple) and not value)


def _amount(text: str) -> Decimal | str:
    """Return a quantity of the API as a number; another text stays as it is."""
    found = _QUANTITY.match(text)
    if found is None:
        return text
    number, exponent, suffix = found.groups()
    if suffix and suffix.endswith("i"):
        times = Decimal(1024 ** (_BINARY.index(suffix[0]) + 1))
    else:
        power = int(exponent or _POWERS.get(suffix or "", 0))
        times = Decimal(10) ** max(-_LARGEST, min(power, _LARGEST))
    try:
        return Decimal(number) * times
    except ArithmeticError:
        return text


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
