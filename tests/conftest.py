"""Fixtures shared by all tests: a real Redis each, a real API server for all."""

from __future__ import annotations

from support import property_tests
from support.api_server import control_plane, kube, launch_control_plane, namespace
from support.redis_server import redis_launcher, redis_server

__all__ = [
    "control_plane", "kube", "launch_control_plane", "namespace", "redis_launcher", "redis_server",
]  # fmt: skip

property_tests.use_as_default()
