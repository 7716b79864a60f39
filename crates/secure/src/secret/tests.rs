use super::{Passphrase, PrivateKey, Secret, SecretError, SharedKey};
use proptest::prelude::*;

fn secret(text: &str) -> Option<Secret> {
    match text.parse() {
        Ok(SharedKey::Secret(secret)) => Some(secret),
        _ => None,
    }
}

#[test]
fn words_are_those_of_bip_39() {
    // The first two vectors of BIP 39's reference implementation.
    let zeros = Secret::new([0; 16]);
    assert_eq!(*zeros.words(), ["abandon"; 11].join("-") + "-about");
    let sevens = "legal winner thank year wave sausage worth useful legal winner thank yellow";
    assert_eq!(secret(sevens), Some(Secret::new([0x7F; 16])));
}

proptest! {
    #[test]
    fn both_forms_come_back(bytes: [u8; 16]) {
        let made = Secret::new(bytes);
        for text in [made.words(), made.short()] {
            prop_assert_eq!(secret(&text), Some(made.clone()));
            prop_assert_eq!(secret(&text.to_uppercase()), Some(made.clone()));
            prop_assert_eq!(secret(&format!("  {}\n", text.replace('-', " "))), Some(made.clone()));
        }
    }

    #[test]
    fn one_wrong_character_of_the_short_form_is_noticed(bytes: [u8; 16], at in 6usize..38, by in 1usize..32) {
        let letters = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
        let mut text = Secret::new(bytes).short().as_bytes().to_vec();
        let place = letters.iter().position(|it| *it == text[at]).unwrap_or_default();
        text[at] = letters[(place + by) % letters.len()];
        let text = String::from_utf8(text).unwrap_or_default();
        prop_assert_eq!(text.parse::<SharedKey>().err(), Some(SecretError::ShortForm));
    }
}

#[test]
fn typing_errors_are_named() {
    let error = |text: &str| text.parse::<SharedKey>().err();
    assert_eq!(error(" \n"), Some(SecretError::Empty));
    assert_eq!(error("braid1qqqq"), Some(SecretError::ShortForm));
    let words = "legal winner thank year wave sausag worth useful legal winner thank yellow";
    assert_eq!(error(words), Some(SecretError::UnknownWord { place: 6 }));
    assert_eq!(error(&["abandon"; 12].join(" ")), Some(SecretError::Checksum));
}

#[test]
fn anything_else_is_a_passphrase() {
    for text in ["hunter2", "the quick brown fox jumps over the dog"] {
        let Ok(SharedKey::Passphrase(passphrase)) = text.parse() else { panic!("{text:?} is a passphrase") };
        assert_eq!(passphrase.0, text);
    }
}

#[test]
fn a_passphrase_is_stretched_by_argon2id() {
    let Ok(SharedKey::Passphrase(one)) = "correct horse".parse() else { panic!("a passphrase") };
    let Ok(SharedKey::Passphrase(other)) = "correct horsf".parse() else { panic!("a passphrase") };
    let stretched = one.stretched(None);
    assert_eq!(stretched.bytes(), one.stretched(None).bytes());
    assert_ne!(stretched.bytes(), other.stretched(None).bytes());
    // A name is part of the salt: what was guessed for one serves for no other.
    assert_ne!(stretched.bytes(), one.stretched(Some("studio")).bytes());
    assert_ne!(one.stretched(Some("studio")).bytes(), one.stretched(Some("stage")).bytes());
}

#[test]
fn nothing_prints_a_secret() {
    let made = Secret::new(*b"0123456789abcdef");
    assert_eq!(format!("{made:?}"), "Secret(…)");
    assert_eq!(format!("{:?}", "hunter2".parse::<SharedKey>()), "Ok(Passphrase(Passphrase(…)))");
}

#[test]
fn what_follows_from_a_passphrase_and_a_private_key_come_back_and_are_told_apart() {
    let stretched = Passphrase("correct horse".into()).stretched(None);
    let Ok(SharedKey::Stretched(back)) = stretched.text().parse() else { panic!("not taken for what it is") };
    assert_eq!(back.bytes(), stretched.bytes());
    let key = PrivateKey::new([7; 32]);
    assert_eq!(key.text().parse::<PrivateKey>().map(|it| *it.bytes()), Ok([7; 32]));
    assert_eq!(stretched.text().parse::<PrivateKey>().err(), Some(SecretError::PrivateKey));
}
