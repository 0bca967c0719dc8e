"""An inference server: one request is one pass through a small model.  ``serve.py PORT``."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy

weights = numpy.random.rand(200, 200)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        text = f"{(weights @ weights).sum():.3f}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """A line a request would be the larger part of the work."""


ThreadingHTTPServer(("", int(sys.argv[1])), Answer).serve_forever()
