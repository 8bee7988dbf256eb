"""A loopback HTTPS server under a name of its own choice, and the trust that a client needs for it."""

import datetime
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class TlsServer:
    """A running server: its port, the client's trust, what it saw, and how it answers by path."""

    port: int
    trust: ssl.SSLContext
    answers: dict[str, Behaviour] = field(default_factory=dict[str, Behaviour])
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])
    names: list[str | None] = field(default_factory=list[str | None])


@contextmanager
def tls_server(folder: Path, *names: str) -> Generator[TlsServer, None, None]:
    """Run a server with a certificate for the names on a free loopback port for the time of the block."""
    certificate, key = _certificate(folder, names)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    state = TlsServer(port=0, trust=ssl.create_default_context(cafile=str(certificate)))

    def seen(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        state.names.append(name)

    serving.sni_callback = seen

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            state.requests.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
            answer = state.answers.get(self.path.partition("?")[0])
            if answer is None:
                self.send_error(404)
            else:
                answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that refuse the certificate or hang up are what the tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = serving.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.port = server.server_address[1]
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _certificate(folder: Path, names: tuple[str, ...]) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback test")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private
