"""Signatures judged by published vectors (BIP-340) and by their own change."""

from __future__ import annotations

import nostr_sdk
import pytest

from workers.nostr import sdk

PUBKEY = "DFF1D77F2A671C5F36183726DB2341BE58FEAE1DA2DECED843240F7B502BA659"
MESSAGE = "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89"
R = "6CFF5C3BA86C69EA4B7376F31A9BCB4F74C1976089B2D9963DA2E5543E177769"
S = "69E89B4C5564D00349106B8497785DD7D1D713A8AE82B32FA79D5F7FC407D39B"
PRIME = "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFC2F"
ORDER = "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141"

# BIP-340 test-vectors.csv: public key, message, signature, verdict.
VECTORS = [
    (
        "F9308A019258C31049344F85F89D5229B531C845836F99B08601F113BCE036F9",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "E907831F80848D1069A5371B402410364BDF1C5F8307B0084C55F1CE2DCA8215"
        "25F66A4A85EA8B71E482A74F382D2CE5EBEEE8FDB2172F477DF4900D310536C0",
        True,
    ),
    (
        "DFF1D77F2A671C5F36183726DB2341BE58FEAE1DA2DECED843240F7B502BA659",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "6896BD60EEAE296DB48A229FF71DFE071BDE413E6D43F917DC8DCF8C78DE3341"
        "8906D11AC976ABCCB20B091292BFF4EA897EFCB639EA871CFA95F6DE339E4B0A",
        True,
    ),
    (
        "DD308AFEC5777E13121FA72B9CC1B7CC0139715309B086C960E18FD969774EB8",
        "7E2D58D8B3BCDF1ABADEC7829054F90DDA9805AAB56C77333024B9D0A508B75C",
        "5831AAEED7B44BB74E5EAB94BA9D4294C49BCF2A60728D8B4C200F50DD313C1B"
        "AB745879A5AD954A72C45A91C3A51D3C7ADEA98D82F8481E0E1E03674A6F3FB7",
        True,
    ),
    (  # fails if the message is reduced modulo p or n
        "25D1DFF95105F5253C4022F628A996AD3A0D95FBF21D468A1B33F8C160D8F517",
        "F" * 64,
        "7EB0509757E246F19449885651611CB965ECC1A187DD51B64FDA1EDC9637D5EC"
        "97582B9CB13DB3933705B32BA982AF5AF25FD78881EBB32771FC5922EFC66EA3",
        True,
    ),
    (
        "D69C3509BB99E412E68B0FE8544E72837DFA30746D8BE2AA65975F29D22DC7B9",
        "4DF3C3F68FCC83B27E9D42C90431A72499F17875C81A599B566C9889B9696703",
        "00000000000000000000003B78CE563F89A0ED9414F5AA28AD0D96D6795F9C63"
        "76AFB1548AF603B3EB45C9F8207DEE1060CB71C04E80F593060B07D28308D7F4",
        True,
    ),
    (  # negated message
        PUBKEY,
        MESSAGE,
        "1FA62E331EDBC21C394792D2AB1100A7B432B013DF3F6FF4F99FCB33E0E1515F"
        "28890B3EDB6E7189B630448B515CE4F8622A954CFE545735AAEA5134FCCDB2BD",
        False,
    ),
    (  # negated s
        PUBKEY,
        MESSAGE,
        R + "961764B3AA9B2FFCB6EF947B6887A226E8D7C93E00C5ED0C1834FF0D0C2E6DA6",
        False,
    ),
    (PUBKEY, MESSAGE, PRIME + S, False),  # r is the field's size
    (PUBKEY, MESSAGE, R + ORDER, False),  # s is the curve's order
    (PRIME[:-2] + "30", MESSAGE, R + S, False),  # public key beyond the field
    (  # has_even_y(R) is false
        "DFF1D77F2A671C5F36183726DB2341BE58FEAE1DA2DECED843240F7B502BA659",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "FFF97BD5755EEEA420453A14355235D382F6472F8568A18B2F057A1460297556"
        "3CC27944640AC607CD107AE10923D9EF7A73C643E166BE5EBEAFA34B1AC553E2",
        False,
    ),
    (  # public key not on the curve
        "EEFDEA4CDB677750A420FEE807EACF21EB9898AE79B9768766E4FAA04A2D4A34",
        "243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89",
        "6CFF5C3BA86C69EA4B7376F31A9BCB4F74C1976089B2D9963DA2E5543E177769"
        "69E89B4C5564D00349106B8497785DD7D1D713A8AE82B32FA79D5F7FC407D39B",
        False,
    ),
]


@pytest.mark.parametrize(("pubkey", "message", "signature", "verdict"), VECTORS)
def test_2_published_signatures(pubkey: str, message: str, signature: str, verdict: bool) -> None:
    found = sdk.verify(pubkey.lower(), bytes.fromhex(message), signature.lower())
    assert found is verdict


def test_a_signature_is_good_for_its_digest_and_key_alone() -> None:
    signer, digest = sdk.generate(), b"\x07" * 32
    signature = signer.sign(digest)
    assert sdk.verify(signer.pubkey(), digest, signature)
    assert not sdk.verify(signer.pubkey(), b"\x08" * 32, signature)
    assert not sdk.verify(sdk.generate().pubkey(), digest, signature)
    assert not sdk.verify(signer.pubkey(), digest[:31], signature)
    assert not sdk.verify('","kind":2,"x":"', digest, signature)


def test_only_digests_are_signed() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        sdk.generate().sign(b"short")


def test_a_long_text_reaches_the_library_whole() -> None:
    # The library's glue is told to copy in one move; a mistake there would be one of length.
    one, two = sdk.generate(), sdk.generate()
    for size in (1, 15, 16, 17, 4095, 4096, 60000):
        text = "é" + "x" * size
        assert two.decrypt(one.pubkey(), one.encrypt(two.pubkey(), text)) == text


def test_an_unknown_glue_is_left_as_it_is() -> None:
    class Library:
        class _UniffiRustBufferBuilder:
            write = "its own"

    sdk._quicken(Library)
    sdk._quicken(None)
    assert Library._UniffiRustBufferBuilder.write == "its own"
    assert nostr_sdk.nostr_sdk._UniffiRustBufferBuilder.write is sdk._write_at_once
