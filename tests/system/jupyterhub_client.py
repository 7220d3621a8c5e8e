#!/usr/bin/env python3
"""Starts a server and a kernel of a user's by JupyterHub, runs a file in the kernel, and waits:
jupyterhub_client.py USER FILE UNTIL

The kernel and the server end when the file UNTIL is there. recipes_tests.bash runs this program,
which uses the rights that jupyterhub_config.py gives it. The output of the kernel is printed on
standard output.
"""

import asyncio
import json
import os
import sys
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

HUB = "http://127.0.0.1:8000"
WHO = {"Authorization": "token 0123456789abcdef"}


async def ask(method, path, body=None):
    text = json.dumps(body) if body is not None else ("" if method == "POST" else None)
    answer = await AsyncHTTPClient().fetch(HTTPRequest(HUB + path, method=method, headers=WHO,
                                                       body=text, request_timeout=60))
    return json.loads(answer.body or b"null")


async def until(what, seconds=60):
    for _ in range(seconds * 5):
        try:
            done = await what()
            if done:
                return done
        except (HTTPClientError, OSError):
            pass  # still starting
        await asyncio.sleep(0.2)
    raise SystemExit("jupyterhub_client: still not so after %d s: %s" % (seconds, what.__name__))


async def run(kernel, code, user):
    """Runs the code in the kernel until it ends; returns what the code prints."""
    url = "%s/user/%s/api/kernels/%s/channels" % (HUB.replace("http", "ws"), user, kernel)
    socket = await websocket_connect(HTTPRequest(url, headers=WHO))
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request",
              "session": uuid.uuid4().hex, "username": user, "version": "5.3", "date": ""}
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {},
               "allow_stdin": False, "stop_on_error": True}
    await socket.write_message(json.dumps({"header": header, "parent_header": {}, "metadata": {},
                                           "content": content, "channel": "shell", "buffers": []}))
    printed = ""
    while True:
        message = json.loads(await socket.read_message())
        if message["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        if message["msg_type"] in ("stream", "error"):
            printed += (message["content"].get("text")
                        or "\n".join(message["content"].get("traceback", [])) + "\n")
        if message["msg_type"] == "execute_reply":
            return printed


async def main(user, path, end):
    async def hub_answers():
        return await ask("GET", "/hub/api/")

    async def server_is_ready():
        return (await ask("GET", "/hub/api/users/" + user))["servers"].get("", {}).get("ready")

    async def has_ended():
        return os.path.exists(end)

    await until(hub_answers)
    await ask("POST", "/hub/api/users/" + user)
    await ask("POST", "/hub/api/users/%s/server" % user)
    await until(server_is_ready)
    kernel = (await ask("POST", "/user/%s/api/kernels" % user))["id"]
    with open(path, encoding="utf-8") as file:
        print(await run(kernel, file.read(), user), end="", flush=True)
    await until(has_ended)
    await ask("DELETE", "/hub/api/users/%s/server" % user)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
