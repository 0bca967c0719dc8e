"""GPUs through NVML: asked in a thread of its own, at a price that is measured and kept."""
