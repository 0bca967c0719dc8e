"""GPUs through NVML: a thread polls the driver within a measured budget of calls."""
