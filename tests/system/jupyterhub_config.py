# recipes_tests.bash adds these lines to the manual's configuration of JupyterHub, after the
# manual's own lines. Users log in with any name and no password, and a service may start servers.
# With STARTED_BY=unit, systemd-run starts servers as units of the user. systemdspawner does the
# same, but Debian does not have it.
import os
import subprocess

from jupyterhub.spawner import Spawner
from traitlets import Unicode


class UnitSpawner(Spawner):
    unit = Unicode("jupyter-test")

    def systemctl(self, *arguments):
        return subprocess.run(["systemctl", *arguments], check=False, stdout=subprocess.PIPE,
                              text=True).stdout.strip()

    async def start(self):
        self.ip, self.port = "127.0.0.1", 8765
        variables = ["--setenv=%s=%s" % each for each in self.get_env().items()]
        subprocess.run(["systemd-run", "--quiet", "--collect", "--unit", self.unit, "--uid",
                        self.user.name,
                        "--working-directory=/home/" + self.user.name, *variables, *self.cmd,
                        *self.get_args()], check=True)
        return self.ip, self.port

    async def poll(self):
        return None if self.systemctl("is-active", self.unit) in ("active", "activating") else 0

    async def stop(self, now=False):
        self.systemctl("stop", self.unit)


c = get_config()  # noqa: F821 # pylint: disable=undefined-variable
c.Spawner.environment.update({name: os.environ[name]
                              for name in ("GPUROTA_SIM_DIR", "LD_LIBRARY_PATH")})
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.cookie_secret = bytes(32)
c.JupyterHub.services = [{"name": "test", "api_token": "0123456789abcdef"}]
c.JupyterHub.load_roles = [{"name": "test", "services": ["test"],
                            "scopes": ["admin:users", "admin:servers", "access:servers"]}]
if os.environ.get("STARTED_BY") == "unit":
    c.JupyterHub.spawner_class = UnitSpawner
