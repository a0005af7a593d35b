"""A small MCP server (streamable HTTP) with tickets, that asks for OAuth tokens, and the authorization server that issues them.

It stands for a server of yours or of a vendor. It needs nothing but Python, and keeps its tickets in memory.
"""

import base64
import json
import os
import secrets
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote

PORT = int(os.environ.get("TICKETS_PORT", "8700"))
HERE = f"http://127.0.0.1:{PORT}"
SECRET = (Path(__file__).parent / "secret.txt").read_text().strip()
TOKENS: dict[str, float] = {}  # issued tokens, and when they expire
TICKETS = {1: "The coffee machine leaks.", 2: "The bees want a bigger hive."}

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS = [
    {"name": "list_tickets", "description": "Lists the open tickets.", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "close_ticket", "description": "Closes a ticket.", "inputSchema": NUMBER},
]


def call(name, arguments):
    if name == "list_tickets":
        return "\n".join(f"{n}: {text}" for n, text in TICKETS.items()) or "No ticket is open."
    if name == "close_ticket":
        if TICKETS.pop(arguments.get("number"), None) is None:
            raise ValueError("No open ticket has this number.")
        return f"Ticket {arguments['number']} is closed."
    raise ValueError(f"No tool {name}.")


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tickets", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            text, failed = call(params["name"], params.get("arguments") or {}), False
        except ValueError as error:
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {} if method == "ping" else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, document=None, **headers):
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            self.send(200, {"resource": f"{HERE}/mcp", "authorization_servers": [HERE]})
        elif self.path.startswith("/.well-known/oauth-authorization-server"):
            self.send(200, {
                "issuer": HERE,
                "token_endpoint": f"{HERE}/token",
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "response_types_supported": [],
            })
        else:
            self.send(405 if self.path == "/mcp" else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/token":
            self.token({name: values[0] for name, values in parse_qs(body.decode()).items()})
        elif self.path != "/mcp":
            self.send(404)
        elif TOKENS.get(self.headers.get("Authorization", "").removeprefix("Bearer "), 0) < time.time():
            self.send(401, WWW_Authenticate=f'Bearer resource_metadata="{HERE}/.well-known/oauth-protected-resource"')
        else:
            self.rpc(json.loads(body))

    def do_DELETE(self):
        self.send(405)

    def token(self, form):
        client, secret = form.get("client_id"), form.get("client_secret")
        kind, _, basic = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            client, _, secret = map(unquote, base64.b64decode(basic).decode().partition(":"))
        if form.get("grant_type") != "client_credentials":
            self.send(400, {"error": "unsupported_grant_type"})
        elif client != "waggle" or not secrets.compare_digest(secret or "", SECRET):
            self.send(401, {"error": "invalid_client"})
        else:
            token = secrets.token_urlsafe()
            TOKENS[token] = time.time() + 600
            self.send(200, {"access_token": token, "token_type": "Bearer", "expires_in": 600}, Cache_Control="no-store")

    def rpc(self, request):
        if "id" not in request:
            self.send(202)  # a notification
            return
        result = answer(request)
        if result is None:
            self.send(200, {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "method not found"}})
        else:
            self.send(200, {"jsonrpc": "2.0", "id": request["id"], "result": result})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    print(f"tickets at {HERE}/mcp", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
