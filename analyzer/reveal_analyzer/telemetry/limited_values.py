"""Values of Redis that others wrote, of which no more is transferred than a limit permits.

Whoever may write to a key can put 512 MB there.  Redis sends a range of a string, but no range of
a field of a hash: a script looks at the length first.  Both take one request.  A key of another
type counts as one that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

Limited = bytes | int | None  # a value, the length of one over the limit, or none

_FIELDS = """
local found = {}
for i = 2, #ARGV do
  local length = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if length > tonumber(ARGV[1]) then
    found[i - 1] = length
  else
    found[i - 1] = redis.call('HGET', KEYS[1], ARGV[i])
  end
end
return found
"""
_ALL = """
local found = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  local length = redis.call('HSTRLEN', KEYS[1], field)
  found[#found + 1] = field
  if length > tonumber(ARGV[1]) then
    found[#found + 1] = length
  else
    found[#found + 1] = redis.call('HGET', KEYS[1], field)
  end
end
return found
"""
_WRONG_TYPE = "WRONGTYPE"


def get_string(client: redis.Redis, key: str, most_bytes: int) -> Limited:
    """Return a string; raises what redis-py raises when Redis is unavailable."""
    data: Any = client.getrange(key, 0, most_bytes)
    return string_of(data, most_bytes)


def request_string(pipe: redis.client.Pipeline, key: str, most_bytes: int) -> None:
    """Add the request of a string to a pipeline, for ``string_of``."""
    pipe.getrange(key, 0, most_bytes)  # a byte more than the limit, if there are more


def string_of(reply: object, most_bytes: int) -> Limited:
    """Return the string in a reply; an empty string is none."""
    if not isinstance(reply, bytes) or not reply:
        return None
    return reply if len(reply) <= most_bytes else len(reply)


def request_fields(
    pipe: redis.client.Pipeline, key: str, fields: Sequence[str], most_bytes: int
) -> None:
    """Add the request of fields of a hash to a pipeline, for ``fields_of``."""
    pipe.eval(_FIELDS, 1, key, most_bytes, *fields)


def fields_of(reply: Any, count: int) -> list[Limited]:
    """Return the fields in the reply to a request of so many; raises an error that is the reply."""
    found = _replied(reply)
    return [None] * count if found is None else list(found)


def get_fields(
    client: redis.Redis, key: str, fields: Sequence[str], most_bytes: int
) -> list[Limited]:
    """Return fields of a hash; raises what redis-py raises when Redis is unavailable."""
    with client.pipeline(transaction=False) as pipe:
        request_fields(pipe, key, fields, most_bytes)
        [reply] = pipe.execute(raise_on_error=False)
    return fields_of(reply, len(fields))


def get_all_fields(client: redis.Redis, key: str, most_bytes: int) -> dict[bytes, Limited]:
    """Return all fields of a hash; raises what redis-py raises when Redis is unavailable."""
    with client.pipeline(transaction=False) as pipe:
        pipe.eval(_ALL, 1, key, most_bytes)
        [reply] = pipe.execute(raise_on_error=False)
    found = _replied(reply) or []
    return dict(zip(found[::2], found[1::2], strict=True))


def too_long(length: int, most_bytes: int) -> str:
    """Return why a value is not used, for a log."""
    return f"{length} bytes or more, {most_bytes} are the most"


def _replied(reply: Any) -> Any:
    """Return a reply, None for that of a key of another type; raise any other error."""
    if not isinstance(reply, Exception):
        return reply
    if _WRONG_TYPE in str(reply):
        return None
    raise reply
