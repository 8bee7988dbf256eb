"""Digests of bytes as lowercase hexadecimal."""

import hashlib

import xxhash


def xxh64_hex(data: bytes | memoryview) -> str:
    """The XXH64 digest (seed 0) as 16 hex digits: the project's source, self and subtree hash."""
    return xxhash.xxh64_hexdigest(data)


def sha256_hex(data: bytes | memoryview) -> str:
    """The SHA-256 digest as 64 hex digits: identifies images and downloads."""
    return hashlib.sha256(data).hexdigest()
