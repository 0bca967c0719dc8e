"""The sampling loop: ticks, lanes, the clock and the CPU budget."""
