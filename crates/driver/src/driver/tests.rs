use super::*;
use crate::bind::Bind;

#[test]
fn socket_ids_are_used_again_after_all_the_others() {
    let mut driver = Driver::new().unwrap();
    let address = Bind::to_addr("127.0.0.1:0".parse().unwrap());
    let kept = [(); 2].map(|()| driver.bind(&address).unwrap());
    assert_eq!(kept, [SocketId(0), SocketId(1)]);
    driver.last_socket = u16::MAX - 2;
    // One at a time, as a client opens them that tries again and again.
    let mut ids = Vec::new();
    for _ in 0..4 {
        let id = driver.bind(&address).unwrap();
        assert!(driver.socket(id).is_some());
        driver.unbind(id);
        assert!(driver.socket(id).is_none());
        ids.push(id.0);
    }
    assert_eq!(ids, [u16::MAX - 1, u16::MAX, 2, 3]);
    assert_eq!(driver.sockets().map(|(id, _)| id).collect::<Vec<_>>(), kept);
}

#[test]
fn inputs_that_are_gone_take_no_room() {
    let mut driver = Driver::new().unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    for _ in 0..100 {
        let id = driver.register(reader.as_raw_fd(), Direction::Read).unwrap();
        driver.unregister(id).unwrap();
    }
    assert!(driver.inputs.is_empty());
}
