"""Starts real object stores on loopback, each with ports and a folder of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.parse
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import s3

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / "target/stores"


def free_port(below=65000):
    """A port that nothing listens on; some servers want the one 10,000 above it, too."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        port = 20000 + port % 20000 if below < 65000 else port
        with contextlib.suppress(OSError), socket.socket() as again, socket.socket() as above:
            again.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + 10000 if below < 65000 else 0))
            return port


@dataclass
class Store:
    """A store to test against: the environment that reaches it, and a way to make buckets."""

    name: str
    scheme: str
    endpoint: str
    env: dict
    create: object
    flags: dict = field(default_factory=dict)

    def bucket(self, folder="team/agents"):
        """The URL of a new bucket; what is tested lies in a folder of it."""
        name = f"pugmark-{uuid.uuid4().hex[:12]}"
        self.create(name)
        root = f"{self.scheme}/{name}" if self.scheme.startswith("file://") else f"{self.scheme}://{name}"
        return f"{root}/{folder}" if folder else root


@contextlib.contextmanager
def local(folder):
    """Local files, to compare with."""
    yield Store("local", f"file://{folder}", "", {}, lambda name: (folder / name / "team/agents").mkdir(parents=True))


def s3_store(name, endpoint):
    env = {
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
        "AWS_REGION": s3.REGION,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return Store(name, "s3", endpoint, env, lambda bucket: s3.create_bucket(endpoint, bucket))


@contextlib.contextmanager
def process(folder, command, env=None):
    """Runs a server until the end of the block, with what it says in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "output", "ab") as output:
        server = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        end(server)


def end(server):
    for wanted in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, wanted)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(5)
            return


def wait_until(works, folder, server, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return works()
        except (AssertionError, OSError) as error:
            said = (folder / "output").read_text(errors="replace")[-3000:]
            assert server.poll() is None, f"the server ended: {said}"
            assert time.monotonic() < deadline, f"it never came up: {error!r}\n{said}"
            time.sleep(0.1)


def answers(endpoint):
    url = urllib.parse.urlsplit(endpoint)
    with socket.create_connection((url.hostname, url.port), timeout=2):
        pass


@contextlib.contextmanager
def ministack(folder):
    """An emulator of AWS: quick."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    env = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "SERVICES": "s3"}
    with process(folder, [STORES / "venv/bin/ministack"], env) as server:
        wait_until(lambda: answers(endpoint), folder, server)
        wait_until(lambda: s3.create_bucket(endpoint, "ready"), folder, server)
        yield s3_store("ministack", endpoint)


@contextlib.contextmanager
def seaweedfs(folder):
    """A real store that speaks S3."""
    ports = {
        name: free_port(below=50000) for name in ("master.port", "volume.port", "filer.port", "s3.port")
    }
    endpoint = f"http://127.0.0.1:{ports['s3.port']}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir()
    identity = {
        "name": "test",
        "credentials": [{"accessKey": s3.KEY, "secretKey": s3.SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    command = [STORES / "venv/bin/weed", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1"]
    command += ["-ip.bind=127.0.0.1", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"]
    command += ["-volume.max=0", "-filer", "-s3", f"-s3.config={folder / 's3.json'}"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    with process(folder, command) as server:
        wait_until(lambda: s3.create_bucket(endpoint, "ready"), folder, server)
        yield s3_store("seaweedfs", endpoint)


@contextlib.contextmanager
def azurite(folder):
    """Azure's own emulator of its blob storage."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [STORES / "azurite/node_modules/.bin/azurite-blob", "--blobHost", "127.0.0.1"]
    command += ["--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    command += ["--skipApiVersionCheck"]
    path = f"{STORES / 'venv/bin'}:{os.environ['PATH']}"
    with process(folder, command, {"PATH": path}) as server:
        wait_until(lambda: s3.create_container(endpoint, "ready"), folder, server)
        account = f"{endpoint}/{s3.AZURE_ACCOUNT}"
        env = {
            "AZURE_STORAGE_CONNECTION_STRING": "DefaultEndpointsProtocol=http;"
            f"AccountName={s3.AZURE_ACCOUNT};AccountKey={s3.AZURE_KEY};BlobEndpoint={account};"
        }
        yield Store(
            "azurite", "az", account, env, lambda name: s3.create_container(endpoint, name)
        )


@contextlib.contextmanager
def ceph(folder):
    """Ceph's RGW: one monitor, one OSD in memory, one gateway."""
    mon, gateway = free_port(), free_port()
    endpoint = f"http://127.0.0.1:{gateway}"
    folder.mkdir(parents=True, exist_ok=True)
    fsid = str(uuid.uuid4())
    (folder / "ceph.conf").write_text(
        f"""[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon}]
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv4 = true
ms mon client mode = crc
ms mon service mode = crc
ms mon cluster mode = crc
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
pid file = {folder}/$name.pid
keyring = {folder}/keyring
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw enable usage log = false
"""
    )
    conf = ["-c", folder / "ceph.conf"]

    def run(*command):
        done = subprocess.run(
            [str(part) for part in command], cwd=folder, capture_output=True, timeout=90
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    (folder / "mon").mkdir()
    (folder / "osd").mkdir()
    run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon}]", folder / "monmap")
    run("ceph-mon", *conf, "--mkfs", "-i", "a", "--monmap", folder / "monmap")
    with contextlib.ExitStack() as servers:
        start = lambda *command: servers.enter_context(process(folder, command))  # noqa: E731
        start("ceph-mon", *conf, "-f", "-i", "a")
        osd = str(uuid.uuid4())
        run("ceph", *conf, "--connect-timeout", "30", "osd", "new", osd, "0")
        run("ceph", *conf, "osd", "crush", "add", "osd.0", "1.0", "root=default")
        run("ceph-osd", *conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        start("ceph-osd", *conf, "-f", "-i", "0")
        run("radosgw-admin", *conf, "user", "create", "--uid=test", "--display-name=test",
            f"--access-key={s3.KEY}", f"--secret-key={s3.SECRET}")  # fmt: skip
        server = start("radosgw", *conf, "-f", "-n", "client.rgw")
        wait_until(lambda: s3.create_bucket(endpoint, "ready"), folder, server)
        yield s3_store("ceph", endpoint)
