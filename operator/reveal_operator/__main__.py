"""``reveal-operator``: creates collectors and analyzers for RevealProfiles, and maintains them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reveal_contract import VERSION
from reveal_contract.kube.names import NAMESPACE_VARIABLE, POD_VARIABLE
from reveal_contract.kube.transport import NoAccessError
from reveal_contract.runtime import logs, thread_defects
from reveal_operator.app import RESYNC_S, Operator, OperatorOptions
from reveal_operator.kopflog import filter_kopf_logs
from reveal_operator.kube import KubernetesClient, connect
from reveal_operator.profile import ProfileLimits
from reveal_operator.retention import SWEEP_S
from reveal_operator.spec import Defaults

_NAMESPACE = "reveal-system"
_POLICIES = ("Always", "IfNotPresent", "Never")


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 done, 1 error, 2 usage or no access to a cluster."""
    arguments = parser().parse_args(argv)
    logs.set_up(arguments.log_format, getattr(logging, arguments.log_level.upper()))
    thread_defects.end_on_defects()
    filter_kopf_logs()
    try:
        api = connect(arguments.kubeconfig)
        asyncio.run(_run(api, options_of(arguments, os.environ)))
    except NoAccessError as error:
        return _fail(str(error), 2)
    except OSError as error:
        return _fail(error.strerror or str(error), 1)
    return 0


async def _run(api: KubernetesClient, options: OperatorOptions) -> None:
    await Operator(api, options).run()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    flags = argparse.ArgumentParser(
        prog="reveal-operator", description=__doc__, argument_default=argparse.SUPPRESS
    )
    flags.add_argument(
        "--kubeconfig",
        type=Path,
        default=None,
        metavar="FILE",
        help="kubeconfig of the cluster (default: the cluster of this pod)",
    )
    flags.add_argument(
        "--namespace",
        default=None,
        metavar="NAME",
        help=f"namespace of created objects (default: ${NAMESPACE_VARIABLE}, else {_NAMESPACE})",
    )
    _add_created(flags)
    _add_redis(flags)
    _add_limits(flags)
    _add_own(flags)
    flags.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return flags


def _add_created(flags: argparse.ArgumentParser) -> None:
    group = flags.add_argument_group("created objects")
    for component in ("collector", "analyzer"):
        group.add_argument(
            f"--{component}-image",
            default=f"reveal-{component}:{VERSION}",
            metavar="IMAGE",
            help="image of profiles that name none (default: %(default)s)",
        )
    group.add_argument("--image-pull-policy", choices=_POLICIES)
    group.add_argument(
        "--image-pull-secret",
        dest="image_pull_secrets",
        action="append",
        metavar="NAME",
        help="a Secret in the namespace; may be given several times",
    )
    for component in ("collector", "analyzer"):
        group.add_argument(f"--{component}-service-account", metavar="NAME")
    group.add_argument(
        "--metrics-secret",
        metavar="NAME",
        help="Secret with tls.crt, tls.key, client-ca.crt and token, by which collectors and"
        " analyzers restrict who may read their metrics",
    )


def _add_redis(flags: argparse.ArgumentParser) -> None:
    group = flags.add_argument_group("Redis of profiles that name none")
    group.add_argument(
        "--redis-url", metavar="URL",
        help="redis://HOST:PORT/DATABASE, redis+sentinel://HOST:26379,HOST:26379/SERVICE or"
        " redis+cluster://HOST:6379,HOST:6379, with rediss for TLS, without credentials",
    )  # fmt: skip
    group.add_argument(
        "--redis-credentials-secret", metavar="NAME", help="Secret with user and password"
    )
    group.add_argument(
        "--redis-collector-credentials-secret",
        metavar="NAME",
        help="Secret with those of collectors, which need fewer rights (default: the same)",
    )
    for key in ("username", "password"):
        meaning = f"key in both Secrets (default: {key})"
        group.add_argument(f"--redis-{key}-key", metavar="KEY", help=meaning)
    group.add_argument("--redis-ca-secret", metavar="NAME", help="Secret with the CA certificate")
    group.add_argument("--redis-ca-key", metavar="KEY", help="key in that Secret (default: ca.crt)")
    group.add_argument("--redis-insecure-skip-verify", action="store_true")


def _add_limits(flags: argparse.ArgumentParser) -> None:
    group = flags.add_argument_group(
        "limits of profiles",
        "With --limit-profiles a profile may only name what these flags permit, each of which may"
        " be given several times, and the images and the Redis of the flags above.",
    )
    group.add_argument("--limit-profiles", action="store_true")
    for flag, name, meaning in (
        ("image", "PREFIX", "images: a registry, a repository, or a whole reference"),
        ("host-path", "PATH", "extra host paths: a folder and what is below it"),
        ("secret", "NAME", "Secrets with credentials, certificates and headers"),
        ("claim", "NAME", "PersistentVolumeClaims with samples of findings"),
        ("config-map", "NAME", "ConfigMaps with causes of your own"),
        ("address", "URL", "addresses of Redis and of OpenTelemetry, and what is below them"),
    ):
        group.add_argument(
            f"--permit-{flag}", action="append", default=[], metavar=name, help=meaning
        )


def _add_own(flags: argparse.ArgumentParser) -> None:
    group = flags.add_argument_group("the operator itself")
    for name, reader in (("metrics", "Prometheus"), ("health", "the probes of the kubelet")):
        meaning = f"port for {reader}; both serve /metrics, /healthz, /readyz; 0 (default): none"
        group.add_argument(f"--{name}-port", type=_port, default=0, metavar="PORT", help=meaning)
    group.add_argument(
        "--metrics-access-folder",
        default="",
        metavar="FOLDER",
        help="serve the metrics by HTTPS and on their own port only, by the files tls.crt, tls.key,"
        " client-ca.crt and token of this folder",
    )
    group.add_argument(
        "--resync-seconds",
        type=_seconds,
        default=RESYNC_S,
        metavar="N",
        help="seconds between two visits of all profiles (default: %(default)g)",
    )
    group.add_argument(
        "--sweep-seconds",
        type=_seconds,
        default=SWEEP_S,
        metavar="N",
        help="seconds between two deletions of old reports (default: %(default)g)",
    )
    logs.add_flag(flags)
    group.add_argument("--log-level", choices=("debug", "info", "warning"), default="info")


def options_of(arguments: argparse.Namespace, environment: Mapping[str, str]) -> OperatorOptions:
    """Return options from flags, else from the environment of the pod, else the defaults."""
    given = vars(arguments)
    known = {name: given[name] for name in Defaults.__dataclass_fields__ if name in given}
    namespace = given["namespace"] or environment.get(NAMESPACE_VARIABLE) or _NAMESPACE
    known |= {"namespace": namespace, "limits": _limits_of(given)}
    if "image_pull_secrets" in known:
        known["image_pull_secrets"] = tuple(known["image_pull_secrets"])
    return OperatorOptions(
        Defaults(**known),
        metrics_port=given["metrics_port"],
        metrics_access_folder=given["metrics_access_folder"],
        health_port=given["health_port"],
        instance=environment.get(POD_VARIABLE, ""),
        resync_s=given["resync_seconds"],
        sweep_s=given["sweep_seconds"],
    )


def _limits_of(given: Mapping[str, Any]) -> ProfileLimits | None:
    """Return the limits of profiles; None where they may name anything."""
    if "limit_profiles" not in given:
        return None
    return ProfileLimits(
        images=tuple(given["permit_image"]),
        host_paths=tuple(given["permit_host_path"]),
        secrets=tuple(given["permit_secret"]),
        claims=tuple(given["permit_claim"]),
        config_maps=tuple(given["permit_config_map"]),
        addresses=tuple(given["permit_address"]),
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65_535:
        raise ValueError(text)
    return port


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise ValueError(text)
    return seconds


def _fail(sentence: str, code: int) -> int:
    logs.last_words(f"reveal-operator: {sentence}")
    return code


if __name__ == "__main__":
    sys.exit(main())
