"""Specs of RevealProfiles that make sense, and such that do not, each with what is said of it."""

from __future__ import annotations

from typing import Any, NamedTuple

Object = dict[str, Any]
REDIS = "redis://redis.example.com:6379/0"
TLS = "rediss://redis.example.com:6380/0"
CLUSTER = "rediss+cluster://a.example.com:6379,b.example.com,[fd00::1]:6380"
SENTINELS = "rediss+sentinel://a.example.com:26379,b.example.com,[fd00::1]:26380/jobs/1"


class Bad(NamedTuple):
    """``where`` the server says it is, and the ``words`` that say what to do."""

    what: str
    spec: Object
    where: str
    words: str


def affinity(**requirement: Any) -> Object:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", **requirement}]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def paths(*given: str) -> Object:
    return {"collector": {"extraHostPaths": [{"path": path} for path in given]}}


def sources(**given: list[str]) -> Object:
    return {"collector": {"sources": given}}


def redis(url: str, **more: Any) -> Object:
    return {"redis": {"url": url, **more}}


def resources(requests: Object, limits: Object) -> Object:
    return {"collector": {"resources": {"requests": requests, "limits": limits}}}


CERTIFICATE = {"name": "reveal-redis-ca"}

GOOD: dict[str, Object] = {
    "a window of one stride": {"analyzer": {"windowSeconds": 5, "strideSeconds": 5}},
    "the slowest samples": {"collector": {"samplePeriodMilliseconds": 1000}},
    "cpu and memory as numbers": {
        "collector": {"resources": {"requests": {"cpu": 1, "memory": 268435456}}}
    },
    "cpu in other units": {
        "analyzer": {
            "resources": {
                "requests": {"cpu": "999m", "memory": "1000Mi"},
                "limits": {"cpu": "1.0", "memory": "1Gi"},
            }
        }
    },
    "an address in brackets": {"redis": {"url": "redis://[fd00::1]:6379"}},
    "a host alone": {"redis": {"url": "redis://redis"}},
    "sentinels": {"redis": {"url": SENTINELS, "tls": {"caSecretRef": CERTIFICATE}}},
    "cluster": {"redis": {"url": CLUSTER, "tls": {"caSecretRef": CERTIFICATE}}},
    "any certificate": {"redis": {"url": TLS, "tls": {"insecureSkipVerify": True}}},
    "labels with and without a prefix": {
        "nodeSelector": {"kubernetes.io/os": "linux", "pool": "", "a.b/C_d.e-f": "1"}
    },
    "all taints": {"tolerations": [{"operator": "Exists"}]},
    "no taints": {"tolerations": []},
    "no priority class": {"collector": {"priorityClassName": ""}},
    "metrics": {"collector": {"metricsPort": 9477, "metricsSeries": 500}},
    "a folder of the host": {"collector": {"extraHostPaths": [{"path": "/opt/vendor/stats"}]}},
    "a node by name": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["gpu-07"]}
                        ]
                    }
                ]
            }
        }
    },
}

BAD: tuple[Bad, ...] = (
    Bad(
        "stride over window", {"analyzer": {"windowSeconds": 2, "strideSeconds": 3}},
        "spec.analyzer.strideSeconds",
        "strideSeconds must not exceed windowSeconds, or seconds between two windows are never"
        " looked at",
    ),
    Bad(
        "two samples in a window",
        {"analyzer": {"windowSeconds": 1}, "collector": {"samplePeriodMilliseconds": 500}},
        "spec.analyzer.windowSeconds",
        "a window must hold at least 3 samples: raise analyzer.windowSeconds or lower"
        " collector.samplePeriodMilliseconds",
    ),
    Bad(
        "period that divides no second", {"collector": {"samplePeriodMilliseconds": 30}},
        "spec.collector.samplePeriodMilliseconds", "must divide a second",
    ),
    Bad(
        "period too short", {"collector": {"samplePeriodMilliseconds": 10}},
        "spec.collector.samplePeriodMilliseconds", "should be greater than or equal to 20",
    ),
    Bad(
        "source named twice", sources(include=["psi", "stat", "psi"]),
        "spec.collector.sources.include", "a source is named twice; name it once",
    ),
    Bad(
        "source left out twice", sources(exclude=["psi", "psi"]),
        "spec.collector.sources.exclude", "a source is named twice; name it once",
    ),
    Bad(
        "source in both", sources(include=["psi", "stat"], exclude=["psi"]),
        "spec.collector.sources", "a source stands in both include and exclude",
    ),
    Bad(
        "no name of a source", sources(include=["All Of Them"]),
        "spec.collector.sources.include[0]", "should match",
    ),
    Bad(
        "series without a port", {"collector": {"metricsSeries": 10}},
        "spec.collector.metricsSeries",
        "metricsSeries are shown on metricsPort: set a port of the host there, or metricsSeries"
        " to 0",
    ),
    Bad(
        "no port", {"collector": {"metricsPort": 65536}},
        "spec.collector.metricsPort", "less than or equal to 65535",
    ),
    Bad("relative path", paths("opt/stats"), "extraHostPaths[0].path", "must be an absolute path"),
    Bad("path with colon", paths("/opt/a:b"), "extraHostPaths[0].path", "without colons"),
    Bad(
        "path upwards", paths("/opt/../etc"), "extraHostPaths[0].path",
        "write the path without empty parts, '.', '..' and a slash at its end",
    ),
    Bad("path of a folder", paths("/opt/"), "extraHostPaths[0].path", "write the path without"),
    Bad(
        "path that is there", paths("/sys/kernel"), "extraHostPaths[0].path",
        "/proc and /sys are mounted already, at /host/proc and /host/sys",
    ),
    Bad(
        "path twice", paths("/opt/a", "/opt/a"),
        "spec.collector.extraHostPaths", "a path is given twice; give it once",
    ),
    Bad(
        "cpu over its limit", resources({"cpu": "1.5"}, {"cpu": "1000m"}),
        "spec.collector.resources.requests", "requests.cpu must not exceed limits.cpu",
    ),
    Bad(
        "memory over its limit", resources({"memory": "1Gi"}, {"memory": "1G"}),
        "spec.collector.resources.requests", "requests.memory must not exceed limits.memory",
    ),
    Bad(
        "no memory", resources({"memory": "lots"}, {}),
        "spec.collector.resources.requests.memory", "should match",
    ),
    Bad(
        "less than no cpu", resources({"cpu": -1}, {}),
        "spec.collector.resources.requests.cpu", "greater than or equal to 0",
    ),
    Bad("too many analyzers", {"analyzer": {"replicas": 65}}, "spec.analyzer.replicas", "to 64"),
    Bad(
        "no such mode", {"mode": "observe"}, "spec.mode",
        'supported values: "Report", "Observe"',
    ),
    Bad(
        "url of the web", redis("https://redis.example.com"), "spec.redis.url",
        "must begin with redis://, or with redis+sentinel://",
    ),
    Bad(
        "cluster with a database", redis("redis+cluster://a:6379,b:6379/1"), "spec.redis.url",
        "which has no other database than 0",
    ),
    Bad(
        "cluster without hosts", redis("redis+cluster:///0"), "spec.redis.url",
        "must be the hosts of servers of a Redis Cluster",
    ),
    Bad(
        "password in the url", redis("redis://:secret@redis:6379"), "spec.redis.url",
        "must hold no user or password, as anyone who reads profiles would see them: put them"
        " into a Secret and name it in redis.credentialsSecretRef",
    ),
    Bad(
        "options in the url", redis("rediss://redis:6380/0?ssl_cert_reqs=none"),
        "spec.redis.url", "must hold no options; TLS is set in redis.tls",
    ),
    Bad(
        "no host in the url", redis("redis://:6379"), "spec.redis.url",
        "must be a host, a port and the number of a database",
    ),
    Bad(
        "several hosts in the url", redis("redis://a:6379,b:6379"), "spec.redis.url",
        "must be a host, a port and the number of a database",
    ),
    Bad(
        "tls without tls", redis(REDIS, tls={"caSecretRef": CERTIFICATE}), "spec.redis.tls",
        "tls has no effect on a connection without TLS: begin redis.url with rediss://",
    ),
    Bad(
        "certificate that is not looked at",
        redis(TLS, tls={"caSecretRef": CERTIFICATE, "insecureSkipVerify": True}),
        "spec.redis.tls.insecureSkipVerify", "caSecretRef would have no effect",
    ),
    Bad(
        "sentinels without a service", redis("redis+sentinel://a:26379,b:26379"), "spec.redis.url",
        "must be the hosts of Sentinels, the name of the service",
    ),
    Bad("redis without url", {"redis": {}}, "spec.redis.url", "Required value"),
    Bad(
        "credentials without a name", redis(REDIS, credentialsSecretRef={}),
        "spec.redis.credentialsSecretRef.name", "Required value",
    ),
    Bad(
        "in nothing", affinity(operator="In"), "matchExpressions[0].values",
        "operators In and NotIn need values to compare with",
    ),
    Bad(
        "exists with values", affinity(operator="Exists", values=["a"]),
        "matchExpressions[0].values", "operators Exists and DoesNotExist take no values",
    ),
    Bad(
        "more than a word", affinity(operator="Gt", values=["many"]),
        "matchExpressions[0].values", "operators Gt and Lt need exactly one value, a whole number",
    ),
    Bad(
        "affinity without terms", {"nodeAffinity": {}},
        "spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", "Required value",
    ),
    Bad(
        "any value of", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        "spec.tolerations[0].value", "operator Exists bears any value: leave value out",
    ),
    Bad(
        "equal to nothing", {"tolerations": [{"operator": "Equal", "value": "b"}]},
        "spec.tolerations[0].key", "name the key of the taint, or use operator Exists",
    ),
    Bad(
        "for a time",
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]},
        "spec.tolerations[0].tolerationSeconds", "tolerationSeconds goes with effect NoExecute",
    ),
    Bad(
        "label that is none", {"nodeSelector": {"pool": "a b"}},
        "spec.nodeSelector.pool", "should match",
    ),
    Bad(
        "key that is none", {"nodeSelector": {"my pool": "a"}},
        "spec.nodeSelector", "a key of a label is NAME or PREFIX/NAME",
    ),
    Bad(
        "taint that is none", {"tolerations": [{"key": "a b", "operator": "Exists"}]},
        "spec.tolerations[0].key", "should match",
    ),
    Bad(
        "folder without a claim", {"evidence": {"store": "Folder"}},
        "spec.evidence.claimName", "store Folder needs the name of a PersistentVolumeClaim",
    ),
    Bad(
        "claim without a folder", {"evidence": {"claimName": "samples"}},
        "spec.evidence.claimName", "store Folder needs the name of a PersistentVolumeClaim",
    ),
)  # fmt: skip
