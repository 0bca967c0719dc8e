"""The three images, built here without a registry, looked through and run.

``base`` makes a stand-in for the official Python image from Debian packages, ``building`` builds
the Dockerfiles on it with buildah, ``container`` runs what came out in runc or crun, with a
read-only root. ``python -m images`` (``make images``) builds and says sizes and seconds.
"""
