"""TLS as the sandbox has it: the host's. Clients set it up as they are used to; certificates are
checked by the host, always, whatever is set here."""

import enum
from types import SimpleNamespace

OPENSSL_VERSION = "OpenSSL 3.0.0 (the host's TLS)"
OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
HAS_SNI = HAS_ALPN = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_NPN = HAS_ECDH = False
HAS_NEVER_CHECK_COMMON_NAME = True
HAS_PSK = False
CHANNEL_BINDING_TYPES = []


class VerifyMode(enum.IntEnum):
    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_X509_STRICT = 0x20
    VERIFY_X509_TRUSTED_FIRST = 0x8000
    VERIFY_X509_PARTIAL_CHAIN = 0x80000


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 0x300
    TLSv1 = 0x301
    TLSv1_1 = 0x302
    TLSv1_2 = 0x303
    TLSv1_3 = 0x304
    MAXIMUM_SUPPORTED = -1


class Options(enum.IntFlag):
    OP_NO_SSLv2 = 0
    OP_NO_COMPRESSION = 0x20000
    OP_NO_TICKET = 0x4000
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_ENABLE_MIDDLEBOX_COMPAT = 0x100000
    OP_ALL = 0x80000050


for _kind in (VerifyMode, VerifyFlags, Options):
    globals().update(_kind.__members__)

PROTOCOL_SSLv23 = PROTOCOL_TLS = 2
PROTOCOL_TLS_CLIENT = 16
PROTOCOL_TLS_SERVER = 17
Purpose = SimpleNamespace(SERVER_AUTH="server", CLIENT_AUTH="client")


class SSLError(OSError):
    """Something about TLS is wrong."""


class SSLZeroReturnError(SSLError):
    """The connection was closed."""


class SSLWantReadError(SSLError):
    """Not raised here."""


class SSLWantWriteError(SSLError):
    """Not raised here."""


class SSLSyscallError(SSLError):
    """Not raised here."""


class SSLEOFError(SSLError):
    """Not raised here."""


class SSLCertVerificationError(SSLError, ValueError):
    """The certificate is not trusted."""


CertificateError = SSLCertVerificationError


class SSLContext:
    """What is set is remembered."""

    def __init__(self, protocol=PROTOCOL_TLS_CLIENT):
        self.protocol = protocol
        self.verify_mode = CERT_REQUIRED  # noqa: F821
        self.verify_flags = VERIFY_DEFAULT  # noqa: F821
        self.check_hostname = True
        self.options = Options(0)
        self.minimum_version = TLSVersion.MINIMUM_SUPPORTED
        self.maximum_version = TLSVersion.MAXIMUM_SUPPORTED
        self.hostname_checks_common_name = False
        self.post_handshake_auth = False
        self.keylog_filename = None

    def _remember(self, *args, **kwargs):
        """For the host, its own settings count."""

    set_alpn_protocols = set_ciphers = set_default_verify_paths = _remember
    load_default_certs = load_verify_locations = _remember

    def load_cert_chain(self, *args, **kwargs):
        """A client's own certificate would be a secret, and the sandbox holds none."""
        raise SSLError("a component cannot have a certificate of its own")

    def get_ca_certs(self, binary_form=False):
        """The host's are not to be seen."""
        return []

    def get_ciphers(self):
        """The host's to choose."""
        return []

    def cert_store_stats(self):
        """The host's are not to be seen."""
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def wrap_socket(self, sock, *args, **kwargs):
        """Has requests over this connection be made over TLS."""
        if not hasattr(sock, "secure"):
            raise SSLError("there are no sockets in the sandbox, and no TLS but for HTTP")
        return sock.secure()


class SSLSocket:
    """Not made here."""


class SSLObject:
    """Not made here."""


class MemoryBIO:
    """Not made here."""

    def __init__(self):
        raise SSLError("there is no TLS in the sandbox but for HTTP")


def create_default_context(purpose=None, *, cafile=None, capath=None, cadata=None):
    """Settings for a client."""
    return SSLContext()


def _create_unverified_context(*args, **kwargs):
    """The host checks certificates all the same."""
    return SSLContext()


_create_default_https_context = create_default_context


def match_hostname(cert, hostname):
    """The host has checked it."""


def RAND_bytes(n):
    """The sandbox's random numbers."""
    import os

    return os.urandom(n)


def get_default_verify_paths():
    """There are no files."""
    return SimpleNamespace(cafile=None, capath=None, openssl_cafile="", openssl_capath="")
