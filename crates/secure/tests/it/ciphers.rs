//! Both kinds of ciphers against published vectors, and against each other.

use braidcast_secure::{Cipher, Ciphers, Keys, Suite, aws::AwsLc, pure::Pure};
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn both(suite: Suite, key: &[u8], number_key: &[u8]) -> [Box<dyn Cipher>; 2] {
    let keys = Keys::new(suite, key, number_key, [0; 12]).expect("keys of the right length");
    [AwsLc.cipher(&keys).expect("a suite that it has"), Pure.cipher(&keys).expect("a suite that it has")]
}

struct Vector {
    suite: Suite,
    key: &'static str,
    nonce: &'static str,
    header: &'static str,
    text: &'static str,
    sealed: &'static str,
    tag: &'static str,
}

const VECTORS: [Vector; 4] = [
    // RFC 8448 §3, the client's application data: record 0, 50 bytes and their type.
    Vector {
        suite: Suite::Aes128Gcm,
        key: "17422dda596ed5d9acd890e3c63f5051",
        nonce: "5b78923dee08579033e523d9",
        header: "1703030043",
        text: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031 17",
        sealed: "a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5
                 b46b395bd54a9a20441e2b62974e1f5a6292a2",
        tag: "977014bd1e3deae63aeebb21694915e4",
    },
    // NIST SP 800-38D's submission ("The Galois/Counter Mode of Operation"), test cases 4 and 16.
    Vector {
        suite: Suite::Aes128Gcm,
        key: "feffe9928665731c6d6a8f9467308308",
        nonce: "cafebabefacedbaddecaf888",
        header: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        text: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
               1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        sealed: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        tag: "5bc94fbc3221a5db94fae95ae7121a47",
    },
    Vector {
        suite: Suite::Aes256Gcm,
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        nonce: "cafebabefacedbaddecaf888",
        header: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        text: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
               1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
        tag: "76fc6ece0f4e1768cddf8853bb2d551b",
    },
    // RFC 8439 §2.8.2.
    Vector {
        suite: Suite::ChaCha20Poly1305,
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        nonce: "070000004041424344454647",
        header: "50515253c0c1c2c3c4c5c6c7",
        text: "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a20
               4966204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f722074686520
               6675747572652c2073756e73637265656e20776f756c642062652069742e",
        sealed: "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6
                 3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36
                 92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc
                 3ff4def08e4b7a9de576d26586cec64b6116",
        tag: "1ae10b594f09e26a7e902ecbd0600691",
    },
];

#[test]
fn seals_and_opens_as_published() {
    for vector in &VECTORS {
        let key = hex(vector.key);
        let nonce: [u8; 12] = hex(vector.nonce).try_into().expect("12 bytes");
        let tag: [u8; 16] = hex(vector.tag).try_into().expect("16 bytes");
        let (header, text, sealed) = (hex(vector.header), hex(vector.text), hex(vector.sealed));
        for cipher in both(vector.suite, &key, &key) {
            let mut buf = text.clone();
            assert_eq!(cipher.seal(&nonce, &header, &mut buf), Ok(tag), "{cipher:?} {}", vector.suite);
            assert_eq!(buf, sealed, "{cipher:?} {}", vector.suite);
            assert_eq!(cipher.open(&nonce, &header, &sealed, &tag, &mut buf), Ok(()));
            assert_eq!(buf, text);
        }
    }
}

#[test]
fn numbers_are_hidden_as_published() {
    // RFC 9001 §A.2 and §A.5: QUIC's mask is made as that of DTLS (RFC 9147 §4.2.3), of which no vectors are published.
    let vectors = [
        (Suite::Aes128Gcm, "9f50449e04a0e810283a1e9933adedd2", "d1b1c98dd7689fb8ec11d242b123dc9b", [0x43, 0x7b]),
        (
            Suite::ChaCha20Poly1305,
            "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
            "5e5cd55c41f69080575d7999c25a5bfb",
            [0xae, 0xfe],
        ),
        // FIPS 197 §C.1 and §C.3: with AES the mask is the encrypted sample.
        (Suite::Aes128Gcm, "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", [0x69, 0xc4]),
        (
            Suite::Aes256Gcm,
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            "00112233445566778899aabbccddeeff",
            [0x8e, 0xa2],
        ),
    ];
    for (suite, key, sample, mask) in vectors {
        let (key, sample) = (hex(key), hex(sample).try_into().expect("16 bytes"));
        for cipher in both(suite, &key, &key) {
            assert_eq!(cipher.mask(&sample), mask, "{cipher:?} {suite}");
        }
    }
}

proptest! {
    #[test]
    fn both_do_the_same(
        suite in proptest::sample::select(&Suite::ALL[..]),
        key: [u8; 32],
        number_key: [u8; 32],
        nonce: [u8; 12],
        sample: [u8; 16],
        text in proptest::collection::vec(any::<u8>(), 0..2000),
    ) {
        let len = suite.key_len();
        let [fast, slow] = both(suite, &key[..len], &number_key[..len]);
        let (mut a, mut b) = (text.clone(), text);
        prop_assert_eq!(fast.seal(&nonce, b"abc", &mut a), slow.seal(&nonce, b"abc", &mut b));
        prop_assert_eq!(a, b);
        prop_assert_eq!(fast.mask(&sample), slow.mask(&sample));
    }
}
