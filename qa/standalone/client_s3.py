# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user of radosgw, by s3cmd. What should be in a bucket is in a local folder."""

import random
import shutil
import time

from client_user import ClientUser
from cluster import free_port

USER = "swim"
SECRET = "swimswim"
CONFIG = """[default]
access_key = {user}
secret_key = {secret}
host_base = 127.0.0.1:{port}
host_bucket = 127.0.0.1:{port}
use_https = False
guess_mime_type = False
progress_meter = False
multipart_chunk_size_mb = 5
"""
SMALL_BYTES_MAX = 100_000


class S3User(ClientUser):
  name = "RGW"
  folder_name = "s3"
  daemons = 1

  def __init__(self, scenario, cluster, args):
    super().__init__(scenario, cluster, args)
    self.model = self.folder / "model"
    self.bucket = ""
    self.port = free_port()
    self.rng = random.Random(args.seed)

  def begin(self):
    self.folder.mkdir()
    (self.folder / "config").write_text(CONFIG.format(user=USER, secret=SECRET, port=self.port))
    self.cluster.shell(f"radosgw-admin user create --uid={USER} --display-name={USER} --access-key={USER} --secret-key={SECRET}")

  def start(self):
    self.cluster.start_radosgw(self.port)

  def prepare(self, name):
    self.bucket = name
    shutil.rmtree(self.model, ignore_errors=True)
    (self.model / "small").mkdir(parents=True)
    (self.model / "large").mkdir()
    for small in range(self.args.s3_objects):
      (self.model / "small" / f"{small}").write_bytes(self.rng.randbytes(self.rng.randrange(SMALL_BYTES_MAX)))
    (self.model / "large" / "one").write_bytes(self.rng.randbytes((self.args.s3_mib << 20) + 12345))

  def use(self):
    self._s3("mb", self._uri())
    small = self._timed("put", "--recursive", f"{self.model}/small", self._uri())
    large = self._timed("put", f"{self.model}/large/one", self._uri("large/one"))
    self._change()
    got = self._get(self.folder / "got")
    shutil.rmtree(self.folder / "got")
    return {f"put of {self.args.s3_objects} objects of up to {SMALL_BYTES_MAX // 1000} kB": (small, "s"),
            f"put of {self.args.s3_mib} MiB in parts of 5 MiB": (large, "s"), "get of all": (got, "s")}

  def _change(self):
    """Copies, overwritten and removed objects."""
    self._s3("cp", self._uri("large/one"), self._uri("large/copy"))
    shutil.copy(self.model / "large" / "one", self.model / "large" / "copy")
    self._s3("cp", self._uri("small/1"), self._uri("small/copy"))
    shutil.copy(self.model / "small" / "1", self.model / "small" / "copy")
    (self.model / "large" / "one").write_bytes(self.rng.randbytes(6 << 20))
    self._s3("put", f"{self.model}/large/one", self._uri("large/one"))
    gone = [f"small/{small}" for small in range(0, self.args.s3_objects, 3)]
    self._s3("rm", *(self._uri(name) for name in gone))
    for name in gone:
      (self.model / name).unlink()

  def read_back(self, when):
    got, model = self.folder / "got", self.model
    self._get(got)
    compared = self.cluster.shell(f"diff -r {got} {model} && find {got} -type f | wc -l || true").split()
    shutil.rmtree(got)
    wanted = {str(path.relative_to(model)): path.stat().st_size for path in model.rglob("*") if path.is_file()}
    self.scenario.check(compared == [str(len(wanted))], f"rgw: {len(wanted)} objects read as the files that were put, {when}",
                        " ".join(compared)[-500:])
    lines = [line.split() for line in self._s3("ls", "--recursive", self._uri()).splitlines()]
    listed = {name.removeprefix(self._uri()): int(size) for _, _, size, name in lines}
    self.scenario.check(listed == wanted, f"rgw: the bucket lists them and their sizes, and no others, {when}",
                        str(listed.items() ^ wanted.items())[-500:])

  def remove(self):
    self._s3("rb", "--recursive", "--force", self._uri())
    self.cluster.shell("radosgw-admin gc process --include-all", timeout=600)

  def _get(self, folder):
    folder.mkdir()
    return self._timed("get", "--recursive", self._uri(), f"{folder}/")

  def _uri(self, name=""):
    return f"s3://{self.bucket}/{name}"

  def _timed(self, *words):
    begun = time.monotonic()
    self._s3(*words)
    return time.monotonic() - begun

  def _s3(self, *words):
    return self.cluster.shell(f"s3cmd --config {self.folder}/config {' '.join(words)}", timeout=600)
