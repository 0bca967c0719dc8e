"""Devices of a host: PCI functions, RDMA ports, network cards, CPU topology."""
