"""The paper's own experiments once more: repeated real workloads, recorded and compared."""
