"""One operation on secp256k1 that ``nostr_sdk`` does not offer: the shared x coordinate.

Not constant in time: it runs beside its own keys only, never for a stranger who could measure.
"""

from __future__ import annotations

from workers.nostr.errors import KeyFormatError

PRIME = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def shared_x(secret_hex: str, pubkey: str) -> bytes:
    """The x coordinate of secret · public point, 32 bytes, unhashed (ECDH as NIP-44 wants it).

    The sign of y does not matter to x, so the x-only public key suffices (BIP-340 lift).

    Raises:
        KeyFormatError: the secret is out of range, or the public key is on no point.
    """
    try:
        scalar, x = int(secret_hex, 16), int(pubkey, 16)
    except ValueError:
        raise KeyFormatError("a key is not hex") from None
    if not 0 < scalar < ORDER:
        raise KeyFormatError("the secret key is out of range")
    px, _, pz = _multiply(scalar, (x, _lift(x), 1))
    inverse = pow(pz, PRIME - 2, PRIME)
    return (px * inverse * inverse % PRIME).to_bytes(32, "big")


def _lift(x: int) -> int:
    """A y for an x on the curve y² = x³ + 7."""
    if not 0 < x < PRIME:
        raise KeyFormatError("the public key is out of range")
    square = (pow(x, 3, PRIME) + 7) % PRIME
    y = pow(square, (PRIME + 1) // 4, PRIME)
    if y * y % PRIME != square:
        raise KeyFormatError("the public key is not on the curve")
    return y


def _multiply(scalar: int, point: tuple[int, int, int]) -> tuple[int, int, int]:
    """Double and add, from the highest bit."""
    result = (1, 1, 0)
    for bit in bin(scalar)[2:]:
        result = _double(result)
        if bit == "1":
            result = _add(result, point)
    return result


def _double(point: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = point
    if not z or not y:
        return (1, 1, 0)
    y2 = y * y % PRIME
    s = 4 * x * y2 % PRIME
    m = 3 * x * x % PRIME  # the curve's a is 0
    x3 = (m * m - 2 * s) % PRIME
    return x3, (m * (s - x3) - 8 * y2 * y2) % PRIME, 2 * y * z % PRIME


def _add(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int, int]:
    x1, y1, z1 = left
    x2, y2, z2 = right
    if not z1:
        return right
    if not z2:
        return left
    z1s, z2s = z1 * z1 % PRIME, z2 * z2 % PRIME
    u1, u2 = x1 * z2s % PRIME, x2 * z1s % PRIME
    s1, s2 = y1 * z2s * z2 % PRIME, y2 * z1s * z1 % PRIME
    if u1 == u2:
        return _double(left) if s1 == s2 else (1, 1, 0)
    h, r = (u2 - u1) % PRIME, (s2 - s1) % PRIME
    h2 = h * h % PRIME
    h3, v = h2 * h % PRIME, u1 * h2 % PRIME
    x3 = (r * r - h3 - 2 * v) % PRIME
    return x3, (r * (v - x3) - s1 * h3) % PRIME, h * z1 * z2 % PRIME
