"""A real Kubernetes control plane on this machine, for tests: built, started, broken, ended.

``binaries`` says where its programs are, ``building`` makes them from Go modules, ``plane`` runs
etcd, the API server and the controllers on loopback. ``python -m cluster`` does it by hand.
"""
