"""HTTP servers for handlers to ask."""

import json
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Answers on a loopback port, and remembers who asked for what. No two answers are alike."""

    def __init__(self, tls=None, host="127.0.0.1"):
        self.requests = []
        self.hang = threading.Event()
        self.busy = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length)
                outer.requests.append((self.command, self.path, list(self.headers.items()), body))
                outer.answer(self, body)

            do_GET = do_POST = do_PUT = do_HEAD = do_PROPFIND = answer

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer((host, 0), Handler)
        self.http.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        self.scheme = "https" if tls else "http"
        self.place = f"{host}:{self.port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, path="/"):
        return f"{self.scheme}://{self.place}{path}"

    def paths(self):
        return [path for _, path, _, _ in self.requests]

    def stop(self):
        self.hang.set()
        self.http.shutdown()
        self.http.server_close()

    def answer(self, request, body):
        number = len(self.requests)
        name, _, argument = request.path.lstrip("/").partition("/")
        fields, status = {}, 200
        data = json.dumps({"number": number}).encode()
        if name == "hang" or (name == "once" and number > 1):
            self.hang.wait(60)
        elif name == "slow":
            time.sleep(float(argument))
        elif name == "big":
            data = b"x" * int(argument)
        elif name == "head":
            fields = {f"x-{i}": "y" * 1000 for i in range(int(argument))}
        elif name == "echo":
            data = json.dumps([list(request.headers.items()), body.decode()]).encode()
        elif name == "say":
            data = self.says(argument).encode()
        elif name == "cookie":
            fields = {"Set-Cookie": "session=1", "X-Kept": "yes"}
        elif name == "to":
            status, fields = 302, {"Location": argument.replace("!", "/")}
        elif name == "drop":
            request.close_connection = True
            request.connection.close()
            return
        elif name == "v1":
            status, data = self.completion(number, json.loads(body))
        request.send_response(status)
        for field, value in fields.items():
            request.send_header(field, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(data)

    def says(self, what):
        return what

    def completion(self, number, question):
        """What a model says."""
        if self.busy > 0:
            self.busy -= 1
            return 503, b"busy"
        last = question["messages"][-1]["content"]
        text = f"Answer {number} to {last!r}"
        reply = {"message": {"role": "assistant", "content": text}}
        return 200, json.dumps({"id": f"chatcmpl-{number}", "choices": [reply]}).encode()


def certificate(folder):
    """A certificate for localhost and its key, signed by itself."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert,
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True, timeout=60,
    )
    return cert, key
