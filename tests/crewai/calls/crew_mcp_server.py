"""A server of two tools on its own stdin and stdout, which notes in a file that it was started."""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("orders")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look_up(order: int) -> str:
    """Looks an order up."""
    return f"order {order}: 40.00"


@server.tool(annotations=ToolAnnotations(destructiveHint=True))
def issue_refund(order: int, cents: int) -> str:
    """Pays an order back."""
    return f"refunded {cents} for {order}"


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a") as started:
        started.write("started\n")
    server.run("stdio")
