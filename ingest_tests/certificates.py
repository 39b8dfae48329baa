"""A self-signed certificate for servers on this machine."""

import ssl
import subprocess
from pathlib import Path

import pytest


def own_certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """What a server called `name` is opened with, and the file by which it can be trusted."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    line += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(line, check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("this machine has no openssl command to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
