#!/usr/bin/env python3
"""Plays a browser for tests of the web page's sessions.

    web_client.py sign-in LINK JAR [HEADER…]            signs in with a link of `gpurota web`; JAR
                                                        gets both halves of the session's token
    web_client.py whose LINK [HEADER…]                  asks whose the link is
    web_client.py call JAR METHOD PARAMETERS [HEADER…]  a call of the control protocol by that
                                                        session

WEB_CA is a file with the certificate of an https server. Prints the status and the body. HEADER is
"Name: value", and replaces the one that a browser would send; without a value it is left out.
"""

import http.client
import json
import os
import ssl
import sys


def post(url, path, body, headers, changes):
    scheme, _, host = url.rstrip("/").partition("://")
    headers = {"Host": host, "Origin": scheme + "://" + host, "Content-Type": "application/json",
               **headers}
    for change in changes:
        name, _, value = change.partition(":")
        headers.pop(name, None)
        if value.strip():
            headers[name] = value.strip()
    connection = http.client.HTTPConnection(host, timeout=20)
    if scheme == "https":
        connection = http.client.HTTPSConnection(host, timeout=20,
                                                 context=ssl.create_default_context(
                                                     cafile=os.environ["WEB_CA"]))
    connection.putrequest("POST", path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    data = body.encode()
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    text = answer.read().decode()
    print(answer.status)
    print(text.rstrip("\n"))
    return answer, text


def main(arguments):
    what, *rest = arguments
    if what == "whose":
        link, *changes = rest
        url, _, secret = link.partition("#sign-in=")
        post(url, "/api/sign-in",
             json.dumps({"method": "dev.gpurota.GetWebLink", "parameters": {"secret": secret}}), {},
             changes)
        return
    if what == "sign-in":
        link, jar, *changes = rest
        url, _, secret = link.partition("#sign-in=")
        body = json.dumps({"method": "dev.gpurota.SignIn", "parameters": {"secret": secret}})
        answer, text = post(url, "/api/sign-in", body, {}, changes)
        if answer.status == 200:
            cookie = answer.getheader("Set-Cookie")
            print(cookie)
            with open(jar, "w", encoding="utf-8") as file:
                json.dump({"url": url, "cookie": cookie.partition(";")[0],
                           "key": json.loads(text)["parameters"]["token"]}, file)
        return
    jar, method, parameters, *changes = rest
    with open(jar, encoding="utf-8") as file:
        session = json.load(file)
    body = json.dumps({"method": "dev.gpurota." + method, "parameters": json.loads(parameters)})
    post(session["url"], "/api/call", body,
         {"Cookie": session["cookie"], "Gpurota-Session": session["key"]}, changes)


main(sys.argv[1:])
