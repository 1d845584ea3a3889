"""Certificates of an authority of their own, for a server of NATS."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

DAY = dt.timedelta(days=1)
_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_SIGNS = x509.KeyUsage(**dict.fromkeys(_USES, False), key_cert_sign=True)
"""Python 3.13 wants it of an authority, and the identifiers of keys."""


class Authority:
    """An authority that signs certificates.

    Args:
        folder: Where its files are written.
        name: Its name.
    """

    def __init__(self, folder: Path, name: str = "fleet-ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        public = self._key.public_key()
        certificate = (
            self._certificate(self._name, public, DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(_SIGNS, critical=True)
        )
        self.path = folder / f"{name}.pem"
        """Its certificate."""
        self.path.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def certificate(self, name: str, *, ends: dt.timedelta = DAY) -> tuple[Path, Path]:
        """Make a key and a certificate of a server on loopback; return their files."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = self._certificate(_named(name), key.public_key(), ends)
        certificate = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = certificate.add_extension(issuer, critical=False)
        key_path, path = self._folder / f"{name}.key", self._folder / f"{name}.crt"
        private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        key_path.write_bytes(key.private_bytes(*private))
        path.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))
        return key_path, path

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, ends: dt.timedelta
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * DAY)
            .not_valid_after(now + ends)
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
