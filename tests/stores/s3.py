"""As much of an S3 client as preparing and looking at a bucket takes, and one for Azure's."""

import base64
import hashlib
import hmac
import http.client
import time
import urllib.parse

KEY, SECRET, REGION = "AKIAPUGMARKTEST00000", "not/a/secret+but+long+enough+for+everyone", "us-east-1"


def sign(url, method, path, query, body):
    """The target and the headers of a signed request."""
    query = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote)
    path = urllib.parse.quote(path, safe="/-_.~")
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": url.netloc, "x-amz-content-sha256": digest, "x-amz-date": now}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join([method, path, query, lines, names, digest])
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    secret = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return f"{path}?{query}" if query else path, headers


def request(endpoint, method, path, query=None, body=b"", headers=None):
    """Sends a signed request; returns its status and body."""
    url = urllib.parse.urlsplit(endpoint)
    target, signed = sign(url, method, path, query or {}, body)
    return send(url, method, target, body, {**signed, **(headers or {})})


def send(url, method, target, body=b"", headers=None):
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
    try:
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def create_bucket(endpoint, bucket):
    status, body = request(endpoint, "PUT", f"/{bucket}")
    assert status in (200, 409), (status, body)


AZURE_ACCOUNT = "devstoreaccount1"
# The key that the emulator's documentation publishes.
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def create_container(endpoint, container):
    """Creates a container; `endpoint` is without the account."""
    url = urllib.parse.urlsplit(endpoint)
    path = f"/{AZURE_ACCOUNT}/{container}"
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    version = "2023-11-03"
    text = (
        "PUT\n\n\n\n\n\n\n\n\n\n\n\n"
        f"x-ms-date:{date}\nx-ms-version:{version}\n"
        f"/{AZURE_ACCOUNT}{path}\nrestype:container"
    )
    signature = hmac.digest(base64.b64decode(AZURE_KEY), text.encode(), "sha256")
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "content-length": "0",
        "authorization": f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(signature).decode()}",
    }
    status, body = send(url, "PUT", f"{path}?restype=container", headers=headers)
    assert status in (201, 409), (status, body)
