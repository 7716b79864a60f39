use super::Window;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The same by a set, with no thought for speed.
#[derive(Default)]
struct Model {
    seen: BTreeSet<u64>,
}

impl Model {
    fn accept(&mut self, number: u64) -> bool {
        let next = self.seen.last().map_or(0, |highest| highest + 1);
        let old = number < next && next - number > Window::SIZE;
        !old && self.seen.insert(number)
    }
}

proptest! {
    #[test]
    fn takes_each_number_once_and_none_too_old(
        start in prop_oneof![Just(0), Just((1_u64 << 48) - 200_000), 0..1_u64 << 40],
        steps in proptest::collection::vec(
            prop_oneof![4 => -70i64..70, 2 => -70_000i64..70_000, 1 => Just(65_535i64), 1 => Just(65_536), 1 => Just(-65_536)],
            1..400,
        ),
    ) {
        let (mut window, mut model) = (Window::new(), Model::default());
        let mut at = start;
        for step in steps {
            at = at.saturating_add_signed(step);
            prop_assert_eq!(window.accept(at), model.accept(at), "number {} of {:?}", at, window);
        }
    }
}

#[test]
fn the_window_reaches_back_as_far_as_it_says() {
    let mut window = Window::new();
    assert!(window.accept(Window::SIZE));
    assert!(window.is_new(1), "the 65,536th back");
    assert!(!window.is_new(0), "one before it");
    assert!(window.accept(1));
    assert!(!window.accept(1));
}
