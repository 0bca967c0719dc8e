"""A record of what a driver answered, in the words of the tests' fake driver library.

Keys are those of tests/support/fake_nvml/nvml.c: each figure a list with one entry a step.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reveal_collector.nvml.devices import Gpu
from reveal_collector.nvml.metric_queries import QUERIES, THROTTLE_REASONS, FieldBatch

Key = tuple[str, str]  # metric, instance
_CALLS = {
    "gpu.utilization": "utilization", "gpu.memory.utilization": "utilization.memory",
    "gpu.memory.used": "memory.used", "gpu.memory.total": "memory.total",
    "gpu.clock.sm": "clock.1", "gpu.clock.memory": "clock.2",
    "gpu.clock.maximum": "clock_maximum.1", "gpu.clock.memory_maximum": "clock_maximum.2",
    "gpu.temperature": "temperature.0", "gpu.temperature.shutdown": "threshold.0",
    "gpu.temperature.slowdown": "threshold.1", "gpu.power.limit": "power.limit",
    "gpu.performance_state": "performance_state", "gpu.encoder.utilization": "encoder",
    "gpu.decoder.utilization": "decoder", "gpu.fan": "fan",
    "gpu.pcie.generation": "pcie.generation", "gpu.pcie.width": "pcie.width",
    "gpu.pcie.generation_maximum": "pcie.generation_maximum",
    "gpu.pcie.width_maximum": "pcie.width_maximum", "gpu.pcie.tx": "pcie.bytes.0",
    "gpu.pcie.rx": "pcie.bytes.1",
}  # fmt: skip
_BITS = {metric: bit for bit, metric in THROTTLE_REASONS.items()}


def field_keys(ids: Any) -> dict[str, str]:
    """Metric -> key of a figure that comes by field; ``ids`` is the pynvml module."""
    found: dict[str, str] = {}
    for batch in QUERIES:
        for field in batch.fields if isinstance(batch, FieldBatch) else ():
            scope = f".{field.scope}" if field.scope else ""
            if hasattr(ids, field.name):
                found.setdefault(field.metric, f"field.{getattr(ids, field.name)}{scope}")
    return found


def trace(
    gpus: Sequence[Gpu], steps: Sequence[Mapping[Key, int | None]], ids: Any, step_ms: int = 100
) -> str:
    """The script that answers as the driver did; a figure missing in one step fails there."""
    lines = [f"gpus {len(gpus)}", f"step_ms {step_ms}"]
    keys = field_keys(ids) | _CALLS
    for gpu in gpus:
        lines += [
            f"{gpu.index}.uuid {gpu.uuid}", f"{gpu.index}.name {gpu.name}",
            f"{gpu.index}.bus 0000{gpu.pci_bus_id}", f"{gpu.index}.mig 0",
        ]  # fmt: skip
        lines += [f"{gpu.index}.{line}" for line in _figures(str(gpu.index), steps, keys)]
    return "\n".join(lines) + "\n"


def _figures(
    gpu: str, steps: Sequence[Mapping[Key, int | None]], keys: Mapping[str, str]
) -> Iterator[str]:
    metrics = dict.fromkeys(metric for step in steps for metric, of in step if of == gpu)
    for metric in metrics:
        if metric in keys:
            yield _line(keys[metric], [step.get((metric, gpu)) for step in steps])
    if metrics.keys() & _BITS.keys():
        yield _line("reasons", [_mask(step, gpu) for step in steps])
    links = [step.get(("gpu.nvlink.active_links", gpu)) for step in steps]
    for link in range(max((each or 0 for each in links), default=0)):
        yield _line(f"nvlink.{link}", [int(link < (each or 0)) for each in links])


def _mask(step: Mapping[Key, int | None], gpu: str) -> int | None:
    states = [(step.get((metric, gpu)), bit) for metric, bit in _BITS.items()]
    if any(state is None for state, _ in states):
        return None
    return sum(bit for state, bit in states if state)


def _line(key: str, values: Sequence[int | None]) -> str:
    """One entry a step; only one where it never changes."""
    texts = ["?" if value is None else str(value) for value in values]
    return f"{key} {texts[0] if len(set(texts)) == 1 else ' '.join(texts)}"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
