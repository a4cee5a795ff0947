"""Three instances behind the shipped file of a proxy, a PostgreSQL with a standby, a Redis, and a Prometheus.

All of it is real, on this machine: the instances reach PostgreSQL through a small proxy, which a failover points to the
standby, as the address of a cluster does. The instances follow the world's clock, which runs fast, so that answers
expire; or each has its machine's, as services have, and the world's runs like the database's.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.pager import Pager, watching
from tests.deploy.proxies import TRUSTED, Proxy, balanced
from tests.hostile.disks import small_disk
from tests.hostile.instances_scene import Instance, Scene
from tests.live.buying import bought
from tests.live.inbox import Inbox
from tests.live.killing import selling
from tests.live.patient import MODULE
from tests.live.processes import UNLIMITED, Program, Sim, control, environment, started
from tests.live.test_shared_database import Shop
from tests.ports import reserve_port
from tests.postgres import Server, Standby, program
from tests.redis_server import start_redis
from tests.tcp_proxy import proxy_before

SERVERS = ("hypercorn", "uvicorn", "uvicorn")
SOONER = 60  # times: a `for` of a minute is a second
BUYERS, USD, SPEED = 4, 3000, 5
DRAIN_S, PATIENCE_S, DOCTOR_S = "3", "8", 120
OFF_S = 30.0


@dataclass
class Stage:
    """What faults are put into. `scene` has the instances and the stores, which its audit reads."""

    scene: Scene
    sim: Sim
    standby: Standby
    front: Proxy
    pager: Pager
    disk: Path  # of the third instance
    folder: Path

    def say_doctor(self, at: int, *, live: bool = False) -> str:
        """What `toolserver doctor` prints on the machine of an instance."""
        instance = self.scene.instances[at]
        words = [sys.executable, "-m", MODULE, "doctor", *([] if live else ["--no-live"])]
        own = {**instance.settings, "TOOLSERVER_DATA_DIR": str(instance.folder / "data")}
        env = environment(own, instance.folder)
        done = subprocess.run(
            words, env=env, cwd=instance.folder, capture_output=True, text=True, timeout=DOCTOR_S, check=False
        )
        return done.stdout + done.stderr

    def read_operators(self, at: int) -> dict[str, Any]:
        """The operators' page of an instance as JSON; empty where nobody answers."""
        url = str(self.scene.instances[at].program.ready["metrics_url"]).removesuffix("/metrics")
        try:
            found: dict[str, Any] = httpx.get(f"{url}/operators.json", timeout=20, trust_env=False).json()
            return found
        except (httpx.HTTPError, json.JSONDecodeError):
            return {}

    def restart(self, at: int, **more: str) -> None:
        """Stop an instance in order, and start it again with further settings."""
        instance = self.scene.instances[at]
        instance.stop()
        instance.settings = {**instance.settings, **more}
        instance.start()

    def fail_over(self) -> None:
        """Promote the standby, and let the address of the database lead to it."""
        self.standby.promote()
        self.scene.to_postgres.point_to(("127.0.0.1", self.standby.port))
        self.scene.postgres = self.standby
        shop = self.scene.shop
        self.scene.shop = replace(shop, settings={**shop.settings, "TOOLSERVER_DATABASE_URL": self.standby.url})


@contextmanager
def set_stage(folder: Path, proxy: str, *, own_clocks: bool = False) -> Iterator[Stage]:
    """Start everything and sell tokens; in the end every instance ends in order."""
    with ExitStack() as stack:
        world: Program = stack.enter_context(started("world", folder=folder))
        sim = stack.enter_context(control(world.url))
        postgres = Server(program("initdb"), program("postgres"))
        stack.callback(postgres.remove)
        postgres.start()
        standby = Standby(postgres, program("pg_basebackup"), program("postgres"))
        stack.callback(standby.remove)
        standby.start()
        redis = stack.enter_context(start_redis())
        (to_postgres, database_url), (to_redis, redis_url) = proxy_before(postgres.url), proxy_before(redis.url)
        stack.callback(to_postgres.close)
        stack.callback(to_redis.close)
        shared = {
            **UNLIMITED,
            **TRUSTED,
            **selling(world.url),
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_WEBHOOKS__ALLOW_LOOPBACK": "true",
            "TOOLSERVER_SCALING__INSTANCES": str(len(SERVERS)),
            "TOOLSERVER_SERVING__DRAIN_S": DRAIN_S,
        }
        stores = {"TOOLSERVER_DATABASE_URL": postgres.url, "TOOLSERVER_REDIS_URL": redis.url}
        shop = Shop(folder, world, shared | stores)
        through = {**shared, "TOOLSERVER_DATABASE_URL": database_url, "TOOLSERVER_REDIS_URL": redis_url}
        disk = stack.enter_context(small_disk(folder / "disk"))
        instances: list[Instance] = []
        targets = []
        for name, server in zip("abc", SERVERS, strict=True):
            place = shop.place(name)
            if name == "c":
                shutil.move(place / "data", disk / "data")
                (place / "data").symlink_to(disk / "data")
            metrics = reserve_port()
            targets.append(f"127.0.0.1:{metrics}")
            own = {**through, "TOOLSERVER_METRICS__PORT": str(metrics), "PATIENCE_S": PATIENCE_S}
            own |= {"OWN_CLOCK": "1"} if own_clocks else {}
            instances.append(Instance(place, own, server, MODULE, flags=("--port", str(reserve_port()))))
            stack.callback(instances[-1].stop)
            instances[-1].start()
        buyers = [
            bought(instances[0].program, world.url, USD, speed=1 if own_clocks else 30) for _ in range(BUYERS + 1)
        ]
        sim.put("clock", {"speed": 1 if own_clocks else SPEED})
        inbox = Inbox()
        stack.callback(inbox.close)
        scene = Scene(
            shop, instances, postgres, redis, to_postgres, to_redis, inbox, buyers[:-1], hooked=buyers[-1], hooks=[]
        )
        (folder / "proxy").mkdir()
        addresses = [one.url.removeprefix("http://") for one in instances]
        front = stack.enter_context(balanced(proxy, addresses, folder / "proxy"))
        pager = stack.enter_context(watching(folder / "prometheus", targets, sooner=SOONER))
        yield Stage(scene, sim, standby, front, pager, disk, folder)
