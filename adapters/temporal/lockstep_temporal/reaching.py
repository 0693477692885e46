"""A client of the user's Temporal server, as its own tools find it: by an address, the environment or a profile."""

from __future__ import annotations

from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from lockstep.errors import Code, TargetError
from lockstep_temporal import ending

_ADDRESS = "localhost:7233"


async def connected(address: str, namespace: str, say: str, **more: Any) -> Client:
    """Connects. "" for address or namespace: as TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE or the profile of Temporal's
    configuration file has it, else that of a development server here. `say`: how the user says an address.

    Raises TargetError LS401 where there is no server.
    """
    given: dict[str, Any] = {**ClientConfig.load_client_connect_config(), **more}
    if address:
        given["target_host"] = address
    if namespace:
        given["namespace"] = namespace
    target = given.setdefault("target_host", _ADDRESS)
    ending.settle()
    try:
        return await Client.connect(**given)
    except (RuntimeError, ValueError) as error:
        raise TargetError(
            Code.NO_TARGET,
            f"no Temporal server can be reached at {target}: {error}. Say where it is by {say}, TEMPORAL_ADDRESS "
            "or a profile of Temporal's configuration file",
        ) from error
