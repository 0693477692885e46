"""Known clients that make no audit event, or whose events say too little: where Python enters them.

Data only. Each is watched from its import on. One that is loaded and not used is no source; the use of
one that reaches outside stops a replay, and the use of one that only varies (a local engine's clock,
random numbers from C) is named. Where Python has no way in, being loaded has to count.
"""

from __future__ import annotations

import msgspec

STOP = "stop"  # its use reaches outside: a replay stops before it
FAR = "far"  # the same, where the address is a URL
NAME = "name"  # its use is only named
OWN = "own"  # the same, where the program's own code does it


class Way(msgspec.Struct, frozen=True):
    """Ways into one client: functions of its module, or methods of its class `owner`, separated by spaces.

    address   the argument (position without self, and name) that tells the other end; None: there is none
    how       what their use means, see above
    """

    names: str
    owner: str = ""
    address: tuple[int, str] | None = None
    how: str = STOP


class Client(msgspec.Struct, frozen=True):
    """`module`: what is imported; `source`: what it is called in a report; no `ways`: it is named when loaded."""

    module: str
    source: str
    ways: tuple[Way, ...] = ()


_VERBS = "request get head options delete post put patch"

CLIENTS = (
    # RPC and messaging.
    Client("grpc._channel", "grpc channel", (Way("__init__", "Channel", (0, "target")),)),
    Client("grpc.aio._channel", "grpc channel", (Way("__init__", "Channel", (0, "target")),)),
    Client("grpc._server", "grpc server", (Way("add_insecure_port add_secure_port", "_Server", (0, "address")),)),
    Client("grpc.aio._server", "grpc server", (Way("add_insecure_port add_secure_port", "Server", (0, "address")),)),
    Client("confluent_kafka.cimpl", "kafka client", (
        Way("__init__", "Producer"), Way("__init__", "Consumer"), Way("__init__", "AdminClientImpl"),
    )),
    Client("zmq.sugar.socket", "zmq socket", (Way("connect bind", "Socket", (0, "addr")),)),
    Client("temporalio.bridge.client", "temporal client", (Way("connect", "Client"),)),
    Client("livekit.rtc.room", "livekit room", (Way("connect", "Room", (0, "url")),)),
    Client("ray._private.worker", "ray", (Way("init", "", (0, "address")),)),
    Client("torch.distributed.distributed_c10d", "torch.distributed", (
        Way("init_process_group", "", (1, "init_method")),
    )),
    # Event loops.
    Client("uvloop", "uvloop", (
        Way("__init__", "Loop", how=NAME),
        Way("create_connection create_datagram_endpoint", "Loop", (1, "host")),
        Way("create_unix_connection", "Loop", (1, "path")),
        Way("sock_connect", "Loop", (1, "address")),
        Way("getaddrinfo", "Loop", (0, "host")),
        Way("subprocess_exec subprocess_shell", "Loop", (1, "program")),
    )),
    Client("trio._core._run", "trio", (Way("run start_guest_run", "", how=NAME),)),
    # HTTP and websockets.
    Client("pycurl", "curl", (
        Way("perform perform_rb perform_rs", "Curl"), Way("add_handle", "CurlMulti", (0, "curl")),
    )),
    Client("curl_cffi.curl", "curl", (Way("perform upkeep", "Curl"),)),
    Client("curl_cffi.aio", "curl", (Way("add_handle", "AsyncCurl", (0, "curl")),)),
    Client("primp", "primp", (
        Way(_VERBS, "Client", (0, "url")), Way(_VERBS, "AsyncClient", (0, "url")), Way(_VERBS, "", (0, "url")),
    )),
    Client("httpr", "httpr", (
        Way("request stream", "Client", (1, "url")), Way("request stream", "AsyncClient", (1, "url")),
    )),
    Client("tls_client.sessions", "tls_client", (Way("execute_request", "Session", (1, "url")),)),
    Client("awscrt.io", "awscrt", (Way("__init__", "ClientBootstrap"),)),
    Client("rnet", "rnet"),
    Client("wreq", "wreq"),
    Client("impit", "impit"),
    Client("pyreqwest", "pyreqwest"),
    Client("websockets.asyncio.client", "websocket", (Way("__init__", "connect", (0, "uri")),)),
    Client("websockets.sync.client", "websocket", (Way("connect", "", (0, "uri")),)),
    Client("websockets.legacy.client", "websocket", (Way("__init__", "Connect", (0, "uri")),)),
    Client("websocket._core", "websocket", (Way("connect", "WebSocket", (0, "url")),)),
    # Databases, by sockets of their own.
    Client("psycopg.connection", "postgres", (Way("connect", "Connection", (0, "conninfo")),)),
    Client("psycopg.connection_async", "postgres", (Way("connect", "AsyncConnection", (0, "conninfo")),)),
    Client("psycopg2", "postgres", (Way("_connect", "", (0, "dsn")),)),
    Client("MySQLdb.connections", "mysql", (Way("__init__", "Connection", (0, "host")),)),
    Client("pymssql", "sql server", (Way("connect", "", (0, "server")),)),
    Client("pyodbc", "odbc", (Way("connect", "", (0, "connstring")),)),
    Client("oracledb", "oracle", (Way("init_oracle_client"),)),
    Client("ibm_db", "db2", (Way("connect pconnect", "", (0, "dsn")),)),
    Client("adbc_driver_manager.dbapi", "adbc", (Way("connect", "", (1, "uri")),)),
    Client("connectorx", "connectorx", (Way("read_sql", "", (0, "conn")),)),
    Client("couchbase.cluster", "couchbase", (Way("__init__", "Cluster", (0, "connstr")),)),
    # Engines in this process, with files, clocks and random numbers of their own.
    Client("duckdb", "duckdb", (
        Way("connect", "", (0, "database"), NAME),
        Way("sql query execute read_csv read_parquet read_json from_csv_auto from_parquet", "", how=NAME),
    )),
    Client("lancedb", "lancedb", (Way("connect connect_async", "", (0, "uri"), NAME),)),
    Client("chromadb.api.rust", "chroma", (Way("start", "RustBindingsAPI", how=NAME),)),
    Client("polars", "polars", (
        Way("scan_parquet read_parquet scan_csv read_csv scan_ndjson read_ndjson", "", (0, "source"), FAR),
        Way("scan_ipc read_ipc scan_delta read_delta", "", (0, "source"), FAR),
        Way("read_database_uri", "", (1, "uri"), FAR),
    )),
    Client("pyarrow.fs", "pyarrow", tuple(
        Way("__init__", owner) for owner in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem", "HadoopFileSystem")
    )),
    Client("pyarrow.flight", "pyarrow", (Way("__init__", "FlightClient", (0, "location")),)),
    # Libraries loaded by hand, beside ctypes, and random numbers from C.
    Client("cffi.api", "cffi", (Way("dlopen", "FFI", (0, "name"), OWN),)),
    Client("nacl.utils", "libsodium", (Way("random", "", how=NAME),)),
    Client("bcrypt", "bcrypt", (Way("gensalt", "", how=NAME),)),
    Client("fastuuid", "fastuuid", (Way("uuid1 uuid4 uuid7 uuid4_bulk uuid4_as_strings_bulk", "", how=NAME),)),
)  # fmt: skip
