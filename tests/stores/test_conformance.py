"""The conformance suite of `pugmark-log` on each store, and through a bad network."""

import os
import subprocess

import proxies
import servers


def conform(home_folder, store, **env):
    url = store.bucket()
    ended = subprocess.run(
        ["cargo", "test", "--locked", "--quiet", "-p", "pugmark", "stores::conformance", "--",
         "--ignored"],
        cwd=servers.ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(home_folder), **store.env, **env,
             "PUGMARK_CONFORMANCE_URL": url},
        capture_output=True,
        text=True,
        timeout=230,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert "1 passed" in ended.stdout


def test_the_suite(store, tmp_path):
    conform(tmp_path, store)


def test_the_suite_through_a_bad_network(quick, tmp_path):
    faults = proxies.Faults(quick.endpoint, seed=1, per_mille=100, in_a_row=2)
    with proxies.serving(faults) as server:
        conform(tmp_path, quick, AWS_ENDPOINT_URL=server.endpoint)
    assert sum(faults.done.values()) > 20
