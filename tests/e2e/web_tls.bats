#!/usr/bin/env bats
# gpurota-web with TLS: what is served, that new certificates take effect, and that no client can
# block others by a handshake.

# shellcheck disable=SC2030,SC2031 # each case is a process of its own
load helpers

setup() {
  command -v openssl >/dev/null || skip "openssl is not installed"
  start_daemon
}
teardown() { if [ -n "${E2E_DIR:-}" ]; then end_test; fi; }

CLIENT=$BATS_TEST_DIRNAME/web_client.py

# make_certificate NAME: makes a certificate for 127.0.0.1; cert.pem and key.pem change in one step.
make_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
    -addext subjectAltName=IP:127.0.0.1 -keyout new.key -out new.pem 2>/dev/null
  mv new.key key.pem
  mv new.pem cert.pem
}
start_web() {
  make_certificate first
  in_background web gpurota-web --listen 127.0.0.1:0 --tls-certificate cert.pem \
    --tls-key key.pem "$@"
  wait_until says_how_it_goes
  if says web 'built without TLS'; then skip "gpurota-web was built without TLS"; fi
  URL=$(sed -n 's/.*listens on //p' web)
  [[ $URL == https://127.0.0.1:* ]]
}
says_how_it_goes() { says web 'listens on' || says web 'built without TLS'; }

# get PATH: prints the body, over a connection that trusts cert.pem.
get() {
  python3 - "$URL$1" <<'END'
import ssl, sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20,
    context=ssl.create_default_context(cafile="cert.pem")).read().decode())
END
}
# Prints the server's certificate as PEM.
served() {
  python3 - "$URL" <<'END'
import socket, ssl, sys
host, port = sys.argv[1].removeprefix("https://").split(":")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with socket.create_connection((host, int(port)), timeout=20) as plain, \
        context.wrap_socket(plain) as tls:
    sys.stdout.buffer.write(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True)).encode())
END
}
serves() { [ "$(served | openssl x509 -noout -subject)" = "subject=CN = $1" ]; }

@test "everything is served by TLS, and states go on coming" {
  start_web --page names
  [ "$(get /healthz)" = ok ]
  get /metrics | grep -q '^gpurota_up 1$'
  python3 - "$URL" <<'END'
import ssl, sys, urllib.request
stream = urllib.request.urlopen(sys.argv[1] + "/api/live", timeout=20,
                                context=ssl.create_default_context(cafile="cert.pem"))
states = 0
while states < 2:
    states += stream.readline().startswith(b"data: ")
END
  # No answer without TLS, or by too old a version of TLS.
  python3 - "$URL" <<'END'
import socket, ssl, sys
host, port = sys.argv[1].removeprefix("https://").split(":")
with socket.create_connection((host, int(port)), timeout=20) as plain:
    plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    try:
        while piece := plain.recv(4096):
            answer += piece
    except ConnectionResetError:
        pass
assert b"gpurota" not in answer, answer
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_ciphers("ALL:@SECLEVEL=0")
context.minimum_version = ssl.TLSVersion.TLSv1
context.maximum_version = ssl.TLSVersion.TLSv1_1
try:
    with socket.create_connection((host, int(port)), timeout=20) as plain, \
            context.wrap_socket(plain):
        sys.exit("TLS 1.1 is spoken")
except (ssl.SSLError, OSError):
    pass
END
}

@test "people sign in by it, and the cookie is for https only" {
  start_web
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  wait_until makes_links
  grep -q '^https://127.0.0.1:[0-9]*/#sign-in=' the_link
  export WEB_CA=$PWD/cert.pem
  python3 "$CLIENT" sign-in "$(cat the_link)" jar >signed_in
  grep -q '; HttpOnly; SameSite=Strict; Secure$' signed_in
  python3 "$CLIENT" call jar Status '{}' >answer
  [ "$(head -n 1 answer)" = 200 ]
}
makes_links() { gpurota web --quiet >the_link 2>/dev/null; }

@test "a new certificate is taken up, and one that cannot be used is not" {
  start_web
  serves first
  make_certificate second
  wait_until serves second
  echo nonsense >cert.pem
  wait_until complains
  serves second
  make_certificate third
  wait_until serves third
}
complains() {
  served >/dev/null
  says web 'cert.pem and the key key.pem cannot be used: .*; the last ones are used on'
}

@test "a certificate that cannot be used at the start is reported" {
  start_web
  echo nonsense >wrong.pem
  run -2 gpurota-web --listen 127.0.0.1:0 --tls-certificate wrong.pem --tls-key key.pem
  [[ $output == *"the certificate wrong.pem and the key key.pem cannot be used"* ]]
  run -2 gpurota-web --listen 127.0.0.1:0 --tls-certificate cert.pem
  [[ $output == *"together"* ]]
}

@test "a client that begins a handshake and stops costs nobody else anything" {
  start_web
  cat >clients.py <<'END'
import socket, ssl, sys, time
host, port = sys.argv[1].removeprefix("https://").split(":")
# The first message of a handshake, as a browser would send it.
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
try:
    hello.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = outgoing.read()
clients = []
for i in range(400):
    each = socket.create_connection((host, int(port)))
    each.sendall(hello if i % 3 == 0 else hello[: 1 + i % 50] if i % 3 == 1 else b"")
    clients.append(each)
print("all here", flush=True)
while True:
    time.sleep(1)
END
  in_background clients python3 clients.py "$URL"
  wait_until says clients 'all here'
  for _ in 1 2 3; do [ "$(get /healthz)" = ok ]; done
}
